"""The timer of two parties: it times both parts, and believes nothing that is wrong."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench.two_parties import STRANGERS, Timed, measure

QUERY = 7


def ask(_: None, channel: Channel) -> Callable[[], object]:
    """Ten bytes offline; three bytes there and four back, twice, online."""
    channel.send(QUERY, bytes(10))

    def online() -> bytes:
        for _ in range(2):
            channel.send(QUERY, bytes(3))
            answer = channel.receive(QUERY, 4)
        return answer

    return online


def reply(_: None, channel: Channel) -> Callable[[], object]:
    channel.receive(QUERY, 10)

    def online() -> None:
        for _ in range(2):
            channel.receive(QUERY, 3)
            channel.send(QUERY, b"four")

    return online


JOB = Timed("talk", ask, reply, lambda answer: answer == b"four", bytes=24, rounds=2)


def test_bytes_and_rounds_are_those_of_the_wire() -> None:
    for job in (JOB, replace(JOB, bytes=None, rounds=None)):
        found = measure([job], repeats=2, meet=STRANGERS)["talk"]
        assert (found.bytes, found.rounds) == (24, 2)
        assert found.total == pytest.approx(found.offline + found.online)
        assert found.median >= found.total > 0
        assert found.megabytes > 1


@pytest.mark.parametrize("slow", ["offline", "online"])
def test_the_two_parts_are_told_apart_on_either_side(slow: str) -> None:
    def late(party: Callable[..., Callable[[], object]]) -> Callable[..., Callable[[], object]]:
        def half(met: None, channel: Channel) -> Callable[[], object]:
            online = party(met, channel)
            time.sleep(0.4 * (slow == "offline"))

            def both() -> object:
                time.sleep(0.4 * (slow == "online"))
                return online()

            return both

        return half

    for job in (replace(JOB, client=late(ask)), replace(JOB, server=late(reply))):
        found = measure([job], repeats=1, meet=STRANGERS)["talk"]
        assert getattr(found, slow) >= 0.2  # either side may be scheduled a little before the other


def test_figures_have_the_names_and_units_asked_for() -> None:
    found = measure([JOB], repeats=1, meet=STRANGERS)["talk"]
    names = [figure.metric for figure in found.figures("x.talk", "total_ms", "a note")]
    assert names == [f"x.talk.{end}" for end in ("total_ms", "median_ms", "offline_ms", "online_ms", "bytes", "rounds")]
    seconds = found.figures("x.talk", "s", "")
    assert (seconds[0].metric, seconds[0].unit, seconds[0].value) == ("x.talk.s", "s", found.total)
    assert (seconds[1].metric, seconds[2].value) == ("x.talk.median_s", 1e3 * found.offline)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"right": lambda _: False}, "no figure can be trusted"),
        ({"bytes": 25}, "where the formula says"),
        ({"rounds": 3}, "where the formula says"),
    ],
)
def test_what_is_wrong_stops_it(fault: dict[str, object], words: str) -> None:
    with pytest.raises((PpspeechError, ProtocolError), match=words):
        measure([replace(JOB, **fault)], repeats=1, meet=STRANGERS)  # type: ignore[arg-type]
