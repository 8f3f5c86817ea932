"""Vectors, question after question: words as in the clear, costs as recorded, and to each party what it is told."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.shares import argmax
from ppspeech.crypto.shares.engine import HEADER
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols import Kind, meet_as_client, meet_as_server
from ppspeech.protocols.words import Questions, Told, Watch, attend, encode_models, watch
from tests.protocols.word_reference import made_models, plain_scores, plain_word

SIZES: dict[str, Any] = {
    "words": 10, "states": 1, "frames": 1, "dimensions": 12, "terms": "linear", "moves": (0,), "operation": "viterbi",
    "reject": True, "radius": 3.0,
}  # fmt: skip
MODELS = made_models(**SIZES)
DRAWN = [3 * each for each in np.random.default_rng(4).standard_normal((20, 12))]
VECTORS = [each for each in DRAWN if np.diff(np.sort(plain_scores(MODELS, each[None]))[-2:]) > 0.3][:12]
"""Of which word there is no doubt."""


def asked(
    job: Questions, vectors: list[Reals], finish: bool = True
) -> tuple[list[str | None], Transcript, list[str | None]]:
    """The client's words and record, and the server's words."""
    heard: list[str | None] = []

    def client(channel: Channel) -> tuple[list[str | None], Transcript]:
        met = meet_as_client(channel)
        record = Transcript(channel, keep_payloads=True)
        recorded = replace(met, channel=record)
        with recorded.session():
            questions = Watch(recorded, job)
            words = [questions.ask(each) for each in vectors]
            if finish:
                questions.finish()
        return words, record

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            attend(met, job, MODELS, encode_models(MODELS), heard.append)

    (words, record), _ = run_together(client, server)
    return words, record, heard


def opened_by(record: Transcript) -> list[bytes]:
    """What the client sent to be opened, out of its flights."""
    found = []
    for entry in record.entries:
        data = entry.payload or b""
        while entry.direction == "sent" and entry.kind == CryptoKind.FLIGHT and data:
            kind, length = HEADER.unpack_from(data)
            if kind == CryptoKind.OPEN:
                found.append(data[HEADER.size : HEADER.size + length])
            data = data[HEADER.size + length :]
    return found


@pytest.mark.parametrize("told", ["client", "server"])
def test_whoever_is_told_hears_the_words_and_the_other_nothing(told: Told) -> None:
    job = Questions(MODELS.shape, told, len(VECTORS))
    wanted = [plain_word(MODELS, each[None]) for each in VECTORS]
    words, record, heard = asked(job, VECTORS)
    nothing: list[str | None] = [None] * len(VECTORS)
    assert words == (wanted if told == "client" else nothing)
    assert heard == ([] if told == "client" else wanted)
    assert len(set(wanted)) > 2
    assert None in wanted
    sent = (
        record.bytes_up
        + record.bytes_down
        - sum(len(each.payload or b"") for each in record.entries if each.kind == CryptoKind.RESUME)
    )
    assert sent == job.total_bytes


@pytest.mark.parametrize("told", ["client", "server"])
def test_fewer_may_be_asked_than_were_prepared(told: Told) -> None:
    job = Questions(MODELS.shape, told, 6)
    words, record, heard = asked(job, VECTORS[:2])
    wanted = [plain_word(MODELS, each[None]) for each in VECTORS[:2]]
    assert (words if told == "client" else heard) == wanted
    assert record.entries[-1].kind == Kind.STEP


def test_one_more_than_were_prepared_is_refused_and_not_sent() -> None:
    with pytest.raises(RangeError, match="2 questions were prepared"):
        asked(Questions(MODELS.shape, "client", 2), VECTORS[:3])


def test_a_vector_that_cannot_be_scored_is_refused_and_not_sent() -> None:
    for bad in (np.zeros(11), np.full(12, np.nan)):
        with pytest.raises(RangeError):
            asked(Questions(MODELS.shape, "client", 2), [bad])


def test_a_client_tells_as_many_bits_as_name_a_word() -> None:
    """Of all that it sends, the part of a place alone depends on the voice: ten words, or none, are 4 bits."""
    job = Questions(MODELS.shape, "server", len(VECTORS))
    _, record, _ = asked(job, VECTORS)
    opened = opened_by(record)
    assert MODELS.shape.answer_bits == 4
    assert [len(each) for each in opened] == [1] * len(VECTORS)
    assert all(each[0] < 16 for each in opened)
    assert len(set(opened)) > 2  # masked by the server's part, whatever the word is
    assert opened_by(asked(Questions(MODELS.shape, "client", 3), VECTORS[:3])[1]) == []


def test_the_part_of_a_place_is_uniform_whatever_was_said() -> None:
    """The same vector again and again, by a chi-square test of its parts with a false alarm in five million."""
    job, parts = Questions(MODELS.shape, "server", 48), list[int]()
    for _ in range(2):
        _, record, heard = asked(job, [VECTORS[0]] * 48)
        assert len(set(heard)) == 1
        parts += [each[0] for each in opened_by(record)]
    counts = np.bincount(parts, minlength=16)
    assert ((counts - 6.0) ** 2 / 6).sum() < 60  # of 15 degrees


def test_a_server_that_bends_its_shares_learns_no_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may bring any bits; the client's message has its 4 bits all the same."""
    real: Callable[..., Any] = argmax

    def bent(residues: Any) -> Any:
        found = real(residues)
        if found.engine.is_first:
            found.own[:] = 1
        return found

    monkeypatch.setattr(watch, "argmax", bent)
    _, record, heard = asked(Questions(MODELS.shape, "server", 4), VECTORS[:4])
    assert [len(each) for each in opened_by(record)] == [1] * 4
    assert len(heard) == 4


@pytest.mark.parametrize("said", [b"\2", b"\xff", b"", b"\1\1"], ids=repr)
def test_a_client_that_says_anything_else_is_refused(said: bytes) -> None:
    job = Questions(MODELS.shape, "client", 2)

    def client(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            job.prepare(met)
            met.channel.send(Kind.STEP, said)
            met.channel.receive(Kind.REPLY, job.plan.job.reply_bytes)

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            attend(met, job, MODELS, encode_models(MODELS))

    with pytest.raises(ProtocolError):
        run_together(client, server)
