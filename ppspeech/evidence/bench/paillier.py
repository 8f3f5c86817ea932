"""Paillier encryption at every key size of the paper's table 4.2 and today's, and keyword scoring, beside phe's.

Needs phe.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import gmpy2
import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto import Scale, exact_product, uniform_residues
from ppspeech.crypto.paillier import Packing, PaillierSecretKey, RecodedWeights, generate_paillier
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds
from ppspeech.figures import Figure

PAPER_ENCRYPTIONS_PER_S = {64: 15873.02, 128: 4694.84, 256: 828.50, 512: 119.92, 1024: 15.90}
"""Table 4.2 of the paper: C++ and OpenSSL on a 3.2 GHz Pentium 4."""

WEIGHT = -12345  # the factor of the table's scalar multiplications

FRAMES, MONOMIALS, STATES = 98, 820, 50
FEATURE_SCALE, WEIGHT_SCALE = Scale(bits=15, fraction=8), Scale(bits=16, fraction=12)
SCORE_SCALE = FEATURE_SCALE.product(WEIGHT_SCALE, MONOMIALS)


@BENCHES.register("paillier")
def run(quick: bool) -> list[Figure]:
    """Time keys, encryption, decryption and homomorphic operations at each key size, then the keyword problem.

    Both sides run in this process, on keys of the same size. An encryption counts the making of its randomizer;
    `online` figures have it prepared. Figures of one core are seconds of computing of this thread, so that other work
    on the machine favors neither side; figures of several cores are seconds of the clock.
    """
    cores = os.cpu_count() or 1
    figures: list[Figure] = []
    for bits in (*PAPER_ENCRYPTIONS_PER_S, 2048) if quick else (*PAPER_ENCRYPTIONS_PER_S, 2048, 3072):
        figures += _key_size(bits, cores, repeats=5 if quick else 15)
    return figures + _keyword(cores, repeats=2 if quick else 5)


def _computing(work: Callable[[], object], repeats: int) -> float:
    return best_seconds(work, repeats, time.thread_time)


@dataclass(frozen=True, slots=True)
class _Costs:
    """Seconds that each operation takes on one core."""

    keygen: float
    encrypt: float
    decrypt: float
    add: float
    scale: float


def _theirs(bits: int, repeats: int) -> _Costs:
    import phe  # GPL: of the extra `peers`, never a requirement

    start = time.thread_time()
    public, secret = phe.generate_paillier_keypair(n_length=bits)
    keygen = time.thread_time() - start
    encrypted = phe.EncryptedNumber(public, public.raw_encrypt(12345))
    raw = encrypted.ciphertext(False)
    factor = WEIGHT % public.n  # phe takes negative factors as residues
    return _Costs(
        keygen,
        _computing(lambda: public.raw_encrypt(12345), repeats),
        _computing(lambda: secret.raw_decrypt(raw), repeats),
        _computing(lambda: [encrypted._raw_add(raw, raw) for _ in range(50)], repeats) / 50,
        _computing(lambda: [encrypted._raw_mul(factor) for _ in range(20)], repeats) / 20,
    )


def _ours(bits: int, repeats: int) -> tuple[PaillierSecretKey, _Costs]:
    start = time.thread_time()
    key = generate_paillier(bits, insecure_demo=bits < 2048)
    keygen = time.thread_time() - start
    key.prepare(0)
    public, values = key.public, list(range(-32, 32))
    encrypted = left, right = key.encrypt_many([12345, -678])
    scaled = public.finish(public.scale(left, WEIGHT))
    if key.decrypt_many([*encrypted, scaled]) != [12345, -678, 12345 * WEIGHT]:
        raise PpspeechError("the benchmark decrypted something else than it encrypted; no figure can be trusted")
    return key, _Costs(
        keygen,
        _computing(lambda: key.encrypt_many(values), repeats) / len(values),
        _computing(lambda: key.decrypt(left), repeats),
        _computing(lambda: [public.add(left, right) for _ in range(50)], repeats) / 50,
        _computing(lambda: [public.scale(left, WEIGHT, secret=False) for _ in range(20)], repeats) / 20,
    )


def _key_size(bits: int, cores: int, repeats: int) -> list[Figure]:
    key, ours = _ours(bits, repeats)
    theirs = _theirs(bits, repeats)
    peer = f"phe {version('phe')}"
    paper = PAPER_ENCRYPTIONS_PER_S.get(bits)
    note = "one core, randomizer made in the run" + (f"; the paper's table 4.2: {paper:,.0f}/s" if paper else "")

    def row(name: str, scale: float, unit: str, mine: float, other: float, note: str) -> Figure:
        return Figure.less(f"paillier.{bits}.{name}", scale * mine, unit, peer, scale * other, note)

    speedup = theirs.encrypt / ours.encrypt
    figures = [
        row("keygen_s", 1, "s", ours.keygen, theirs.keygen, "one draw each"),
        Figure(f"paillier.{bits}.encryptions_per_s", 1 / ours.encrypt, "/s", peer, 1 / theirs.encrypt, speedup, note),
        row("decrypt_ms", 1e3, "ms", ours.decrypt, theirs.decrypt, "one core, powmod_sec where phe has powmod"),
        row("add_us", 1e6, "us", ours.add, theirs.add, "one core"),
        row("scale_us", 1e6, "us", ours.scale, theirs.scale, "one core, 14-bit factor, taken as public as phe does"),
    ]
    return figures if bits < 2048 else figures + _speedups(key, ours, theirs, cores, repeats)


def _speedups(key: PaillierSecretKey, ours: _Costs, theirs: _Costs, cores: int, repeats: int) -> list[Figure]:
    values = list(range(100))
    encrypt_cores = best_seconds(lambda: key.encrypt_many(8 * values, workers=cores), repeats) / (8 * len(values))
    ciphertexts = key.encrypt_many(values, workers=cores)
    decrypt_cores = best_seconds(lambda: key.decrypt_many(ciphertexts, workers=cores), min(repeats, 5)) / len(values)
    key.prepare((1 + repeats) * len(values), workers=cores)
    online = _computing(lambda: key.encrypt_many(values), repeats) / len(values)

    plan = RecodedWeights.of(_uniform(WEIGHT_SCALE, (STATES, len(values))))
    terms = STATES * len(values)
    term = _computing(lambda: key.public.scalar_products(ciphertexts, plan), min(repeats, 5)) / terms
    sums = f"a term of {STATES} sums of {len(values)} terms with 16-bit weights, one core, tables of powers counted"
    base, n, square = ciphertexts[0].value, key.public.n, key.public.modulus
    unit = _computing(lambda: gmpy2.powmod(base, n, square), repeats)

    one_core = "one core each, randomizer made in the run"
    all_cores = f"{cores} cores by the clock, against phe on one"
    units = "one core, in units of gmpy2's powmod with exponent N mod N^2 in the same run"
    figures = [
        ("encrypt.speedup_vs_phe", theirs.encrypt / ours.encrypt, "x", one_core),
        ("encrypt.all_cores_speedup_vs_phe", theirs.encrypt / encrypt_cores, "x", all_cores),
        ("encrypt.online_speedup_vs_phe", theirs.encrypt / online, "x", "one core each, randomizers prepared"),
        ("decrypt.speedup_vs_phe", theirs.decrypt / decrypt_cores, "x", all_cores),
        ("decrypt.one_core_speedup_vs_phe", theirs.decrypt / ours.decrypt, "x", "powmod_sec where phe has powmod"),
        ("scalar.speedup_vs_phe", (theirs.scale + theirs.add) / term, "x", sums),
        ("encrypt.in_powmods", ours.encrypt / unit, "", units),
        ("decrypt.in_powmods", ours.decrypt / unit, "", units),
        ("scalar.in_powmods", term / unit, "", units),
    ]
    return [Figure(f"paillier.{key.public.bits}.{name}", value, x, note=note) for name, value, x, note in figures]


# The keyword problem of the paper's section 4.2.1: scores of 98 frames under 50 states, full covariance.


@dataclass(frozen=True, slots=True)
class _Scored:
    """One run of the problem: seconds of each part, seconds of computing on all cores, bytes each way."""

    client_encrypts: float
    server: float
    client_decrypts: float
    cpu: float
    bytes_up: int
    bytes_down: int

    @property
    def total(self) -> float:
        return self.client_encrypts + self.server + self.client_decrypts


def keyword_job(
    key: PaillierSecretKey,
    features: NDArray[np.int64],
    plan: RecodedWeights,
    expected: NDArray[np.object_],
    workers: int,
) -> _Scored:
    """The client's packed features to additive shares of all scores, every message serialized and checked.

    Features are encoded monomials `(frames, monomials)`. The shares must add up to `expected`, the exact integer scores
    `(frames, states)`, or to one more.
    """
    public, frames = key.public, len(features)
    chunks = -(-frames // Packing.fitting(public.plaintext_modulus, SCORE_SCALE.bits).slots)
    packing = Packing(SCORE_SCALE.bits, frames // chunks)
    computing, start = _cpu_seconds(), time.perf_counter()
    packed = [
        number for part in np.split(features, chunks) for number in packing.pack_rows(np.ascontiguousarray(part.T))
    ]
    up = public.dump(key.encrypt_many(packed, workers=workers))

    encrypted = time.perf_counter()
    received = public.load(up, chunks * plan.terms)
    results, server_shares = [], []
    for first in range(0, len(received), plan.terms):
        for score in public.scalar_products(received[first : first + plan.terms], plan, workers=workers):
            mask, shares = packing.draw_mask()
            results.append(public.add_plain(score, int(mask)))
            server_shares.append(shares)
    down = public.dump(public.finish_many(results, workers=workers))

    served = time.perf_counter()
    plaintexts = key.decrypt_many(public.load(down, chunks * plan.rows), workers=workers)
    client_shares = [packing.masked_shares(plaintext) for plaintext in plaintexts]
    done, computing = time.perf_counter(), _cpu_seconds() - computing

    ring = SCORE_SCALE.ring
    sums = ring.to_signed(ring.join(np.stack(client_shares), np.stack(server_shares)))
    scores = sums.reshape(chunks, plan.rows, packing.slots).transpose(0, 2, 1).reshape(frames, plan.rows)
    if not np.isin((scores - expected).astype(np.int64), (0, 1)).all():
        raise PpspeechError("the shares do not add up to the scores; no figure can be trusted")
    return _Scored(encrypted - start, served - encrypted, done - served, computing, len(up), len(down))


def _cpu_seconds() -> float:
    """Seconds this process and those it has waited for have computed."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _keyword(cores: int, repeats: int) -> list[Figure]:
    key = generate_paillier(2048)
    features = _uniform(FEATURE_SCALE, (FRAMES, MONOMIALS))
    weights = _uniform(WEIGHT_SCALE, (STATES, MONOMIALS))
    expected = exact_product(features, weights.T)
    start = time.perf_counter()
    key.prepare(0)
    key.public.prepare(0)
    plan = RecodedWeights.of(weights)
    once = time.perf_counter() - start

    job = min((keyword_job(key, features, plan, expected, cores) for _ in range(repeats)), key=lambda job: job.total)
    start = time.perf_counter()
    key.prepare(2 * MONOMIALS, workers=cores)
    key.public.prepare(2 * STATES, workers=cores)
    offline = time.perf_counter() - start
    online = keyword_job(key, features, plan, expected, cores)

    theirs = _theirs(2048, repeats=5)
    extrapolated = FRAMES * (
        MONOMIALS * theirs.encrypt + MONOMIALS * STATES * (theirs.scale + theirs.add) + STATES * theirs.decrypt
    )
    peer = f"phe {version('phe')}, extrapolated"
    size = f"{FRAMES} frames x {MONOMIALS} monomials x {STATES} states, 2048 bits, {cores} cores"
    parts = (
        f"{size}: client encrypts {job.client_encrypts:.2f} s, server {job.server:.2f} s, client decrypts "
        f"{job.client_decrypts:.2f} s; tables of the key and the recoded model, made once, take {once:.2f} s more"
    )
    return [
        Figure.less("paillier.keyword_job_s", job.total, "s", peer, extrapolated, parts),
        Figure("paillier.keyword_job_cpu_s", job.cpu, "s", note="computing on all cores together, of the same run"),
        Figure("paillier.keyword_job_online_s", online.total, "s", note=f"{size}, randomizers prepared"),
        Figure("paillier.keyword_job_offline_s", offline, "s", note="preparing those randomizers"),
        Figure("paillier.keyword_job_bytes", job.bytes_up + job.bytes_down, "B", note=f"up {job.bytes_up:,}"),
    ]


def _uniform(scale: Scale, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Integers over the whole range of a scale: the worst case for ranges and for the number of digits."""
    integers = scale.ring.to_signed(uniform_residues(shape, scale.bits))
    return np.maximum(integers, 1 - (1 << (scale.bits - 1)))
