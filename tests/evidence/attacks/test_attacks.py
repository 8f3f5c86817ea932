"""Every attack fails against the defaults, and wins where the defense that it is aimed at is taken out."""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ppspeech.arrays import Residues
from ppspeech.bundle import Bundle
from ppspeech.cli import app
from ppspeech.crypto.lattice import Precision, public_key
from ppspeech.crypto.lattice import evaluator as lattice_evaluator
from ppspeech.crypto.lattice.wire import HEADER_BYTES
from ppspeech.crypto.lattice.zeros import SEED_BYTES
from ppspeech.crypto.shares import read_text
from ppspeech.crypto.transfer import base
from ppspeech.crypto.transfer.extension import ColumnSender
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import ATTACKS, Attack, Gain, Outcome, Target, run_attack, speakers
from ppspeech.network.channel import frames, session
from ppspeech.network.tls import certificates
from ppspeech.protocols.scores import linear
from ppspeech.protocols.speakers import gallery
from ppspeech.protocols.words import keyword, keyword_stream
from ppspeech.registry import listed
from ppspeech.service.server import session as server_session
from ppspeech.service.server.stores import QueryBudget
from tests.service.test_networks import NETWORK
from tests.service.voices import LABELS, LIVE, SENTENCES, SPEAKERS, released

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("bundles") / "live", mfcc=LIVE, seed=1)


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("bundles") / "voices", SPEAKERS)


@pytest.fixture(scope="module")
def target(words: Bundle) -> Iterator[Target]:
    """As it is by default: one server for all attacks that need no other."""
    with Target(words, quick=True) as found:
        yield found


# Defenses, taken out.


def key_holder_chooses(patch: Patch) -> None:
    """The second half of a key is 1, as its holder would have it."""
    patch.setattr(public_key, "second_half", lambda coins, ring: np.ones(ring.degree, np.uint64))


def seeds_repeat(patch: Patch) -> None:
    checked = lattice_evaluator.load_query

    def lenient(received: bytes, ring: Any, job: bytes, key: bytes, polynomials: int) -> tuple[list[bytes], Residues]:
        size = (len(received) - HEADER_BYTES) // polynomials
        places = [HEADER_BYTES + size * number for number in range(polynomials)]
        made = bytearray(received)
        for number, place in enumerate(places):
            made[place : place + SEED_BYTES] = number.to_bytes(SEED_BYTES, "big")
        _, first = checked(bytes(made), ring, job, key, polynomials)
        return [received[place : place + SEED_BYTES] for place in places], first

    patch.setattr(lattice_evaluator, "load_query", lenient)


def points_unchecked(patch: Patch) -> None:
    """Neither by us nor by libsodium, whose product refuses points outside the group and whose addition does not."""

    def multiply(scalar: bytes, point: bytes) -> bytes:
        product, doubled = None, point
        for bit in range(8):  # enough to go on: what is sent does not depend on the product
            if scalar[0] >> bit & 1:
                product = doubled if product is None else base.sodium.crypto_core_ed25519_add(product, doubled)
            doubled = base.sodium.crypto_core_ed25519_add(doubled, doubled)
        return product or point

    patch.setattr(base, "checked", lambda point: point)
    patch.setattr(base, "multiply", multiply)


def columns_unchecked(patch: Patch) -> None:
    patch.setattr(ColumnSender, "_check", lambda *_: None)


def labels_checked(patch: Patch) -> None:
    """As it was: what is no label ends the session, which the server sees."""

    def strict(residues: Residues) -> str | None:
        text = read_text(residues)
        if text is None or "\ufffd" in text:
            raise ProtocolError("no text")
        return text

    patch.setattr(keyword, "read_text", strict)


def one_key_for_ever(patch: Patch) -> None:
    patch.setattr(keyword_stream, "streams_a_key", lambda shape: 10**6)


def keeper_never_spent(patch: Patch) -> None:
    patch.setattr(gallery, "PROBES_A_KEY", 10**6)


def everyone_an_authority(patch: Patch) -> None:
    usual = certificates.x509.BasicConstraints
    patch.setattr(certificates.x509, "BasicConstraints", lambda **_: usual(ca=True, path_length=0))


def queries_uncounted(patch: Patch) -> None:
    patch.setattr(QueryBudget, "spend", lambda self, model, client, queries: (True, self.left(model, client)))


def any_session(patch: Patch) -> None:
    usual = session.check_header

    def lenient(header: bytes, **expected: Any) -> int:
        fields = list(frames.HEADER.unpack(header))
        fields[3] = expected["session"]
        return usual(frames.HEADER.pack(*fields), **expected)

    patch.setattr(session, "check_header", lenient)


def residues_reduced(patch: Patch) -> None:
    usual = lattice_evaluator.load_public_key
    patch.setattr(lattice_evaluator, "load_public_key", lambda key, *rest: usual(bytes(len(key)), *rest))


def any_length(patch: Patch) -> None:
    """Claims are scored by products, as between parties that keep to the protocol, and this client does not."""
    patch.setattr(speakers, "SCORING", "linear")
    patch.setattr(linear, "check_vectors", lambda vectors, *_: vectors)
    patch.setattr(Precision, "encode", lambda self, values: np.rint(values * self.unit).astype(np.int64))


def places_in_order(patch: Patch) -> None:
    patch.setattr("ppspeech.service.server.stores.DRAWS", 0)
    patch.setattr(secrets, "choice", min)


def scores_given(patch: Patch) -> None:
    """As a service would that gives scores: nothing masks them."""
    patch.setattr(lattice_evaluator, "uniform_residues", lambda shape, *_: np.zeros(shape, np.uint64))


def any_steps(patch: Patch) -> None:
    patch.setattr(server_session, "_handler", lambda handlers, request: handlers[request.what])


OUT: dict[str, Callable[[Patch], None]] = {
    "chosen_key": key_holder_chooses,
    "repeated_seeds": seeds_repeat,
    "small_order": points_unchecked,
    "stream_key": key_holder_chooses,
    "marked_label": labels_checked,
    "key_by_streams": one_key_for_ever,
    "flipped_columns": columns_unchecked,
    "home_made_certificates": everyone_an_authority,
    "hanging_up": queries_uncounted,
    "replayed_frames": any_session,
    "forged_messages": residues_reduced,
}
FOR_SENTENCES: dict[str, Callable[[Patch], None]] = {"chosen_frames": scores_given, "forged_lengths": any_steps}
OF_BOTH = [name for name in OUT if name not in FOR_SENTENCES and name in {
    "small_order", "flipped_columns", "home_made_certificates", "hanging_up", "replayed_frames", "forged_messages",
}]  # fmt: skip
FOR_SPEAKERS: dict[str, Callable[[Patch], None]] = {
    "key_by_probes": keeper_never_spent,
    "long_vectors": any_length,
    "counting_people": places_in_order,
}


LONG = {"key_by_streams", "key_by_probes"}
"""More than a hundred questions: an answer each before the key is replaced."""


def quick_first(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in names]


@pytest.mark.parametrize("name", quick_first(OUT))
def test_it_fails_as_things_are(name: str, target: Target) -> None:
    ended = run_attack(name, target)
    assert ended.verdict == "failed", ended
    assert ended.gain is not None
    assert ended.gain.tries >= 1


@pytest.mark.parametrize("name", quick_first(OUT))
def test_it_wins_without_the_defense(name: str, words: Bundle, monkeypatch: Patch) -> None:
    OUT[name](monkeypatch)
    with Target(words, quick=True) as attacked:
        ended = run_attack(name, attacked)
    assert ended.verdict == "WON", ended


@pytest.mark.parametrize("defended", [True, False])
@pytest.mark.parametrize("name", quick_first(FOR_SPEAKERS))
def test_attacks_on_speakers(name: str, defended: bool, voices: Bundle, monkeypatch: Patch) -> None:
    if not defended:
        FOR_SPEAKERS[name](monkeypatch)
    with Target(voices, quick=True) as attacked:
        ended = run_attack(name, attacked)
    assert ended.verdict == ("failed" if defended else "WON"), ended


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("bundles") / "sentences", SENTENCES, LIVE)


@pytest.fixture(scope="module")
def asked_sentences(sentences: Bundle) -> Iterator[Target]:
    with Target(sentences, quick=True) as found:
        yield found


@pytest.mark.parametrize(
    "name",  # what models of words are attacked with above is slow here
    [pytest.param(name, marks=() if name == "hanging_up" else pytest.mark.slow) for name in OF_BOTH] + [*FOR_SENTENCES],
)
def test_attacks_on_sentences_fail_as_things_are(name: str, asked_sentences: Target) -> None:
    ended = run_attack(name, asked_sentences)
    assert ended.verdict == "failed", ended


@pytest.mark.parametrize("name", [*FOR_SENTENCES, "hanging_up", "replayed_frames"])
def test_attacks_on_sentences_win_without_the_defense(name: str, sentences: Bundle, monkeypatch: Patch) -> None:
    """One that would give scores gives its models with them."""
    (OUT | FOR_SENTENCES)[name](monkeypatch)
    with Target(sentences, quick=True) as attacked:
        ended = run_attack(name, attacked)
    assert ended.verdict == "WON", ended
    assert name != "chosen_frames" or (ended.gain is not None and ended.gain.gained > 0.9)


def test_shifted_shares_of_sentences_tell_words_as_is_stated(asked_sentences: Target) -> None:
    ended = run_attack("shifted_scores", asked_sentences)
    assert ended.verdict == "stated", ended
    assert ended.gain is not None
    assert ended.gain.gained >= 1
    assert run_attack("share_shifting", asked_sentences).why == "it is against words"


def test_the_command_attacks_sentences_of_a_bundle_and_of_a_server(asked_sentences: Target, tmp_path: Path) -> None:
    released(tmp_path / "said", SENTENCES, LIVE)
    code, shown = run(str(tmp_path / "said"), "--quick", "--json", "--only", "small_order", "--only", "marked_label")
    assert code == 0
    lines = {line.get("metric") or line["attack"]: line for line in map(json.loads, shown.splitlines())}
    assert lines["active.attack.small_order.gained"]["value"] == 0
    assert lines["active.bits_per_query"]["value"] > 100
    assert lines["marked_label"]["why"] == "it is against words"
    door = asked_sentences.usual.door
    assert door.tls is not None
    where = str(door.address), "--pin", str(door.tls.pin), "--quick", "--json"
    code, shown = run(*where, "--only", "forged_lengths", "--only", "chosen_frames")
    assert code == 0
    said = {line.get("metric") or line["attack"]: line for line in map(json.loads, shown.splitlines())}
    assert said["active.attack.forged_lengths.gained"]["value"] == 0
    assert "--bundle" in said["chosen_frames"]["why"]


def test_a_shifted_share_tells_one_label_a_query_as_is_stated(words: Bundle) -> None:
    with Target(words) as attacked:
        ended = run_attack("share_shifting", attacked)
    assert ended.verdict == "stated"
    assert ended.gain is not None
    assert (ended.gain.gained, ended.gain.tries) == (len(LABELS), len(LABELS))


@pytest.mark.parametrize("masked", [True, False])
def test_weights_of_a_network_stay_where_they_are(masked: bool, tmp_path: Path, monkeypatch: Patch) -> None:
    """Unless replies are not masked: then all of the first layer are read."""
    if not masked:
        nothing = lambda shape, bits: np.zeros(shape, np.uint64)  # noqa: E731
        monkeypatch.setattr(lattice_evaluator, "uniform_residues", nothing)
    with Target(released(tmp_path / "net", NETWORK)) as served:
        outcome = run_attack("chosen_activations", served)
        assert run_attack("chosen_key", served).verdict == "not tried"
    assert outcome.verdict == ("failed" if masked else "WON")


def test_every_attack_is_tried_both_ways_here() -> None:
    assert {*OUT, *FOR_SPEAKERS, *FOR_SENTENCES, "chosen_activations", "share_shifting", "shifted_scores"} == set(
        ATTACKS
    )
    assert listed("ppspeech.evidence.attacks", by="attack").keys() == set(ATTACKS)


def test_a_verdict_follows_from_what_was_gained() -> None:
    told = Attack("told", "something", ("words",), lambda _: Gain(0, "", 1, False), stated=True)
    plain = Attack("plain", "something", ("words",), told.run)
    assert Outcome(plain, Gain(0, "bits", 1, False)).verdict == "failed"
    assert Outcome(told, Gain(3, "labels", 3, False)).verdict == "stated"
    assert Outcome(told, Gain(9, "labels", 3, True)).verdict == "WON"
    assert Outcome(plain, None, "it does not stream").verdict == "not tried"


# The command.


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["attack", *words])
    return result.exit_code, result.output


def test_the_command_attacks_a_bundle(tmp_path: Path) -> None:
    released(tmp_path / "live", mfcc=LIVE, seed=1)
    code, shown = run(str(tmp_path / "live"), "--quick", "--json", "--only", "small_order", "--only", "key_by_probes")
    assert code == 0
    lines = [json.loads(line) for line in shown.splitlines()]
    assert [line.get("metric") for line in lines] == ["active.attack.small_order.gained", "active.bits_per_query", None]
    assert [line.get("value") for line in lines] == [0, 2, None]
    assert lines[-1] == {"attack": "key_by_probes", "verdict": "not tried", "why": "it is against speakers"}


def test_the_command_ends_with_1_where_an_attack_wins(tmp_path: Path, monkeypatch: Patch) -> None:
    released(tmp_path / "live", mfcc=LIVE, seed=1)
    points_unchecked(monkeypatch)
    code, shown = run(str(tmp_path / "live"), "--quick", "--only", "small_order")
    assert code == 1
    assert "WON" in shown


def test_the_command_attacks_a_server_that_runs(target: Target) -> None:
    door = target.usual.door
    assert door.tls is not None
    where = str(door.address), "--pin", str(door.tls.pin), "--quick", "--json"
    code, shown = run(*where, "--only", "small_order", "--only", "chosen_key", "--only", "home_made_certificates")
    assert code == 0
    said = {line.get("metric") or line["attack"]: line for line in map(json.loads, shown.splitlines())}
    assert said["active.attack.small_order.gained"]["value"] == 0
    assert "--bundle" in said["chosen_key"]["why"]
    assert "--certificate" in said["home_made_certificates"]["why"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("192.0.2.1:7000", "--pin", "0" * 64), "--mine"),
        (("server.example:7000", "--pin", "0" * 64), "attack only what is yours"),
        (("words", "--mine"), "go with HOST:PORT"),
        (("words", "--only", "nothing"), "no attack called 'nothing'"),
    ],
)
def test_what_must_not_be_attacked(words: tuple[str, ...], said: str) -> None:
    code, shown = run(*words)
    assert code == 2
    assert said in " ".join(shown.split())


def test_attacks_are_listed_without_running_one() -> None:
    code, shown = run("--json")
    assert code == 0
    assert {json.loads(line)["name"] for line in shown.splitlines()} == set(ATTACKS)
