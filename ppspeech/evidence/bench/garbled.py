"""Garbled circuits: a gate, a loop of digits as it is spoken and whole, and a word over a slow link.

Needs nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Scale, uniform_bytes, uniform_residues
from ppspeech.crypto.garbled import Builder, run_circuit, table_buffer
from ppspeech.crypto.lattice import (
    Evaluator,
    FrameSender,
    KeyHolder,
    MatrixPlan,
    Precision,
    ReplyMask,
    encode_weights,
    key_length,
    plan_product,
    plan_stream,
    publish_model,
    receive_scores,
    share_before,
)
from ppspeech.crypto.transfer import BlockHash
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.two_parties import Measured, Timed, measure, wait_for_each_other
from ppspeech.figures import Figure
from ppspeech.network import run_in_processes
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.trellis import (
    Arc,
    Rule,
    Set,
    Start,
    StreamEvaluation,
    StreamGarbling,
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
JOBS = (("digits", 11, 5, 99, True), ("word33", 10, 5, 33, False), ("word98", 10, 5, 98, False))
"""Names, words, states, frames, and whether words follow each other."""
CHUNK = 2
LATE = 8
WARE = 191  # what a bench sends by itself


@BENCHES.register("garbled")
def run(quick: bool) -> list[Figure]:
    """Gates alone; then whole jobs with their encrypted product, on loopback and over a round trip of 40 ms."""
    repeats = 3 if quick else 12
    figures = gate_figures(5 if quick else 50)
    where = f"two processes, TCP, {machine()}; best of {repeats}"
    jobs = [Loop(*size) for size in JOBS]
    for delay, link in ((0.0, "loopback"), (LINK_SECONDS, "link40")):
        measured = measure([job.timed() for job in jobs], repeats, delay=delay)
        for job in jobs:
            figures += job_figures(job, link, measured[job.name], where)
        figures.append(spoken_figure(jobs[0], link, delay, 2 if quick else 5))
    return figures


def spoken_figure(job: "Loop", link: str, delay: float, repeats: int) -> Figure:
    """How long after the last frame the words are there, frames coming as they are spoken, best of some utterances."""
    circuit, plan = job.circuit, job.stream
    monomials, expected = job.path()
    chunks = range(0, job.frames, CHUNK)

    def client(channel: Channel) -> float:
        met = meet_as_client(channel)
        ring, coins, waits = plan.precision.parameters, met.setup.id + b"bench", []
        key = channel.receive(WARE, key_length(ring))
        model = FrameSender(Evaluator(key, coins, ring), plan, channel.receive(WARE, plan.job.query_bytes))
        with met.session():
            for _ in range(1 + repeats):
                masks = [ReplyMask(plan.job) for _ in chunks]
                share = np.concatenate([share_before(plan, mask).T for mask in masks])[: job.frames]
                model.prepare(len(masks))
                evaluation = StreamEvaluation(channel, met.setup, circuit, share)
                wait_for_each_other(channel)
                began = time.perf_counter()
                for number, (at, mask) in enumerate(zip(chunks, masks, strict=True)):
                    spoken = np.zeros((CHUNK, MONOMIALS))
                    spoken[: min(CHUNK, job.frames - at)] = monomials[at : at + CHUNK]
                    time.sleep(max(0.0, began + min(at + CHUNK, job.frames) * FRAME_SECONDS - time.perf_counter()))
                    channel.send(WARE, model.send(spoken, mask)[0])
                    if number >= LATE:
                        evaluation.advance(CHUNK)
                evaluation.advance(job.frames - evaluation.frames)
                records = evaluation.finish().records()
                waits.append(time.perf_counter() - began - job.frames * FRAME_SECONDS)
                if records != (expected,):
                    raise PpspeechError(f"{records} was heard where {expected} was said; no figure can be trusted")
        return min(waits[1:])

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        key = KeyHolder(plan.precision.parameters, met.setup.id + b"bench")
        channel.send(WARE, key.public_key)
        channel.send(WARE, publish_model(key, plan, job.weights))
        with met.session():
            for _ in range(1 + repeats):
                garbling = StreamGarbling(channel, met.setup, circuit, job.moves)
                wait_for_each_other(channel)
                for at in chunks:
                    scores = receive_scores(key, plan, channel.receive(WARE, plan.job.reply_bytes))
                    garbling.send(scores[: job.frames - at])
                garbling.finish()

    seconds = run_in_processes(client, server, delay=delay)
    note = f"from the last of {job.frames} frames to the words, chunks of {CHUNK}; tables before; {machine()}"
    return Figure(f"garbled.{job.name}.{link}.after_last_frame_ms", 1e3 * seconds, "ms", note=note)


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

    @property
    def weights(self) -> Reals:
        """Of the monomials."""
        return 0.02 * self._signs.T

    @cached_property
    def stream(self) -> MatrixPlan:
        """Of the scores of a chunk, the server holding the key."""
        precision = Precision(limit=1.0, weights=Scale(24, 13), result=SCALE)
        return plan_stream(MONOMIALS, self.words * self.states, CHUNK, precision)

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
        weights = encode_weights(product, self.weights)
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
