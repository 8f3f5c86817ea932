"""Operations on shares between two processes over loopback sockets: max, log-add, argmax and comparison.

Needs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, uniform_residues
from ppspeech.crypto.shares import (
    LogAdd,
    Shared,
    ShareEngine,
    argmax,
    blank,
    is_negative,
    log_add,
    maximum,
    open_bits_to,
    open_to,
    record,
)
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.two_parties import Meet, Timed, measure
from ppspeech.figures import Figure

RING = Ring(21)
LOG_ADD = LogAdd(RING, fraction=6, step=3)
STEPS, STATES = 98, 50
COMPARISONS = 10_000
CANDIDATES = 10


@BENCHES.register("shares")
def run(quick: bool) -> list[Figure]:
    """Measure every job, offline and online apart."""
    repeats = 5 if quick else 30
    load = machine()
    measured = measure(jobs(), repeats, meet=MEETING)
    note = f"two processes, TCP on loopback; offline and online; best of {repeats} after a warm-up; {load}"
    setup = 1e3 * next(iter(measured.values())).meeting
    figures = [Figure("shares.setup_ms", setup, "ms", note="128 base transfers, once for a pair of parties")]
    for name, result in measured.items():
        total = "ms" if name.startswith(("argmax", "compare")) else "total_ms"
        figures += result.figures(f"shares.{name}", total, note)
    return figures


def jobs(steps: int = STEPS, states: int = STATES, comparisons: int = COMPARISONS) -> list[Timed]:
    """The recursions of the keyword problem with max and with log-add, a decision among words, and comparisons."""
    emissions = RING.to_signed(uniform_residues((steps, states), 9)) - 256
    words = RING.to_signed(uniform_residues((1, CANDIDATES), 12))
    many = RING.to_signed(uniform_residues(comparisons, RING.bits))
    to_second = Side.SECOND
    return [
        _job(
            f"max{steps}x{states}",
            emissions,
            lambda engine, own: open_to(engine, to_second, _recursion(engine, own, _maximum), RING),
            _viterbi(emissions),
        ),
        _job(
            f"logadd{steps}x{states}",
            emissions,
            lambda engine, own: open_to(engine, to_second, _recursion(engine, own, _log_add), RING),
            None,
        ),
        _job(
            f"argmax{CANDIDATES}",
            words,
            lambda engine, own: argmax(Shared(engine, own, RING)).open_to(to_second),
            np.eye(CANDIDATES, dtype=np.int64)[[int(words.argmax())]],
        ),
        _job(
            f"compare{comparisons // 1000}k",
            many,
            lambda engine, own: open_bits_to(engine, to_second, is_negative(engine, own, RING)),
            (many < 0).astype(np.int64),
        ),
    ]


def in_session(side: Side) -> Meet:
    """How one side meets the other: it agrees on transfers."""

    @contextmanager
    def meet(channel: Channel) -> Iterator[PairSetup]:
        setup = PairSetup.agree(channel, side)
        with setup.session(channel):
            yield setup

    return meet


MEETING = in_session(Side.SECOND), in_session(Side.FIRST)


def _job(
    name: str,
    values: NDArray[np.int64],
    operation: Callable[[ShareEngine, Residues], NDArray[np.uint64] | NDArray[np.uint8] | None],
    wanted: NDArray[np.int64] | None,
) -> Timed:
    """An operation on shares of `values`, opened to the client; None: what it gives depends on how they are shared."""
    shares = RING.share(RING.from_signed(values))
    cost = record(lambda engine: operation(engine, blank(*values.shape)))

    def half(setup: PairSetup, channel: Channel) -> Callable[[], object]:
        engine = ShareEngine(channel, setup, cost)
        return lambda: operation(engine, shares[setup.party])

    def right(got: Residues) -> bool:
        return wanted is None or np.array_equal(RING.to_signed(np.asarray(got, np.uint64)), wanted)

    return Timed(name, half, half, right, cost.total_bytes, cost.rounds)


def _recursion(
    engine: ShareEngine, emissions: Residues, operation: Callable[[ShareEngine, Residues, Residues], Residues]
) -> Residues:
    """γ_t(j) = op(γ_{t-1}(j), γ_{t-1}(j - 1)) + e_t(j) for all t."""
    state: Residues = np.zeros_like(emissions[0])
    with engine.in_flights():
        for emission in emissions:
            state = RING.reduce(operation(engine, state, np.concatenate([state[-1:], state[:-1]])) + emission)
    return state


def _maximum(engine: ShareEngine, left: Residues, right: Residues) -> Residues:
    return maximum(Shared(engine, left, RING), Shared(engine, right, RING)).residues


def _log_add(engine: ShareEngine, left: Residues, right: Residues) -> Residues:
    return log_add(engine, left, right, LOG_ADD)


def _viterbi(emissions: NDArray[np.int64]) -> NDArray[np.int64]:
    state: NDArray[np.int64] = np.zeros_like(emissions[0])
    for emission in emissions:
        state = np.maximum(state, np.roll(state, 1)) + emission
    return state
