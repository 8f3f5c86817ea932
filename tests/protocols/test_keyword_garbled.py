"""Words by garbled circuits: those of the integer twin, in two round trips; one label to the client, nothing more."""

from typing import Any

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.garbled import Garbler, parties
from ppspeech.crypto.garbled.parties import CHECK_BYTES
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols import Party
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.trellis import garbled, walk
from ppspeech.protocols.words import (
    KeywordJob,
    answer_garbled,
    check_told,
    encode_models,
    garbled_bytes,
    prepare_naming,
    recognize_garbled,
    why_not_garbled,
    word_circuit,
)
from ppspeech.protocols.words.garbled import client, move_residues, server
from tests.protocols.word_reference import made_models, made_utterance, plain_models, plain_scores, plain_word

SURE = 0.5
"""Nats by which a word must win in the clear, where its encrypted scores are right to half of that."""

SHAPES: list[dict[str, Any]] = [
    {},
    {"ends": (0, 1, 2)},
    {"terms": "diagonal", "dimensions": 5, "reject": True},
    {"moves": (0, 1, 2), "ends": (0, 1, 2), "radius": 2.0},
    {"components": 3, "ends": (2,), "bits": 27},
    {"components": 2, "moves": (0, 1, 2), "starts": (0, 1), "ends": (1, 2), "reject": True, "bits": 27},
    {"moves": (-1, 0, 1), "starts": (0, 2), "ends": (1, 2), "reject": True, "bits": 27},
    {"states": 1, "words": 1, "moves": (0,)},
    {"bits": 21, "words": 5},
    {"terms": "linear", "dimensions": 9, "states": 1, "moves": (0,)},
    {"frames": 1, "states": 1, "words": 4, "moves": (0,)},
    {"moves": (1,), "frames": 3, "ends": (2,)},
]


def viterbi(seed: int = 0, **sizes: Any) -> WordArrays:
    return made_models(seed, **({"operation": "viterbi"} | sizes))


def converse(
    models: WordArrays, *batches: list[np.ndarray]
) -> tuple[list[list[str | None]], list[Transcript], list[Transcript]]:
    """The words, and what the client exchanged for each batch, offline and online, with what it received."""
    offline: list[Transcript] = []
    online: list[Transcript] = []
    job = KeywordJob(models.shape, len(batches[0]))

    def ask(channel: Channel) -> list[list[str | None]]:
        met, found = meet_as_client(channel), []
        with met.session():
            for batch in batches:
                offline.append(Transcript(channel, keep_payloads=True))
                prepared = prepare_naming(Meeting(offline[-1], met.setup, met.lattice), job)
                online.append(Transcript(channel, keep_payloads=True))
                for each in prepared:
                    each._evaluator.channel = online[-1]
                found.append(recognize_garbled(Meeting(online[-1], met.setup, met.lattice), job, batch, prepared))
        return found

    def help_client(channel: Channel) -> None:
        met, weights = meet_as_server(channel), encode_models(models, job.utterances)
        with met.session():
            for _ in batches:
                answer_garbled(met, job, models, weights)

    found, _ = run_together(ask, help_client)
    return found, offline, online


def sure(models: WordArrays, frames: int, count: int) -> list[np.ndarray]:
    found = []
    for seed in range(200):
        each = made_utterance(models, frames, seed)
        best = np.sort(plain_scores(models, each))[::-1]
        if len(best) == 1 or best[0] - best[1] > SURE:
            found.append(each)
        if len(found) == count:
            return found
    raise AssertionError(f"only {len(found)} utterances have a sure word")


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_words_are_those_in_the_clear(sizes: dict[str, Any]) -> None:
    models = viterbi(3, **sizes)
    shape = models.shape
    lengths = sorted({shape.shortest, min(7, shape.frames), shape.frames})
    said = [each for frames in lengths for each in sure(models, frames, 2)]
    found, _, _ = converse(models, *[[each] for each in said])
    assert [words for (words,) in found] == [plain_word(models, each) for each in said]


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_words_are_those_of_the_integer_twin(sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parties' shares put together, then the graph on integers: also where words are as close as can be."""
    models = viterbi(5, **sizes)
    shape, circuit = models.shape, word_circuit(models.shape)
    shares: list[np.ndarray] = []
    for holder, name in ((garbled.WholeGarbling, "__init__"), (garbled.WholeEvaluation, "ask")):
        original = getattr(holder, name)

        def kept(self: Any, *args: Any, original: Any = original) -> Any:
            shares.append(next(arg for arg in args if getattr(arg, "ndim", 0) == 2))
            return original(self, *args)

        monkeypatch.setattr(holder, name, kept)
    said = [0.05 * made_utterance(models, frames, seed) for seed, frames in enumerate((shape.shortest, shape.frames))]
    found, _, _ = converse(models, *[[each] for each in said])
    ring = shape.scale.ring
    labels = [*models.labels, None]
    for number, (each, (word,)) in enumerate(zip(said, found, strict=True)):
        emissions = ring.to_signed(ring.join(*shares[2 * number : 2 * number + 2]))
        walked = walk(circuit.plan, ring.to_signed(move_residues(models)), emissions[..., None])
        assert walked.apart < 1 << (shape.bits - 1)
        assert word == labels[int(walked.fields[len(each) - 1, circuit.end, 0])]


def test_any_number_of_utterances_takes_two_round_trips() -> None:
    models = viterbi(3, words=4)
    batches = [[sure(models, 5 + n, 2)[b] for n in range(3)] for b in range(2)]
    found, offline, online = converse(models, *batches)
    assert found == [[plain_word(models, each) for each in batch] for batch in batches]
    assert [each.rounds for each in online] == [2, 2]
    total = sum(each.bytes_up + each.bytes_down for each in (offline[0], online[0]))
    assert total == garbled_bytes(models.shape, 3)


def test_bytes_and_rounds_are_those_said_before_whatever_is_said() -> None:
    shapes = []
    for seed, frames in ((0, 12), (1, 3), (2, 8)):
        models = viterbi(seed, reject=True, ends=(2,))
        _, offline, online = converse(models, [made_utterance(models, frames, seed)])
        shapes.append((offline[0].shape(), online[0].shape()))
        assert online[0].rounds == 2
        assert sum(each.bytes_up + each.bytes_down for each in (offline[0], online[0])) == garbled_bytes(models.shape)
    assert shapes[0] == shapes[1] == shapes[2]


def test_the_client_receives_every_text_hidden_and_opens_one() -> None:
    """No label of a word that was not said is in what it received, and texts that it cannot open are not zeros."""
    models = viterbi(3, words=3)
    named = WordArrays(models.shape, models.weights, models.transitions, models.initial, ("yes", "y" * 28, "maybe"))
    (utterance,) = sure(named, 7, 1)
    (words,), offline, online = converse(named, [utterance])
    assert words == [plain_word(named, utterance)]
    received = [each for record in (*offline, *online) for each in record.entries if each.direction == "received"]
    assert not any(label.encode() in (each.payload or b"") for each in received for label in ("y" * 8, "yes", "maybe"))
    (hidden,) = (each.payload or b"" for each in received if each.kind == CryptoKind.HIDDEN_TEXTS)
    rows = np.frombuffer(hidden, np.uint8).reshape(4, 28 + CHECK_BYTES)
    assert all((row != 0).sum() > 20 for row in rows)  # that of the number which nobody has, too
    text = np.frombuffer((words[0] or "").encode().ljust(28, b"\0") + bytes(CHECK_BYTES), np.uint8)
    for pad in rows ^ text:  # one of these hid it: whichever, it opens no other
        assert ((rows ^ pad)[:, 28:] == 0).all(axis=1).sum() == 1


def test_where_a_text_stands_says_nothing_of_its_number() -> None:
    """The same word of the same utterance again: its row is at another place, uniformly; missed once in 2^19 runs."""
    models = viterbi(3, words=4, frames=4)
    (utterance,) = sure(models, 4, 1)
    places = []
    original = parties._row

    def kept(outputs: np.ndarray) -> int:
        places.append(original(outputs))
        return places[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parties, "_row", kept)
        found, _, _ = converse(models, *[[utterance]] * 20)
    assert {words[0] for words in found} == {plain_word(models, utterance)}
    assert len(set(places)) > 1


def test_a_client_that_names_no_last_frame_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a frame that there is not: without a path no word is told, not even the first."""
    models = viterbi(3, words=2, frames=5, states=1, moves=(0,))
    bits = garbled._bits

    def beyond(numbers: np.ndarray, count: int) -> np.ndarray:
        is_last_frame = len(numbers) == 1 and count == word_circuit(models.shape).last_bits
        return bits(numbers, count) | np.uint64(is_last_frame)  # 7 of 5

    monkeypatch.setattr(garbled, "_bits", beyond)
    found, _, _ = converse(models, [made_utterance(models, 5, 0)])
    assert found == [[None]]


def test_a_server_that_damages_labels_learns_nothing_and_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    models = viterbi(3)
    (utterance,) = sure(models, 7, 1)
    _, _, usual = converse(models, [utterance], [utterance])
    send = Garbler._send_labels
    monkeypatch.setattr(Garbler, "_send_labels", lambda self, labels: send(self, labels ^ np.uint64(2)))
    found, _, online = converse(models, [utterance], [utterance])
    assert found == [[None], [None]]
    assert [each.shape() for each in online] == [each.shape() for each in usual]
    with pytest.raises(ProtocolError, match="no word beat all others"):
        check_told(models.shape, found[0])


def test_a_label_that_is_no_text_is_shown_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on shares: it cannot command the client's terminal, and no error tells the server which word was said."""
    models = viterbi(3)
    (utterance,) = sure(models, 7, 1)
    name = garbled.WholeGarbling.name

    def nonsense(self: garbled.WholeGarbling, texts: list[bytes]) -> None:
        name(self, [b"a\xff\x1b[2J".ljust(len(each), b"\0") for each in texts])

    monkeypatch.setattr(garbled.WholeGarbling, "name", nonsense)
    found, _, _ = converse(models, [utterance])
    assert found == [["a\ufffd\ufffd[2J"]]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"operation": "forward"}, "serve words with operation=viterbi"),
    ({"floor": 100, "reach": 18}, "no floor under scores"),
    ({"frames": 3000, "words": 1000, "bits": 32}, "too many for a circuit"),
]


@pytest.mark.parametrize(("sizes", "said"), REFUSED, ids=str)
def test_what_a_circuit_does_not_take_is_refused_by_both(sizes: dict[str, Any], said: str) -> None:
    usual = {"frames": 12, "dimensions": 3, "terms": "full", "words": 3, "states": 3, "ends": (2,)}
    shape = WordShape(**(usual | {"operation": "viterbi"} | sizes))
    assert said in (why_not_garbled(shape) or "")
    with pytest.raises(RangeError, match=said):
        word_circuit(shape)


def test_what_cannot_be_scored_is_refused_before_anything_is_sent() -> None:
    models = viterbi()
    for said in ([np.zeros((2, 3))], [np.full((5, 3), np.nan)], []):
        with pytest.raises(RangeError):
            recognize_garbled(None, KeywordJob(models.shape), said)  # type: ignore[arg-type]


def test_the_programs_run_on_plain_inputs() -> None:
    models = viterbi(3)
    (utterance,), params = sure(models, 7, 1), models.shape.to_params()
    answers = run_together(
        lambda c: client(Party("client", {"server": c}), utterance.tolist(), shape=params),
        lambda c: server(Party("server", {"client": c}), plain_models(models), shape=params),
    )
    assert answers == (plain_word(models, utterance), None)
