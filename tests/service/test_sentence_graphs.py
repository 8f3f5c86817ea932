"""Language models and lexicons over TLS: words and times as in the clear, by both engines, with back-offs followed
exactly; and what a server with larger graphs offers.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ppspeech.audio import MfccConfig
from ppspeech.bundle import Bundle, BundleConfig, SentenceBank, SentenceTranscriber, load_bundle, write_bundle
from ppspeech.errors import BundleError, WrongSessionError
from ppspeech.protocols.sentences import garbled_bytes, held_bytes
from ppspeech.service import SentenceDeployment, export_bundle, plan_sentences
from ppspeech.service.client import sentences as client_module
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.service.tasks import sentences as task_module
from ppspeech.service.tasks.sentences import Mode
from tests.bundle.conftest import gaussian_account, statement_of
from tests.service.conftest import Running
from tests.service.voices import LABELS, RATE, SENTENCES, released, sure

Serve = Callable[..., AbstractContextManager[Running]]

MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
SHORT = SentenceDeployment(frames=64)
START, END = len(LABELS), len(LABELS) + 1
BIGRAMS = replace(
    SENTENCES,
    ngrams=((0,), (1,), (2,), (START,), (END,), (0, 1), (1, 2), (2, 2), (START, 0), (2, END)),
    language_scale=5.0,
)
TRIGRAMS = replace(BIGRAMS, ngrams=(*BIGRAMS.ngrams, (START, 0, 1), (0, 1, 2)))
TREE = replace(SENTENCES, states=1, units=("k", "ae", "t"), lexicon=((0, 1, 2), (0, 1), (0, 2)))
"""No word begins with the unit that one ends with: where such words meet would be a matter of opinion."""
KINDS = {
    "bigrams": BIGRAMS,
    "trigrams": TRIGRAMS,
    "tree": TREE,
    "tree with bigrams": replace(TREE, ngrams=BIGRAMS.ngrams),
    "tree with a grammar": replace(TREE, grammar="aardvark (bumblebee | caterpillar)+"),
}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("graphs")
    return {name.replace(" ", "_"): released(folder / name, each, MFCC, seed=3) for name, each in KINDS.items()}


def test_every_graph_is_followed_as_in_the_clear(serve: Serve, graphs: dict[str, Bundle]) -> None:
    with serve(graphs, sentences=SHORT) as running:
        for name, bundle in graphs.items():
            with running.connect(name) as client:
                asked: list[tuple[int, Mode]] = [(40, "frames"), (61, "frames"), (40, "garbled")]
                for frames, mode in asked:
                    sound = sure(bundle, frames, frames)
                    (answer,) = client.transcribe_all([sound], RATE, mode)
                    assert answer.value == bundle.transcribe(sound, RATE), (name, mode)


def test_back_offs_cost_words_that_longer_histories_have(tmp_path: Path, serve: Serve) -> None:
    """A pair that is rare by its bigram and usual without it: a plain back-off would hear it."""
    config = BundleConfig(replace(BIGRAMS, word_penalty=0.0, language_scale=1.0), LABELS, MFCC)
    torch.manual_seed(0)
    bank = config.build()
    assert isinstance(bank, SentenceBank)
    for parameter in bank.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    bank.language.data.copy_(torch.full((2, 10), -0.1))
    bank.language.data[0, 5:9] = -300.0  # what is listed is never said; what is not, by backing off
    account = gaussian_account()
    bundle = write_bundle(
        tmp_path / "rough", model=bank, config=config, statement=statement_of(account), account=account
    )
    exact = bundle.transcriber
    assert isinstance(exact, SentenceTranscriber)
    plain = replace(exact, graph=exact.graph.drawn.plain().compile())
    sound = sure(bundle, 60, 1)
    assert plain.transcribe_all([sound], RATE)[0] != (heard := bundle.transcribe(sound, RATE))
    with serve({"rough": bundle}, sentences=SHORT) as running, running.connect("rough") as client:
        assert client.transcribe(sound, RATE).value == heard


def test_what_n_grams_weigh_stays_with_the_server(graphs: dict[str, Bundle]) -> None:
    """Two language models that list the same offer the same, to the byte."""
    bundle = graphs["bigrams"]
    one = ServedSentences.of("one", bundle, SHORT).offer
    changed = bundle.model
    assert isinstance(changed, SentenceBank)
    before = changed.language.data.clone()
    try:
        changed.language.data[:] -= torch.rand(2, 10) / 10
        other = ServedSentences.of("one", bundle, SHORT).offer
        differing = export_bundle(bundle, SHORT)
    finally:
        changed.language.data.copy_(before)
    same = export_bundle(bundle, SHORT)
    assert (same.arcs != differing.arcs).any()
    assert one.terms.shape == other.terms.shape


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ngrams": [[0], [9]]}, "n-grams are of 3 words"),
        ({"ngrams": [[0], [-1]]}, "n-grams are of 3 words"),
        ({"ngrams": [[0], [0]]}, "different"),
        ({"ngrams": [[]]}, "of 1 to 4 words"),
        ({"ngrams": [[0, 0, 0, 0, 0]]}, "of 1 to 4 words"),
        ({"ngrams": [[0], [1]], "grammar": "aardvark"}, "leave one of them out"),
        ({"ngrams": "many"}, "must be a list"),
        ({"language_scale": 0.0}, "language_scale"),
        ({"lexicon": [[0]]}, "there are some where words have parts"),
        ({"units": ["k"], "lexicon": [[0], [0, 0]]}, "3 words need as many rows"),
        ({"units": ["k"], "lexicon": [[0], [], [0, 0]]}, "1 to 64 of 1 units"),
        ({"units": ["k"], "lexicon": [[0], [1], [0, 0]]}, "1 to 64 of 1 units"),
        ({"units": ["k", "k"], "lexicon": [[0], [1], [0, 0]]}, "units are different"),
    ],
)
def test_graphs_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    plain = json.loads(json.dumps(BundleConfig(SENTENCES, LABELS, MFCC).to_json()))
    plain["settings"] |= changes
    with pytest.raises(BundleError, match=message):
        BundleConfig.from_json(plain).build()


def test_bundles_from_before_there_were_lexicons_are_read() -> None:
    plain = json.loads(json.dumps(BundleConfig(SENTENCES, LABELS, MFCC).to_json()))
    for name in ("units", "lexicon", "ngrams", "language_scale"):
        del plain["settings"][name]
    assert BundleConfig.from_json(plain).settings == SENTENCES


# Circuits whose tables a client would hold.


def test_a_circuit_is_offered_where_its_tables_are_not_too_many(
    serve: Serve, graphs: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the server, which says so in its plan; and a client does not take one that offers more."""
    bundle = graphs["tree"]
    shape = export_bundle(bundle, SHORT).shape
    size = garbled_bytes(shape)
    plan = plan_sentences(bundle, SHORT)
    assert plan.details["held_bytes"] == held_bytes(shape) > size / 2
    with serve({"tree": bundle}, sentences=SHORT) as running:
        monkeypatch.setattr(client_module, "MOST_BYTES", size)
        running.connect("tree").close()
        monkeypatch.setattr(client_module, "MOST_BYTES", size - 1)
        with pytest.raises(WrongSessionError, match="tables of more than"):
            running.connect("tree")
    for most in (size - 1, 1000):  # by what is counted, or before a circuit is drawn
        monkeypatch.setattr(task_module, "MOST_BYTES", most)
        assert ServedSentences.of("tree", bundle, SHORT).offer.terms.modes == ("frames",)
        told = plan_sentences(bundle, SHORT)
        assert told.details["held_bytes"] == 0
        assert any("tables of a garbled circuit" in each for each in told.warnings)
        assert all("frames" in mode.mode for mode in told.modes)


def test_a_loaded_bundle_says_what_it_is(graphs: dict[str, Bundle], tmp_path: Path) -> None:
    assert "made of 3 units" in graphs["tree"].config.task
    assert "language model of 10 n-grams" in graphs["bigrams"].config.task
    again = released(tmp_path / "again", BIGRAMS, MFCC)
    assert load_bundle(tmp_path / "again").config == again.config
    assert again.transcribe(sure(again, 40), RATE, grammar="aardvark+") is not None  # a caller's own, in its place
