"""What a client opens never changes what it sends: a server cannot make one of its labels tell that it was said."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
import pytest

from ppspeech.arrays import Residues
from ppspeech.bundle import Bundle
from ppspeech.crypto.shares import read_text
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import keyword
from ppspeech.service.client import words as client_module
from tests.service.conftest import Running
from tests.service.voices import LABELS, RATE, plain_answer, voice

Serve = Callable[..., AbstractContextManager[Running]]

MARKED = LABELS[0]
MARKS = {"no text": np.uint64(2**56 - 1), "nothing": np.uint64(0)}


@pytest.fixture(autouse=True)
def one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine looks like a slow link, and another order of steps has other sizes."""
    monkeypatch.setattr(client_module, "choose_order", lambda _, orders, *__: orders[0])


def strict(residues: Residues) -> str | None:
    """As it was: what is no label ends the session, which the server sees."""
    text = read_text(residues)
    if text is None or "\ufffd" in text:
        raise ProtocolError("no text")
    return text


def sounds(bundle: Bundle) -> dict[bool, list[Any]]:
    """Sounds of which the marked word is, or is not, recognized."""
    found: dict[bool, list[Any]] = {True: [], False: []}
    for seed in range(60):
        word, margin = plain_answer(bundle, voice(seed))
        if margin > 1:
            found[word == MARKED].append(voice(seed))
    return found


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("careful", [False, True], ids=["strict", "as it is"])
def test_a_marked_label_does_not_tell_the_server_what_was_said(
    careful: bool, mark: str, serve: Serve, bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own log, over TLS: how each session ended, what it took, and what came after the answer."""
    original = WordArrays.label_numbers.func  # type: ignore[attr-defined]

    def marked(models: WordArrays) -> Residues:
        numbers: Residues = original(models).copy()
        numbers[[label == MARKED for label in models.labels]] = MARKS[mark]
        return numbers

    monkeypatch.setattr(WordArrays, "label_numbers", property(marked))
    by_word = sounds(bundles["whole"])
    said = [True, False, False, True]
    with serve({"whole": bundles["whole"]}) as running:
        with running.connect() as client:
            client.recognize(by_word[False][0], RATE)  # what it costs is known from here on
        if not careful:
            monkeypatch.setattr(keyword, "read_text", strict)
        for is_marked in said:
            sound = by_word[is_marked].pop()
            with running.connect() as client, suppress(PpspeechError):
                answer = client.recognize_all([sound] * 2, RATE)  # two batches: the second comes in any case
                assert (answer[0].value == "\ufffd" * 28) is is_marked
        ended = []
        while len(ended) <= len(said):
            time.sleep(0.05)
            lines = [json.loads(line) for line in running.log.read_text().splitlines()]
            ended = [line for line in lines if line["event"] == "session ended" and line["protocol"] == "whole"]
    seen = [
        {name: line[name] for name in ("outcome", "queries", "rounds", "bytes_up", "bytes_down")} for line in ended[1:]
    ]
    told = [each != seen[1] for each in seen]
    assert told == ([False] * 4 if careful else said)


def test_an_answer_without_a_word_is_an_error_of_the_client_alone(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no garbage model, nobody's label cannot be."""
    monkeypatch.setattr(keyword, "read_text", lambda residues: None)
    with running.connect() as client:
        with pytest.raises(ProtocolError, match="no word beat all others"):
            client.recognize(voice(0), RATE)
        streaming = client.stream(RATE)
        listening = streaming.__enter__()
        listening.feed(voice(0))
        assert listening.finish().value is None
        with pytest.raises(ProtocolError, match="no word"):
            streaming.__exit__(None, None, None)
        monkeypatch.undo()
        assert client.recognize(voice(0), RATE).value in LABELS  # the session goes on
