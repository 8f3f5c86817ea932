"""Tiny inputs for every protocol that `ppspeech party` lists: who takes part, with what, and what each then says."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from ppspeech.crypto.paillier.primes import prime_pair
from ppspeech.filters import LinearFilter
from ppspeech.protocols.filters import digest_of
from ppspeech.protocols.networks import Layer, NetworkShape
from tests.protocols.network_reference import made_network, plain_network
from tests.protocols.sentence_reference import hear, loop_arrays, say
from tests.protocols.spotting_reference import (
    clear_answers,
    made_keywords,
    made_recordings,
    made_shape,
    plain_keywords,
    plain_recordings,
)
from tests.protocols.test_discrete_keyword import made_tables, plain_tables, sure_symbols
from tests.protocols.word_reference import made_models, made_utterance, plain_models, plain_word

DEMO = {"key_bits": 256, "insecure_demo": True}
KNOWS = "the other party knows"


@dataclass(frozen=True)
class Row:
    """One protocol.

    Attributes:
        members: role, private inputs and the end of what is shown, of each.
        terms: public.
        hub: the role that all others talk to, if there is one.
    """

    members: list[tuple[str, list[Any], str]]
    terms: dict[str, Any] = field(default_factory=dict)
    hub: str | None = None


def pair(first: tuple[str, list[Any], str], second: tuple[str, list[Any], str], **terms: Any) -> Row:
    return Row([first, second], terms)


def draw(*shape: int, seed: int = 0) -> list[Any]:
    found: list[Any] = np.random.default_rng(seed).normal(size=shape).tolist()
    return found


def moments_of(*means: float) -> dict[str, Any]:
    """Mixtures of two components of one feature each, about given means."""
    centers = [[[mean - 1.0, 0.0], [mean + 1.0, 0.0]] for mean in means]
    return {
        "log_weights": [[-0.7, -0.7]] * len(means),
        "means": centers,
        "covariances": [[[1.0, 1.0]] * 2] * len(means),
    }


def training(protocol_terms: dict[str, Any], inputs: list[Any], model: str) -> Row:
    parties = [("party", [data], f"trained {model}") for data in inputs]
    return Row([("curator", [], "sums of 2 parties"), *parties], protocol_terms, hub="curator")


@cache
def rows() -> dict[str, Row]:
    """By the protocol's name."""
    words = made_models(words=2, states=2, frames=6, dimensions=2)
    spoken = made_utterance(words, 5, seed=1)
    loop = loop_arrays(frames=16, most_words=4)
    said = say(loop, 0, 1)
    heard = [(each.word, each.start, each.end) for each in hear(loop, said)]
    models = {"weights": loop.weights.tolist(), "arcs": loop.arcs.tolist(), "starts": loop.starts.tolist()}
    sentence = Row(
        [("client", [said.tolist()], f"client0: {heard}"), ("server", [models], "done")],
        {"shape": loop.shape.to_params()},
    )
    tables = made_tables(4, 0, words=2, states=2, frames=6)
    symbols, symbol_word = sure_symbols(tables, 4, 5)
    p, q = prime_pair(256, lambda p, q: True)
    labeled = [[*row, float(row[0] > 0)] for row in draw(20, 2)]
    about_rows = {"model": "logistic", "features": 2, "classes": 2, "radius": 1.0, "epsilon": 4.0}
    speech = [draw(2, 6, 39, seed=seed) for seed in range(2)]
    word = {"initial": [1.0, 0.0], "transitions": [[0.5, 0.5], [0.0, 1.0]], "covariances": [[[1.0]], [[1.0]]]}
    mixture_terms = {"frames": 4, "dimensions": 2, "components": 2, "models": 2, "norm": 10.0}
    background = moments_of(0.0)
    one_word = {"shape": words.shape.to_params()}
    best = made_models(words=2, states=2, frames=6, dimensions=2, operation="viterbi")
    in_circuit = [
        ("client", [spoken.tolist()], f"client0: {plain_word(best, spoken)}"),
        ("server", [plain_models(best)], "done"),
    ]
    in_stream = [
        ("client", [spoken.tolist()], f"client0: {plain_word(words, spoken)}"),
        ("server", [plain_models(words)], "done"),
    ]
    one = made_models(words=2, states=1, frames=1, dimensions=2, terms="linear", moves=(0,), operation="viterbi")
    vectors = [made_utterance(one, 1, seed)[0] for seed in (1, 2)]
    seen = [plain_word(one, each[None]) for each in vectors]
    watched = [[each.tolist() for each in vectors]]
    few = {"shape": one.shape.to_params(), "steps": 3}
    common = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    archive, owned = (
        made_shape(frames=12, block=8, longest=4, dimensions=2, states=(2,), holder=holder)
        for holder in ("server", "client")
    )
    sought = {shape.holder: made_keywords(shape, 3, threshold=-50.0) for shape in (archive, owned)}
    searched = {shape.holder: made_recordings(shape, sought[shape.holder]) for shape in (archive, owned)}
    ((where,),) = clear_answers(sought["server"], searched["server"])
    assert where is not None
    segment = str([[[*where.starts, where.end]]])
    layered = made_network(NetworkShape(4, 2, (Layer(3), Layer(2, activation="none", pool="mean", pool_width=4))))
    brief = draw(3, 2)
    chosen = int(layered.scores(layered.shape.clipped(np.array(brief))).argmax())
    walks = [[[float(i + j), float(m)] for i in range(4)] for m, j in ((0, 0), (3, 5))]
    melodies = [(1 - 2 * (np.random.default_rng(seed).random((8, 32)) < 0.5)).tolist() for seed in (1, 2)]
    filtered = {"inputs": 3, "features": 2, "classes": 2, "rounds": 1, "settings": {"steps": 1}, "gather_seconds": 30}
    return {
        "millionaires": pair(("alice", [7], "alice is richer"), ("bob", [5], "alice is richer"), bits=8),
        "aggregate": Row(
            [("curator", [], "2 parties"), ("party", [[1.0, 2.0]], "["), ("party", [[3.0, 4.0]], "[")],
            {"dimension": 2, "sensitivity": 0.001, "epsilon": 1.0},
            hub="curator",
        ),
        "eigen": Row([("party", [draw(5, 2, seed=seed)], "[[") for seed in range(3)], {"features": 2, "bound": 100.0}),
        "eigenvector": pair(
            ("alice", [draw(5, 2)], "[["), ("bob", [draw(5, 2)], "[["), features=2, bound=100.0, squarings=1
        ),
        "eigenvector_vertical": pair(
            ("alice", [draw(5, 1)], "[["),
            ("bob", [draw(5, 2)], "[["),
            features=[1, 2],
            samples=5,
            bound=100.0,
            squarings=1,
        ),
        "keyword": Row(in_stream, one_word),
        "keyword_garbled": Row(in_circuit, {"shape": best.shape.to_params()}),
        "keyword_outcome": Row([("client", watched, "done"), ("server", [plain_models(one)], f"server1: {seen}")], few),
        "keyword_stream": Row(in_stream, one_word),
        "keyword_watch": Row([("client", watched, f"client0: {seen}"), ("server", [plain_models(one)], "done")], few),
        "sentence": sentence,
        "sentence_garbled": sentence,
        "sentence_stream": sentence,
        "discrete_keyword": pair(
            ("client", [symbols.tolist()], symbol_word),
            ("server", [plain_tables(tables)], "done"),
            shape=tables.words.shape.to_params(),
            symbols=4,
        ),
        "spotting": pair(
            ("client", [plain_keywords(sought["server"])], segment),
            ("server", [plain_recordings(searched["server"])], "done"),
            shape=archive.to_params(),
        ),
        "spotting_own": pair(
            ("client", [plain_recordings(searched["client"])], segment),
            ("server", [plain_keywords(sought["client"])], "done"),
            shape=owned.to_params(),
        ),
        "templates": pair(
            ("client", [walks[1]], "far"),
            ("server", [walks, ["near", "far"]], "done"),
            shape={"length": 4, "dimensions": 2, "templates": 2, "band": 2},
        ),
        "alignment": pair(
            ("client", [walks[0]], "(1, 3)"),
            ("server", [walks[0], -1.0], "done"),
            shape={"length": 4, "dimensions": 2, "templates": 1, "band": 2, "anchors": [1, 3]},
        ),
        "network": pair(
            ("client", [brief], f"client0: {[layered.labels[chosen]]}"),
            ("server", [plain_network(layered)], "done"),
            shape=layered.shape.to_params(),
        ),
        "network_training": pair(
            ("labels", [[0, 1, 1, 0]], "'outputs': ["),
            ("features", [draw(4, 2)], "'outputs': ["),
            rows=4,
            features=2,
            classes=2,
            hidden=2,
            steps=2,
        ),
        "patches": pair(
            ("client", [[[1.0, 0.0], [0.0, 1.0]], [0.9, 0.9], [1.0, 1.0], -1.5], "[2, None]"),
            ("server", [[[[0.0, 0.0]] * 2 + [[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0]] * 4]], "done"),
            shape={"pieces": 4, "numbers": 2, "bins": 2, "step": 1, "window": 1, "per_bin": 1, "recordings": 2},
        ),
        "music": pair(
            ("client", [melodies[1][2:6]], "second"),
            ("server", [melodies, ["first", "second"], 2.0], "done"),
            shape={"method": "fingerprints", "frames": 20, "songs": 3, "pattern": 4, "name_bytes": 7},
        ),
        "landmarks": pair(
            ("client", [[[5, 0], [6, 1], [9, 2]]], "first"),
            ("server", [[[[5, 10], [6, 11], [7, 3]], [[5, 1], [5, 2]]], ["first", "second"]], "done"),
            shape={"blocks": 1, "songs": 3, "asked": 4, "votes": 2, "name_bytes": 7},
        ),
        "grep": pair(
            ("seeker", ["(cat|dog)s?$"], "[(0, 4), (2, 0)]"),
            ("keeper", [["the cats", "no", "dog"]], "done"),
            shape={"lines": 4, "width": 10, "way": "automaton", "size": 16, "tells": "places"},
        ),
        "walk": pair(
            ("owner", [[["hall", "left", "vault"], ["vault", "back", "hall"]], "hall", ["vault"]], "done"),
            ("walker", [[["left"], ["left", "back"], ["back"]]], "[0]"),
            letters=["left", "back"],
            shape={"lines": 3, "width": 4, "way": "garbled", "size": 4, "to": "keeper"},
        ),
        "beliefs": Row(
            [
                *[("server", [], "3 nodes went round 2 times")] * 2,
                *[("person", [[prior] * (1 + place)], "[") for place, prior in enumerate((1.0, -2.0))],
            ],
            {
                "graph": {"nodes": 3, "edges": [[0, 1], [1, 2]], "couplings": [0.5, -0.5], "rounds": 2, "damping": 2},
                "holds": [[1], [2, 0]],
            },
        ),
        "beliefs_peers": Row(
            [("peer", [prior], "") for prior in (1.0, -2.0, 0.5)],
            {"graph": {"nodes": 3, "edges": [[0, 1], [2, 1]], "couplings": [0.5, -0.5], "rounds": 1}, **DEMO},
        ),
        "speaker_verification": pair(
            ("client", [[0.0, 1.0], 1], KNOWS),
            ("server", [[[1.0, 0.0], [0.0, 1.0]], 0.5], "accepted"),
            features=2,
            models=2,
        ),
        "speaker_verification_hardened": pair(
            ("client", [[1.0, 0.0], 0], "the server knows"),
            ("server", [[[1.0, 0.0]], 0.5], "accepted"),
            features=2,
            models=1,
            bits=64,
        ),
        "voice_login": pair(
            ("client", [[1.0, 0.0], np.eye(10).tolist()], "the server knows"),
            ("server", [[1.0, 0.0], np.eye(10).tolist(), 0.5], "accepted"),
            voice=2,
            digit=10,
            digits=2,
            voice_bits=64,
            digit_bits=64,
        ),
        "speaker_verification_mixture": pair(
            ("client", [[[2.0, 0.0]] * 3, 1], KNOWS),
            ("server", [background, moments_of(-2.0, 2.0), 0.1], "accepted"),
            **mixture_terms,
        ),
        "speaker_identification": pair(
            ("client", [[0.0, 1.0]], "Grace"),
            ("server", [[[1.0, 0.0], [0.0, 1.0]], ["Ada", "Grace"], 0.5], KNOWS),
            features=2,
            models=2,
            longest_name=8,
        ),
        "speaker_identification_for_third": Row(
            [
                ("client", [[0.0, 1.0]], KNOWS),
                ("server", [[[1.0, 0.0], [0.0, 1.0]], ["Ada", "Grace"], 0.5], KNOWS),
                ("third", [], "Grace"),
            ],
            {"features": 2, "models": 2, "longest_name": 8},
        ),
        "speaker_identification_crowd": pair(
            ("client", [[0.0, 1.0]], "Grace"),
            ("server", [[[1.0, 0.0], [0.0, 1.0]], ["Ada", "Grace"], 0.5], KNOWS),
            features=2,
            places=3,
            longest_name=8,
        ),
        "speaker_identification_mixture": pair(
            ("client", [[[2.0, 0.0]] * 3], "Grace"),
            ("server", [background, moments_of(-2.0, 2.0), ["Ada", "Grace"], 0.1], KNOWS),
            longest_name=8,
            **mixture_terms,
        ),
        "template_matching": Row(
            [
                ("keeper", [[[1.0, 0.0], [0.0, 1.0]], 0.7], "match"),
                ("store", [], "encrypted templates"),
                ("prober", [[0.0, 1.0], 1], KNOWS),
            ],
            {"features": 2, "places": 2, "recipient": "keeper"},
        ),
        "personal_filters": Row(
            [
                ("aggregator", [common, [0.0, 0.0]], "'standing': 'done'"),
                *[("contributor", [draw(8, 3, seed=seed), [0, 1] * 4], "all rounds are done") for seed in range(2)],
            ],
            filtered | {"common": digest_of(LinearFilter.of(torch.tensor(common)))},
            hub="aggregator",
        ),
        "train_average": training(about_rows | {"penalty": 0.1, "sizes": [20, 20]}, [labeled] * 2, "linear_table"),
        "train_descent": training(
            about_rows | {"rounds": 2, "step": 0.1, "clip": 1.0, "regularization": 1.0, "personal": 1.0},
            [labeled] * 2,
            "linear_table",
        ),
        "train_mixture": training({"components": 2, "rounds": 1, "epsilon": 4.0}, speech, "speaker_ubm"),
        "train_words": training(
            {"words": ["one", "two"], "states": 2, "rounds": 1, "epsilon": 4.0},
            [{"utterances": each, "words": ["one", "two"]} for each in speech],
            "keyword_hmm",
        ),
        "published_aggregation": Row(
            [*[("party", [[0.1 * place], 40 + place], "[") for place in range(3)], ("charlie", [], "[")],
            {"parties": 3, "dimension": 1, "epsilon": 1.0, "penalty": 1.0, **DEMO},
        ),
        "published_eigenvector": Row(
            [
                ("trent", [int(p * q)], "trent0: ["),
                *[("party", [draw(2, 2, seed=seed), [int(p), int(q)]], "[") for seed in range(2)],
            ],
            {"features": 2, "samples": [2, 2], "rounds": 2, "insecure_demo": True},
            hub="trent",
        ),
        "published_forward": pair(
            ("alice", [[0, 1]], "done"),
            ("bob", [word["initial"], word["transitions"], [[0.5, 0.5], [0.1, 0.9]]], "bob1: "),
            frames=2,
            states=2,
            alphabet=2,
            **DEMO | {"key_bits": 512},
        ),
        "published_gelu_net": pair(
            ("alice", [draw(2, 3)], "alice0: ["),
            ("bob", [{"matrices": [draw(3, 2), draw(2, 2)], "biases": [[0.0, 0.1], [0.2, 0.0]]}], "done"),
            sizes=[3, 2, 2],
            frames=2,
            **DEMO,
        ),
        "published_keyword": pair(
            ("alice", [[[0.1], [0.2]]], "here"),
            (
                "bob",
                [[word | {"word": "here", "means": [[0.0], [0.0]]}, word | {"word": "far", "means": [[4.0], [4.0]]}]],
                "done",
            ),
            frames=2,
            words=2,
            states=2,
            **DEMO | {"key_bits": 512},
        ),
    }
