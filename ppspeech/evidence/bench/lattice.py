"""Encrypted scores of keyword models on lattices, beside SEAL's bare loop and TenSEAL's own vectors.

Needs nothing.
"""

import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import tenseal
import tenseal.sealapi as seal
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.crypto.lattice import (
    CKKS_PRIMES,
    CKKS_SCALE,
    DEGREE,
    EncodedWeights,
    Evaluator,
    FrameSender,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    VectorEvaluator,
    VectorKeyHolder,
    client_finish,
    client_query,
    encode_weights,
    error_bound,
    plan_product,
    plan_stream,
    publish_model,
    receive_scores,
    seal_context,
    server_reply,
)
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine, run_seconds
from ppspeech.figures import Figure
from ppspeech.protocols.scores import monomials_of

FRAMES, DIMENSIONS, STATES = 98, 39, 50  # a second of speech under 10 words of 5 states, full covariance
FEATURES = (DIMENSIONS + 1) * (DIMENSIONS + 2) // 2
CORES = 2


@BENCHES.register("lattice")
def run(quick: bool) -> list[Figure]:
    """Time the job from features to shares, every message serialized and checked; then its peers; then other sizes.

    Everything runs in this process, one party after the other, each on two threads. Offline work (encryptions of zero
    of the server) and work once a model (encoding weights) are figures of their own; the client's encryptions count.
    """
    repeats = 5 if quick else 30
    features, weights = frames_and_model(FRAMES, DIMENSIONS, STATES)
    job = measure(features, weights, repeats)
    bare = bare_kernel(job.plan, weights, repeats=3 if quick else 10)
    matmul = _tenseal_matmul(features, weights, inner=40 if quick else FEATURES)
    ckks = _ckks_products(features, weights, columns=2 if quick else STATES)
    size = f"{FRAMES} x {FEATURES} by {FEATURES} x {STATES}, {CORES} threads, best of {repeats} a step, {machine()}"
    parts = (
        f"{size}: client {1e3 * job.query:.1f}, server {1e3 * job.reply:.1f}, client {1e3 * job.finish:.1f} ms; apart: "
        f"encryptions of zero {1e3 * job.offline:.0f} ms a query, weights {1e3 * job.encode:.0f} ms a model"
    )
    part = 40 if quick else FEATURES
    guess = f"one frame against {part} of {FEATURES} features took {matmul.measured:.2f} s; extrapolated to all"
    dots = f"{ckks.columns} of {FRAMES * STATES} inner products took {ckks.measured:.2f} s; extrapolated to all"
    bound = f"the worst case is {job.bound:.3f} nat; results in steps of 1/64 nat"
    kernel = f"everything online against SEAL's multiply_plain and add alone, one thread: {1e3 * bare:.1f} ms"
    sent = f"up {job.plan.job.query_bytes:,}; as the formula says"
    peer = f"TenSEAL {version('tenseal')}"
    figures = [
        Figure.less("lattice.total_ms", 1e3 * job.total, "ms", "bare SEAL", 1e3 * bare, parts),
        Figure("lattice.ratio_to_bare_kernel", job.total / bare, "x", note=kernel),
        Figure("lattice.bytes", job.plan.total_bytes, "B", note=sent),
        Figure("lattice.error_nat", job.error, "nat", note=bound),
        Figure("lattice.speedup_vs_tenseal_matmul", matmul.seconds / job.total, "x", note=f"{peer} matmul, {guess}"),
        Figure.less("lattice.total_s", job.total, "s", f"{peer} matmul", matmul.seconds, guess),
        Figure("lattice.speedup_vs_ckks", ckks.seconds / job.total, "x", note=f"{peer} CKKS dot, bytes too: {dots}"),
        Figure("lattice.cpu_ms", 1e3 * job.cpu, "ms", note="computing of the same three steps on all cores together"),
        Figure("lattice.prepared_ms", 1e3 * job.prepared, "ms", note="with the client's encryptions prepared as well"),
        Figure("lattice.offline_ms", 1e3 * job.offline, "ms", note="the server's encryptions of zero for one query"),
        Figure("lattice.encode_ms", 1e3 * job.encode, "ms", note="weights, once a model"),
    ]
    return figures + _growth(repeats=3 if quick else 10) + _speakers(repeats) + _stream(repeats)


def frames_and_model(frames: int, dimensions: int, states: int) -> tuple[Reals, Reals]:
    """Monomials of normalized frames, clipped to the public limit, and weights of the size that models have; seeded."""
    generator = np.random.default_rng(0)
    monomials = monomials_of(generator.normal(size=(frames, dimensions)), "full").clip(-64, 64)
    return monomials, generator.normal(scale=0.5, size=(monomials.shape[1], states))


@dataclass(frozen=True)
class Product:
    """One product: the least seconds of each step, and how far it was from the plain one at most."""

    plan: MatrixPlan
    query: float
    reply: float
    finish: float
    cpu: float
    offline: float
    prepared: float
    encode: float
    error: float
    bound: float

    @property
    def total(self) -> float:
        """Seconds from features to shares."""
        return self.query + self.reply + self.finish


def measure(features: Reals, weights: Reals, repeats: int) -> Product:
    """The least time of each step in some runs; bytes or errors that the formulas do not give are refused."""
    chosen = plan_product(len(features), *weights.shape)
    key = KeyHolder()
    evaluator = Evaluator(key.public_key, key.coins)
    encoded = encode_weights(chosen, weights, CORES)
    encode = best_seconds(lambda: encode_weights(chosen, weights, CORES), min(repeats, 3))
    norms = np.abs(features).sum(1).max(), np.abs(weights).sum(0).max()
    bound = error_bound(chosen.precision, *norms, chosen.inner, chosen.block_columns).total
    runs, prepared, worst = [], [], 0.0
    for _ in range(1 + repeats):
        offline = run_seconds(lambda: evaluator.prepare(chosen.job))
        computing = time.process_time()
        steps, scores = _steps(key, evaluator, chosen, encoded, features)
        runs.append((*steps, time.process_time() - computing, offline))
        worst = max(worst, float(np.abs(scores - features @ weights).max()))
        key.prepare(chosen.job)
        evaluator.prepare(chosen.job)
        prepared.append(sum(_steps(key, evaluator, chosen, encoded, features)[0]))
    if worst > bound:
        raise PpspeechError(f"the error is {worst} where {bound} is the worst case; no figure can be trusted")
    query, reply, finish, cpu, offline = np.min(runs[1:], axis=0).tolist()
    return Product(chosen, query, reply, finish, cpu, offline, min(prepared[1:]), encode, worst, bound)


def _steps(
    key: KeyHolder, evaluator: Evaluator, chosen: MatrixPlan, encoded: EncodedWeights, features: Reals
) -> tuple[tuple[float, float, float], Reals]:
    """Seconds of the three steps, and the scores that the shares add up to."""
    start = time.perf_counter()
    query = client_query(key, chosen, features)
    sent = time.perf_counter()
    reply, server = server_reply(evaluator, chosen, encoded, query, CORES)
    answered = time.perf_counter()
    client = client_finish(key, chosen, reply, CORES)
    done = time.perf_counter()
    if (len(query), len(reply)) != (chosen.job.query_bytes, chosen.job.reply_bytes):
        raise PpspeechError("the messages are not as long as the formula says; no figure can be trusted")
    scale = chosen.precision.result
    scores = scale.decode(scale.ring.to_signed(scale.ring.join(client, server)))
    return (sent - start, answered - sent, done - answered), scores


# Peers.


def bare_kernel(chosen: MatrixPlan, weights: Reals, repeats: int) -> float:
    """SEAL's own products and sums of the same job, ciphertexts and weights ready in transformed form."""
    parameters = LatticeParameters()
    context = seal_context(parameters)
    generator, public = seal.KeyGenerator(context), seal.PublicKey()
    generator.create_public_key(public)
    encryptor, evaluator = seal.Encryptor(context, public), seal.Evaluator(context)
    job, ring = chosen.job, context.first_parms_id()

    def ciphertext() -> Any:
        made = seal.Ciphertext()
        encryptor.encrypt_zero(made)
        evaluator.transform_to_ntt_inplace(made)
        return made

    def plaintext(block: NDArray[np.int64]) -> Any:
        terms = (f"{int(w) % (1 << 40):X}x^{place}" for place, w in enumerate(block) if w)
        made = seal.Plaintext(" + ".join(reversed(list(terms))))
        evaluator.transform_to_ntt_inplace(made, ring)
        return made

    query = [ciphertext() for _ in range(job.terms)]
    integers = chosen.precision.weights.encode(weights)
    cuts = range(0, chosen.inner, chosen.block_inner)
    model = [[plaintext(column[cut : cut + chosen.block_inner]) for cut in cuts] for column in integers.T]
    product, total = seal.Ciphertext(), seal.Ciphertext()

    def loop() -> None:
        for row in model:
            evaluator.multiply_plain(query[0], row[0], total)
            for left, right in zip(query[1:], row[1:], strict=True):
                evaluator.multiply_plain(left, right, product)
                evaluator.add_inplace(total, product)

    return best_seconds(loop, repeats)


@dataclass(frozen=True)
class _Peer:
    """Seconds of a part, and of the whole job at the same rate."""

    measured: float
    seconds: float
    columns: int = STATES


def _tenseal_matmul(features: Reals, weights: Reals, inner: int) -> _Peer:
    """`ckks_vector.matmul` of one frame; its time grows with the inner dimension, one rotation a feature."""
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=CKKS_PRIMES)
    context.global_scale = CKKS_SCALE
    context.generate_galois_keys()
    vector = tenseal.ckks_vector(context, features[0, :inner].tolist())
    matrix = weights[:inner].tolist()
    measured = run_seconds(lambda: vector.matmul(matrix))
    return _Peer(measured, measured * features.shape[1] / inner * len(features))


def _ckks_products(features: Reals, weights: Reals, columns: int) -> _Peer:
    """CKKS vectors as `crypto.lattice.vectors` offers them: one frame, some columns, bytes and decryption counted."""
    holder = VectorKeyHolder("ckks")
    evaluator = VectorEvaluator(holder.public_context, "ckks")
    some = weights[:, :columns]
    measured = run_seconds(lambda: holder.finish(evaluator.reply(holder.query(features[:1]), 1, some), 1, columns))
    return _Peer(measured, measured * len(features) * weights.shape[1] / columns, columns)


# Other sizes.


def _growth(repeats: int) -> list[Figure]:
    """Cost against frames, states and features, the other two as in the job."""
    figures = []
    sizes = [("frames", (frames, DIMENSIONS, STATES), frames) for frames in (25, 49, 196)]
    sizes += [("states", (FRAMES, DIMENSIONS, states), states) for states in (10, 25, 100)]
    sizes += [("features", (FRAMES, d, STATES), (d + 1) * (d + 2) // 2) for d in (13, 26)]
    for name, shape, count in sizes:
        job = measure(*frames_and_model(*shape), repeats)
        note = f"{count} {name}, otherwise the same job: {job.plan.total_bytes:,} bytes, error {job.error:.3f} nat"
        figures.append(Figure(f"lattice.{name}.{count}.total_ms", 1e3 * job.total, "ms", note=note))
        figures.append(Figure(f"lattice.{name}.{count}.bytes", job.plan.total_bytes, "B"))
    return figures


def _speakers(repeats: int) -> list[Figure]:
    """One embedding of 256 numbers against 1,000 enrolled ones."""
    generator = np.random.default_rng(1)
    probe, enrolled = generator.normal(size=(1, 256)), generator.normal(size=(256, 1000))
    probe, enrolled = probe / np.linalg.norm(probe), enrolled / np.linalg.norm(enrolled, axis=0)
    job = measure(probe, enrolled, repeats)
    note = f"256 numbers against 1,000 enrolled, {job.plan.total_bytes:,} bytes"
    return [Figure("lattice.speakers1000.total_ms", 1e3 * job.total, "ms", note=note)]


def _stream(repeats: int) -> list[Figure]:
    """The model encrypted once; one frame at a time against it, both sides counted."""
    features, weights = frames_and_model(1, DIMENSIONS, STATES)
    chosen, key = plan_stream(FEATURES, STATES), KeyHolder()
    sender = FrameSender(Evaluator(key.public_key, key.coins), chosen, publish_model(key, chosen, weights))
    sender.prepare(1 + repeats)
    seconds = best_seconds(lambda: receive_scores(key, chosen, sender.send(features)[0]), repeats)
    note = f"model {chosen.job.query_bytes:,} bytes once, {chosen.job.reply_bytes:,} a frame, one thread"
    return [Figure("lattice.stream.frame_ms", 1e3 * seconds, "ms", note=note)]
