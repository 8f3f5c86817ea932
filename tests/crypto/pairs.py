"""Two parties in one process, on one setup for the whole run of the tests."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from ppspeech.channel import Channel
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.recorder import record
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.network import Transcript, run_together

Result = TypeVar("Result")


def agree() -> tuple[PairSetup, PairSetup]:
    return run_together(
        lambda channel: PairSetup.agree(channel, Side.FIRST), lambda channel: PairSetup.agree(channel, Side.SECOND)
    )


@cache
def _shared() -> list[tuple[PairSetup, PairSetup]]:
    return []


def lasting_setup() -> tuple[PairSetup, PairSetup]:
    """A setup that many tests use one after the other; a new one when a test has spent it."""
    kept = _shared()
    if not kept or not all(half.usable for half in kept[-1]):
        kept.append(agree())
    return kept[-1]


def together(
    program: Callable[[ShareEngine, Side], Result],
    cost: Cost | None = None,
    setup: tuple[PairSetup, PairSetup] | None = None,
) -> tuple[Result, Result, Transcript, Transcript]:
    """Run one program as both parties: what the two returned, and the transcripts of the second, offline and online.

    It must cost what a dry run of either party says, byte by byte; a cost that is given is held against the wire alone.
    """
    halves = setup or lasting_setup()
    if cost is None:
        cost, mirrored = (record(lambda engine: program(engine, side), side) for side in reversed(Side))  # noqa: B023
        assert cost == mirrored
    records: dict[str, Transcript] = {}

    def party(channel: Channel, which: Side) -> Any:
        half = halves[which]
        with half.session(channel):
            offline = Transcript(channel, keep_payloads=True)
            engine = ShareEngine(offline, half, cost)
            online = Transcript(channel, keep_payloads=True)
            engine.channel = online
            if which is Side.SECOND:
                records.update(offline=offline, online=online)
            result = program(engine, which)
            left = engine.correlations.left
            assert not left.tables
            assert not left.products
            return result

    first, second = run_together(lambda c: party(c, Side.FIRST), lambda c: party(c, Side.SECOND))
    check_cost(cost, records["offline"], records["online"])
    return first, second, records["offline"], records["online"]


def check_cost(cost: Cost, offline: Transcript, online: Transcript) -> None:
    """The transcript of the second party is what was recorded, to the byte."""
    assert (online.bytes_up, online.bytes_down) == (cost.bytes_second, cost.bytes_first)
    assert (online.messages, online.rounds) == (cost.messages, cost.rounds)
    assert (offline.bytes_up, offline.bytes_down) == (cost.offline_bytes_second, cost.offline_bytes_first)
