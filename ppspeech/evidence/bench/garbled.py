"""Garbled circuits: a gate, a loop of digits as it is spoken and whole, and a word over a slow link.

Needs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Scale, uniform_bytes, uniform_residues
from ppspeech.crypto.garbled import Builder, run_circuit, table_buffer
from ppspeech.crypto.lattice import (
    MatrixPlan,
    Precision,
    ReplyMask,
    encode_weights,
    plan_product,
    share_before,
)
from ppspeech.crypto.transfer import BlockHash
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.two_parties import Measured, Timed, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.trellis import (
    Arc,
    Rule,
    Set,
    Start,
    Trellis,
    TrellisCircuit,
    WholeEvaluation,
    WholeGarbling,
    plan_circuit,
    plan_trellis,
    whole_cost,
)

FRAME_SECONDS = 0.03
MONOMIALS = 820
SCALE = Scale(14, 2)
LINK_SECONDS = 0.02
"""Half a round trip."""


@BENCHES.register("garbled")
def run(quick: bool) -> list[Figure]:
    """Gates alone; then whole jobs with their encrypted product, on loopback and over a round trip of 40 ms."""
    repeats = 3 if quick else 12
    figures = gate_figures(5 if quick else 50)
    where = f"two processes, TCP, {machine()}; best of {repeats}"
    jobs = [Loop("digits", 11, 5, 99, meets=True), Loop("word33", 10, 5, 33), Loop("word98", 10, 5, 98)]
    for delay, link in ((0.0, "loopback"), (LINK_SECONDS, "link40")):
        measured = measure([job.timed() for job in jobs], repeats, delay=delay)
        for job in jobs:
            figures += job_figures(job, link, measured[job.name], where)
    return figures


def gate_figures(repeats: int, lanes: int = 55) -> list[Figure]:
    """Nanoseconds a gate, of sums and maxima of 14 bits in as many lanes as a loop of digits has states."""
    build = Builder()
    left, right = build.inputs(SCALE.bits, lanes), build.inputs(SCALE.bits, lanes)
    build.maximum(build.add(left, right), right)
    circuit, hasher, delta = build.finish(), BlockHash(uniform_bytes(16)), uniform_residues(2) | np.uint64(1)
    wires, table = uniform_residues((circuit.wires, 2)), table_buffer(circuit.gates)
    figures = []
    for name, own in (("garble", delta), ("evaluate", None)):
        seconds = best_seconds(lambda own=own: run_circuit(circuit, wires, hasher, own, table, 0), repeats)  # type: ignore[misc]
        figures.append(Figure(f"garbled.{name}_ns", 1e9 * seconds / circuit.gates, "ns", note=f"an and, {machine()}"))
    return figures


def job_figures(job: "Loop", link: str, measured: Measured, where: str) -> list[Figure]:
    """Seconds offline and online, megabytes, and for what is as long as speech both a second of it."""
    name, spoken = f"garbled.{job.name}.{link}", job.frames * FRAME_SECONDS
    gates = job.circuit.forward_gates + job.circuit.back_gates()
    note = f"{job.frames} frames, {gates:,} gates; {where}"
    figures = [
        Figure(f"{name}.offline_ms", 1e3 * measured.offline, "ms", note=note),
        Figure(f"{name}.online_ms", 1e3 * measured.online, "ms", note=note),
        Figure(f"{name}.bytes", measured.bytes, "B", note="payload, offline and online, both ways"),
        Figure(f"{name}.rounds", measured.rounds, note="round trips online"),
    ]
    if job.meets:
        figures += [
            Figure(f"{name}.real_time", measured.total / spoken, note="seconds a second of speech, all phases"),
            Figure(f"{name}.mb_per_s", measured.bytes / 1e6 / spoken, "MB/s", note="a second of speech, all phases"),
        ]
    return figures


@dataclass(frozen=True)
class Loop:
    """Words of states that are said one after the other (`meets`), or one of which is said; scores by an encrypted
    product of made-up monomials, with which every state is told from the others.
    """

    name: str
    words: int
    states: int
    frames: int
    meets: bool = False

    @cached_property
    def circuit(self) -> TrellisCircuit:
        """Of the graph: words around a junction, or side by side."""
        hub, n = self.words * self.states, self.states
        arcs = [Arc(v, v) for v in range(hub)] + [Arc(v - 1, v, 1, v) for v in range(hub) if v % n]
        arcs += [Arc(w * n + n - 1, hub, 0, None, (Rule(Set.CONSTANT, w),)) for w in range(self.words)]
        arcs += [Arc(hub, w * n, 1, w * n) for w in range(self.words) if self.meets]
        starts = tuple(Start(w * n, w * n) for w in range(self.words))
        trellis = Trellis((*range(hub), None), tuple(arcs), starts, SCALE.bits, ((self.words - 1).bit_length(),))
        return plan_circuit(plan_trellis(trellis, self.frames), hub)

    @cached_property
    def product(self) -> MatrixPlan:
        """Of the scores."""
        precision = Precision(limit=1.0, weights=Scale(28, 13), result=SCALE)
        return plan_product(self.frames, MONOMIALS, self.words * self.states, precision)

    @cached_property
    def moves(self) -> Residues:
        """Weights of the arcs."""
        drawn = np.random.default_rng(1).normal(-2.0, 1.0, self.words * self.states)
        return SCALE.ring.from_signed(SCALE.encode(drawn))

    @cached_property
    def _signs(self) -> Reals:
        return np.sign(np.random.default_rng(2).normal(size=(self.words * self.states, MONOMIALS)))

    @cached_property
    def spoken(self) -> list[int]:
        """The words."""
        count = self.frames // (3 * self.states) if self.meets else 1
        return [int(word) for word in np.random.default_rng(3).integers(0, self.words, count)]

    def path(self) -> tuple[Reals, tuple[tuple[int, int], ...]]:
        """Monomials of an utterance, and where its words end."""
        stay = self.frames // (self.states * len(self.spoken))
        states = [w * self.states + s for w in self.spoken for s in range(self.states) for _ in range(stay)]
        states += [states[-1]] * (self.frames - len(states))
        ends = [(place + 1) * self.states * stay - 1 for place in range(len(self.spoken))]
        ends[-1] = self.frames - 1
        return self._signs[states], tuple(zip(ends, self.spoken, strict=True))

    def timed(self) -> Timed:
        """The job; the product's mask is drawn before, and what was garbled with it."""
        circuit, product = self.circuit, self.product
        weights = encode_weights(product, 0.02 * self._signs.T)
        monomials, expected = self.path()
        cost = whole_cost(circuit)

        def client(met: Meeting, channel: Channel) -> Callable[[], object]:
            own = replace(met, channel=channel)
            own.lattice.prepare(product.job)
            evaluation = WholeEvaluation(channel, met.setup, circuit)
            return lambda: evaluation.finish(own.multiply(product, monomials), self.frames)

        def server(met: Meeting, channel: Channel) -> Callable[[], object]:
            own, mask = replace(met, channel=channel), ReplyMask(product.job)
            garbling = WholeGarbling(channel, met.setup, circuit, self.moves, share_before(product, mask))
            own.lattice.prepare(product.job)

            def online() -> None:
                own.multiply(product, weights, mask)
                garbling.answer()

            return online

        return Timed(
            self.name,
            client,
            server,
            lambda read: read.records() == (expected,),
            cost.total + product.total_bytes,
            2,
        )
