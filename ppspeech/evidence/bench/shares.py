"""Operations on shares between two processes over loopback sockets: max, log-add, argmax and comparison."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, uniform_residues
from ppspeech.crypto.shares import (
    Cost,
    LogAdd,
    ShareEngine,
    argmax,
    argmax_cost,
    is_negative,
    is_negative_cost,
    log_add,
    log_add_cost,
    maximum,
    maximum_cost,
    open_bits_to,
    open_cost,
    open_to,
)
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.figures import Figure
from ppspeech.network import Transcript, run_in_processes

RING = Ring(21)
LOG_ADD = LogAdd(RING, fraction=6, step=3)
STEPS, STATES = 98, 50
COMPARISONS = 10_000
CANDIDATES = 10
READY = 1


@dataclass(frozen=True)
class Job:
    """Something two parties compute on shares, and its answer.

    Attributes:
        name: in the metrics.
        cost: its formula.
        shares: both parties' inputs.
        run: the operation; the second party gets the answer.
        answer: what it must be, from the inputs in the clear; None where it depends on how they are shared.
    """

    name: str
    cost: Cost
    shares: tuple[Residues, Residues]
    run: Callable[[ShareEngine, Residues], NDArray[np.uint64] | NDArray[np.uint8] | None]
    answer: NDArray[np.int64] | None


@dataclass(frozen=True)
class Measured:
    """Times of one job in milliseconds, best of the repeats, and what went over the wire."""

    offline_ms: float
    online_ms: float
    total_ms: float
    median_ms: float
    bytes: int
    rounds: int


@BENCHES.register("shares")
def run(quick: bool) -> list[Figure]:
    """Measure every job, offline and online apart."""
    repeats = 5 if quick else 30
    load = os.getloadavg()[0]
    setup_ms, measured = measure(jobs(), repeats)
    note = (
        f"two processes, TCP on loopback; offline and online; best of {repeats} after a warm-up; "
        f"{os.cpu_count()} cores, load {load:.1f}"
    )
    figures = [Figure("shares.setup_ms", setup_ms, "ms", note="512 base transfers, once for a pair of parties")]
    for name, result in measured.items():
        total = "ms" if name.startswith(("argmax", "compare")) else "total_ms"
        figures += [
            Figure(f"shares.{name}.{total}", result.total_ms, "ms", note=note),
            Figure(f"shares.{name}.median_ms", result.median_ms, "ms", note=note),
            Figure(f"shares.{name}.offline_ms", result.offline_ms, "ms", note=note),
            Figure(f"shares.{name}.online_ms", result.online_ms, "ms", note=note),
            Figure(f"shares.{name}.bytes", result.bytes, "B", note="payload, offline and online, both ways"),
            Figure(f"shares.{name}.rounds", result.rounds, note="round trips online"),
        ]
    return figures


def jobs(steps: int = STEPS, states: int = STATES, comparisons: int = COMPARISONS) -> list[Job]:
    """The recursions of the keyword problem with max and with log-add, a decision among words, and comparisons."""
    emissions = RING.to_signed(uniform_residues((steps, states), 9)) - 256
    words = RING.to_signed(uniform_residues((1, CANDIDATES), 12))
    many = RING.to_signed(uniform_residues(comparisons, RING.bits))
    to_second = Side.SECOND
    recursion = open_cost(to_second, RING, states)
    return [
        Job(
            f"max{steps}x{states}",
            (maximum_cost(RING, states) * steps).in_flights() + recursion,
            _share(emissions),
            lambda engine, own: open_to(engine, to_second, _recursion(engine, own, maximum, RING), RING),
            _viterbi(emissions),
        ),
        Job(
            f"logadd{steps}x{states}",
            (log_add_cost(LOG_ADD, states) * steps).in_flights() + recursion,
            _share(emissions),
            lambda engine, own: open_to(engine, to_second, _recursion(engine, own, log_add, LOG_ADD), RING),
            None,
        ),
        Job(
            f"argmax{CANDIDATES}",
            argmax_cost(RING, 1, CANDIDATES) + open_cost(to_second, Ring(1), CANDIDATES),
            _share(words),
            lambda engine, own: open_bits_to(engine, to_second, argmax(engine, own, RING)),
            np.eye(CANDIDATES, dtype=np.int64)[[int(words.argmax())]],
        ),
        Job(
            f"compare{comparisons // 1000}k",
            is_negative_cost(RING, comparisons) + open_cost(to_second, Ring(1), comparisons),
            _share(many),
            lambda engine, own: open_bits_to(engine, to_second, is_negative(engine, own, RING)),
            (many < 0).astype(np.int64),
        ),
    ]


def measure(work: list[Job], repeats: int) -> tuple[float, dict[str, Measured]]:
    """Run every job `repeats` times after once to warm up: milliseconds of the setup, and figures by name.

    Raises:
        PpspeechError: if an answer is wrong, or bytes or rounds are not those of the formula.
    """
    return run_in_processes(
        lambda channel: _party(channel, Side.SECOND, work, repeats),
        lambda channel: _party(channel, Side.FIRST, work, repeats),
    )


def _party(channel: Channel, party: Side, work: list[Job], repeats: int) -> tuple[float, dict[str, Measured]]:
    start = time.perf_counter()
    setup = PairSetup.agree(channel, party)
    setup_ms = 1e3 * (time.perf_counter() - start)
    measured = {}
    with setup.session(channel):
        for job in work:
            _check(channel, setup, job)
            times = []
            for _ in range(repeats):
                _wait_for_each_other(channel)
                began = time.perf_counter()
                engine = ShareEngine(channel, setup, job.cost)
                _wait_for_each_other(channel)
                prepared = time.perf_counter()
                job.run(engine, job.shares[party])
                _wait_for_each_other(channel)
                ended = time.perf_counter()
                times.append((1e3 * (ended - began), 1e3 * (prepared - began), 1e3 * (ended - prepared)))
            total, offline, online = min(times)
            median = statistics.median(each[0] for each in times)
            measured[job.name] = Measured(offline, online, total, median, job.cost.total_bytes, job.cost.rounds)
    return setup_ms, measured


def _check(channel: Channel, setup: PairSetup, job: Job) -> None:
    """Warm up, and hold the result against the answer and the transcript against the formula."""
    offline, online = Transcript(channel), Transcript(channel)
    engine = ShareEngine(offline, setup, job.cost)
    engine.channel = online
    got = job.run(engine, job.shares[setup.party])
    if setup.party is Side.FIRST:
        return
    sent = offline.bytes_up + offline.bytes_down + online.bytes_up + online.bytes_down
    if (sent, online.rounds) != (job.cost.total_bytes, job.cost.rounds):
        raise PpspeechError(f"{job.name}: {sent} bytes and {online.rounds} rounds are not those of {job.cost}")
    if job.answer is not None and not np.array_equal(RING.to_signed(np.asarray(got, np.uint64)), job.answer):
        raise PpspeechError(f"{job.name}: the result is not that of the computation in the clear")


def _recursion(
    engine: ShareEngine, emissions: Residues, operation: Callable[..., Residues], how: Ring | LogAdd
) -> Residues:
    """γ_t(j) = op(γ_{t-1}(j), γ_{t-1}(j - 1)) + e_t(j) for all t."""
    state: Residues = np.zeros_like(emissions[0])
    with engine.in_flights():
        for emission in emissions:
            state = RING.reduce(operation(engine, state, np.concatenate([state[-1:], state[:-1]]), how) + emission)
    return state


def _viterbi(emissions: NDArray[np.int64]) -> NDArray[np.int64]:
    state: NDArray[np.int64] = np.zeros_like(emissions[0])
    for emission in emissions:
        state = np.maximum(state, np.roll(state, 1)) + emission
    return state


def _share(values: NDArray[np.int64]) -> tuple[Residues, Residues]:
    return RING.share(RING.from_signed(values))


def _wait_for_each_other(channel: Channel) -> None:
    channel.send(READY, b"")
    channel.receive(READY, 0)
