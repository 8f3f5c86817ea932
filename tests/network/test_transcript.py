"""A transcript says what was sent, no more and no less."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ppspeech.channel import Channel
from ppspeech.network import Transcript, memory_pair, run_together


def talk(messages: list[tuple[bool, int, bytes]], first: bool, keep: bool = True) -> Transcript:
    """Play a script from one side, with a transcript around the channel."""

    def play(channel: Channel) -> Transcript:
        recorded = Transcript(channel, keep_payloads=keep)
        for from_first, kind, payload in messages:
            if from_first == first:
                recorded.send(kind, payload)
            else:
                assert recorded.receive(kind, size=len(payload)) == payload
        return recorded

    def other(channel: Channel) -> None:
        for from_first, kind, payload in messages:
            if from_first == first:
                channel.receive(kind, size=len(payload))
            else:
                channel.send(kind, payload)

    return run_together(play, other)[0]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 254), st.binary(max_size=20)), max_size=12), st.booleans())
def test_entries_and_totals_equal_what_was_sent(messages: list[tuple[bool, int, bytes]], first: bool) -> None:
    recorded = talk(messages, first)
    assert [(e.direction == "sent", e.kind, e.payload) for e in recorded.entries] == [
        (from_first == first, kind, payload) for from_first, kind, payload in messages
    ]
    assert recorded.messages == len(messages)
    assert recorded.bytes_up == sum(len(payload) for side, _, payload in messages if side == first)
    assert recorded.bytes_down == sum(len(payload) for side, _, payload in messages if side != first)
    times = [entry.seconds for entry in recorded.entries]
    assert times == sorted(times)


def test_rounds_count_waits() -> None:
    ask, tell = (True, 1, b""), (False, 2, b"")
    for messages, ours, theirs in [
        ([], 0, 0),
        ([ask], 0, 1),
        ([ask, ask, tell, tell], 1, 1),
        ([ask, tell] * 5, 5, 5),
        ([ask, tell, ask], 1, 2),
    ]:
        assert talk(messages, first=True).rounds == ours
        assert talk(messages, first=False).rounds == theirs


def test_payloads_are_kept_only_when_asked_for_and_never_shown() -> None:
    messages = [(True, 1, b"SECRET")]
    assert talk(messages, first=True, keep=False).entries[0].payload is None
    kept = talk(messages, first=True, keep=True)
    assert kept.entries[0].payload == b"SECRET"
    assert "SECRET" not in repr(kept.entries)


def test_a_table_for_people() -> None:
    recorded = talk([(True, 1, b"abc")] * 3 + [(False, 2, b"x" * 2000)], first=True)
    text = io.StringIO()
    Console(file=text, width=100).print(recorded.table({1: "question"}))
    shown = text.getvalue()
    assert "question" in shown
    assert "2,000 down" in shown
    assert "9 up" in shown
    assert "1 rounds" in shown
    assert len([line for line in shown.splitlines() if "sent" in line]) == 1
    assert recorded.shape() == [("sent", 1, 3)] * 3 + [("received", 2, 2000)]


def test_a_view_of_wide_items_counts_bytes() -> None:
    here, there = memory_pair()
    recorded = Transcript(here)
    recorded.send(1, memoryview(bytes(16)).cast("Q"))
    assert recorded.bytes_up == 16
    assert there.receive(1, size=16) == bytes(16)
