"""Sentences by garbled circuits: words and times of the clear decoder, in two round trips, nothing to the server."""

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.crypto.garbled import Garbler
from ppspeech.errors import BadLengthError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.streamed import GivenModels, TakenModels
from ppspeech.protocols.sentences import (
    CHUNK,
    Heard,
    ListeningEar,
    SentenceArrays,
    SentenceShape,
    answer_garbled,
    check_heard,
    encode_sentences,
    follow_speech,
    garbled_bytes,
    prepare_question,
    sentence_circuit,
    stream_plan,
    streamed,
    transcribe_garbled,
)
from tests.protocols.sentence_reference import hear, loop_arrays, say
from tests.protocols.test_sentence import grammar_arrays


def converse(
    arrays: SentenceArrays, *utterances: np.ndarray
) -> tuple[list[list[Heard]], list[Transcript], list[Transcript]]:
    """What the client heard, and what was exchanged for each, offline and online."""
    offline: list[Transcript] = []
    online: list[Transcript] = []

    def client(channel: Channel) -> list[list[Heard]]:
        met, found = meet_as_client(channel), []
        with met.session():
            for utterance in utterances:
                offline.append(Transcript(channel))
                prepared = prepare_question(Meeting(offline[-1], met.setup, met.lattice), arrays.shape)
                online.append(Transcript(channel))
                prepared._evaluator.channel = online[-1]
                counted = Meeting(online[-1], met.setup, met.lattice)
                found.append(transcribe_garbled(counted, arrays.shape, utterance, prepared))
        return found

    def server(channel: Channel) -> None:
        met, weights = meet_as_server(channel), encode_sentences(arrays)
        with met.session():
            for _ in utterances:
                answer_garbled(met, arrays, weights)

    found, _ = run_together(client, server)
    return found, offline, online


def listen(arrays: SentenceArrays, portion: int, *utterances: np.ndarray) -> list[list[Heard]]:
    """The same in portions."""
    terms = streamed(arrays.shape, "garbled")

    def client(channel: Channel) -> list[list[Heard]]:
        met, found, models = meet_as_client(channel), [], TakenModels(terms)
        with met.session():
            for frames in utterances:
                ear = ListeningEar(met, arrays.shape, models, "garbled")
                for at in range(0, len(frames), portion):
                    ear.hear(frames[at : at + portion])
                found.append(ear.finish())
        return found

    def server(channel: Channel) -> None:
        met, models = meet_as_server(channel), GivenModels(terms, arrays.weights)
        with met.session():
            for _ in utterances:
                follow_speech(met, arrays, models, "garbled")

    return run_together(client, server)[0]


def tree_arrays() -> SentenceArrays:
    """Two words that share their first state, and are known at their end."""
    loop = loop_arrays(words=3, states=1, frames=16)
    arcs = [(0, 0, 0, -1), (1, 1, 0, -1), (2, 2, 0, -1), (0, 1, 0, -1), (0, 2, 0, -1)]
    arcs += [(1, 3, 0, 0), (2, 3, 0, 1), (3, 0, 1, -1)]
    shape = SentenceShape(16, 2, "diagonal", (0, 1, 2, -1), tuple(arcs), ((0, -1),), 3, ("ab", "ac"), 6, radius=12.0)
    return SentenceArrays(shape, loop.weights, np.zeros(len(arcs)), np.zeros(1))


def spoken_tree(arrays: SentenceArrays) -> np.ndarray:
    return arrays.weights[2:4].T[[0, 1, 1, 0, 2, 0, 0, 1]]


SERVICES = {
    "loop": (lambda: loop_arrays(words=4, seed=3), lambda a: [say(a, 0, 2, 1), say(a, 1), say(a, 3, 0, 1)[:11]]),
    "grammar": (grammar_arrays, lambda a: [say(a, 0, 1), say(a, 1, 0, 0), say(a, 0, 0)]),
    "tree": (tree_arrays, lambda a: [spoken_tree(a), spoken_tree(a)[:3]]),
}


@pytest.mark.parametrize("name", SERVICES)
def test_words_and_times_are_those_in_the_clear(name: str) -> None:
    make, speak = SERVICES[name]
    arrays = make()
    said = speak(arrays)
    found, _, _ = converse(arrays, *said)
    assert found == [hear(arrays, frames) for frames in said]
    assert len(sentence_circuit(arrays.shape).fields) == (2 if name == "tree" else 1)


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("portion", [1, 5])
def test_while_they_are_spoken_too(name: str, portion: int) -> None:
    make, speak = SERVICES[name]
    arrays = make()
    said = speak(arrays)
    found = listen(arrays, portion, *said)
    assert found == [hear(arrays, frames) for frames in said]


def test_long_utterances_are_followed_while_labels_are_under_way() -> None:
    arrays = loop_arrays(frames=60, most_words=8)
    said = say(arrays, 0, 1, 2, 0, stay=6)
    found = listen(arrays, 3, said[:45])
    assert found[0] == hear(arrays, said[:45])


def test_bytes_and_rounds_are_those_said_before_whatever_is_said() -> None:
    arrays = loop_arrays()
    _, offline, online = converse(arrays, say(arrays, 0, 0, 0, stay=1), np.zeros((24, 2)))
    assert offline[0].shape() == offline[1].shape()
    assert online[0].shape() == online[1].shape()
    assert [each.rounds for each in online] == [2, 2]
    total = sum(each.bytes_up + each.bytes_down for each in (offline[0], online[0]))
    assert total == garbled_bytes(arrays.shape)


def test_more_words_than_agreed_are_an_error_at_the_client_alone() -> None:
    arrays = loop_arrays(most_words=2)
    found, _, online = converse(arrays, say(arrays, 0, 1, 0, 1, stay=1), say(arrays, 0))
    assert found[0] == hear(arrays, say(arrays, 0, 1, 0, 1, stay=1))[-2:]
    with pytest.raises(RangeError, match="more than 2 words"):
        check_heard(arrays.shape, found[0])
    assert [each.word for each in found[1]] == ["word 0"]
    assert online[0].shape() == online[1].shape()


def test_a_server_that_damages_labels_learns_nothing_and_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = loop_arrays()
    send = Garbler._send_labels
    monkeypatch.setattr(Garbler, "_send_labels", lambda self, labels: send(self, labels ^ np.uint64(2)))
    found, _, _ = converse(arrays, say(arrays, 0), say(arrays, 1))  # the second is answered as if nothing had happened
    assert found == [[], []]
    with pytest.raises(RangeError, match="does not follow the protocol"):
        check_heard(arrays.shape, found[0])


def test_a_key_of_the_server_answers_no_more_than_it_can_lose() -> None:
    shape = loop_arrays().shape
    terms, bits = streamed(shape, "garbled"), sentence_circuit(shape).answer_bits
    assert terms.answers_a_key * bits <= terms.plan.precision.parameters.leakable_bits
    with pytest.raises(RangeError, match="more of the server's key"):
        streamed(loop_arrays(frames=3000, most_words=1000).shape, "garbled")


@pytest.mark.parametrize("count", [0, CHUNK + 1, 255])
def test_a_client_that_sends_what_is_no_chunk_is_refused(count: int) -> None:
    arrays = loop_arrays()

    def client(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            ListeningEar(met, arrays.shape, TakenModels(streamed(arrays.shape, "garbled")), "garbled")
            channel.send(Kind.FRAME, bytes([count]) + bytes(stream_plan(arrays.shape).job.reply_bytes))
            channel.receive(1, 1)

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            follow_speech(met, arrays, GivenModels(streamed(arrays.shape, "garbled"), arrays.weights), "garbled")

    with pytest.raises(BadLengthError, match="expected frames"):
        run_together(client, server)


def test_what_cannot_be_scored_is_refused_before_anything_is_sent() -> None:
    arrays = loop_arrays()
    with pytest.raises(RangeError, match="2 to 24 frames here, got 1"):
        transcribe_garbled(None, arrays.shape, np.zeros((1, 2)))  # type: ignore[arg-type]
