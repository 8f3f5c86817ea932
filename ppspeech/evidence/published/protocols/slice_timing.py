"""How long the published keyword protocol takes, from a slice of it and the number of operations of the whole.

The whole at the paper's sizes (98 frames of 39 features, 10 words of 5 states, table 4.1) takes many minutes even
with good code and 2048-bit keys. The parts of a slice are timed apart, since they grow differently:

- Alice's encryptions with the frames;
- Bob's log-densities with frames and words;
- the recursion with the ciphertexts that cross between the two: 4 N + 1 a word for each frame after the first, 2 N + 3
  a word for the last step;
- the selection of the word, nearly all of it base transfers, hardly grows, and is taken as it is.

Both parties run in one process on one core, in memory.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, TypeVar

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_residues
from ppspeech.crypto.paillier import generate_paillier
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.forward import alice_forward, bob_forward
from ppspeech.evidence.published.protocols.gaussian_forward import emission_plan, receive_emissions, send_products
from ppspeech.evidence.published.protocols.gaussian_word import Chain, GaussianWord
from ppspeech.evidence.published.protocols.keyword import choose_word, offer_words, spell
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR
from ppspeech.network import run_together
from ppspeech.protocols import Kind

Result = TypeVar("Result")

SAMPLE = 64


@dataclass(frozen=True, slots=True)
class Slice:
    """What a slice took and the whole would. `what`: how the one became the other, for people."""

    measured_s: float
    extrapolated_s: float
    what: str


@dataclass(frozen=True, slots=True)
class Size:
    """Of a keyword problem: frames x features, words x states."""

    frames: int
    dimensions: int
    words: int
    states: int

    @property
    def products(self) -> int:
        """z_i z_j of all frames."""
        return self.frames * (self.dimensions + 1) ** 2

    @property
    def crossing(self) -> int:
        """Ciphertexts that cross between the parties in the recursion."""
        return self.words * ((self.frames - 1) * (4 * self.states + 1) + 2 * self.states + 3)

    def __str__(self) -> str:
        return f"{self.frames} x {self.dimensions}, {self.words} words x {self.states} states"


def published_keyword_seconds(
    frames: int,
    dimensions: int,
    words: int,
    states: int,
    key_bits: int,
    *,
    slice_frames: int,
    slice_words: int,
    peer: Literal["ours", "phe"] = "ours",
) -> Slice:
    """Time a slice and extrapolate to the whole; keys may be of any size, since nothing is protected here.

    Bob's tables of powers serve all words, so that fewer `slice_words` than `words` make the whole look slower than it
    is. `peer`: `"ours"` runs the slice; `"phe"` times that library's operations one by one and multiplies by the number
    of them in the whole: a ciphertext a number, a power and a product a term, nothing packed or shared.
    """
    if not (1 <= slice_frames <= frames and 2 <= slice_words <= words and dimensions >= 1 and states >= 1):
        raise RangeError(
            f"a slice has 1 to {frames} frames and 2 to {words} words, got {slice_frames} and {slice_words}, "
            f"of {dimensions} features and {states} states"
        )
    whole = Size(frames, dimensions, words, states)
    part = Size(slice_frames, dimensions, slice_words, states)
    return _ours(whole, part, key_bits) if peer == "ours" else _theirs(whole, key_bits)


def _ours(whole: Size, part: Size, key_bits: int) -> Slice:
    key = generate_paillier(key_bits, insecure_demo=True)
    key.prepare(0)
    key.public.prepare(0)
    features, models = _made_up(part)
    plan = emission_plan(models)
    size = key.public.wire_bytes(plan.terms)

    encrypting, sent = _timed_pair(
        lambda c: send_products(Alice(c, key), features),
        lambda c: [c.receive(Kind.PRODUCTS, size) for _ in range(part.frames)],
    )
    scoring, emissions = _timed_pair(
        lambda c: _resend(c, sent),
        lambda c: receive_emissions(Bob(c, key.public), plan, part.frames),
    )
    recursion, scores = _timed_pair(
        lambda c: alice_forward(Alice(c, key), frames=part.frames, chains=part.words, states=part.states),
        lambda c: bob_forward(Bob(c, key.public), [model.chain for model in models], emissions),
    )
    selection, _ = _timed_pair(
        lambda c: choose_word(Alice(c, key), part.words),
        lambda c: offer_words(Bob(c, key.public), scores, spell(models)),
    )
    frames = whole.frames / part.frames
    parts = (
        encrypting * frames,
        scoring * frames * whole.words / part.words,
        recursion * whole.crossing / part.crossing,
        selection,
    )
    shared = "; tables of powers, which all words share, are counted for each slice of words"
    repeated = shared if part.words < whole.words else ""
    return Slice(
        encrypting + scoring + recursion + selection,
        sum(parts),
        f"{key_bits} bits, one core; {part} run, extrapolated by operations to {whole}: Alice encrypts "
        f"{parts[0]:.1f} s, Bob's log-densities {parts[1]:.1f} s, recursion {parts[2]:.1f} s, "
        f"selection {parts[3]:.1f} s{repeated}",
    )


def _theirs(whole: Size, key_bits: int) -> Slice:
    """phe's cost of the operations, one by one. A word's step of the recursion has N exponentials and N logarithms (one
    in the last step): Alice decrypts each and encrypts the answer and one maximum; Bob masks and re-randomizes each,
    takes powers by μ, a and β, and adds.
    """
    import phe  # GPL: of the extra `peers`, never a requirement

    public, secret = phe.generate_paillier_keypair(n_length=key_bits)
    encrypted = phe.EncryptedNumber(public, public.raw_encrypt(12345))
    raw = encrypted.ciphertext(False)
    _, models = _made_up(Size(1, whole.dimensions, 2, whole.states))
    entries = np.rint(models[0].weights() * FACTOR).astype(np.int64).ravel()
    weights = [int(weight) % public.n for weight in entries[entries != 0][:SAMPLE]]  # phe takes negatives as residues

    start = time.perf_counter()
    encrypt = _timed(lambda: [public.raw_encrypt(number) for number in range(SAMPLE)])[0] / SAMPLE
    decrypt = _timed(lambda: [secret.raw_decrypt(raw) for _ in range(SAMPLE)])[0] / SAMPLE
    scale = _timed(lambda: [encrypted._raw_mul(weight) for weight in weights])[0] / len(weights)
    add = _timed(lambda: [encrypted._raw_add(raw, raw) for _ in range(SAMPLE)])[0] / SAMPLE
    measured = time.perf_counter() - start

    n, steps = whole.states, whole.words * (whole.frames - 1)
    crossing_down = steps * 2 * n + whole.words * (n + 1)
    crossing_up = whole.crossing - crossing_down
    powers = steps * (2 * n + n * n) + whole.words * (2 * n + 1)
    sums = 2 * crossing_down + steps * n * n + whole.words * n
    terms = whole.products * whole.words * n
    parts = (
        whole.products * encrypt,
        terms * (scale + add),
        (crossing_up + crossing_down) * encrypt + crossing_down * decrypt + powers * scale + sums * add,
    )
    return Slice(
        measured,
        sum(parts),
        f"phe {version('phe')} used plainly, {key_bits} bits, one core; {SAMPLE} of each operation timed, times "
        f"their number in {whole}: Alice encrypts {parts[0]:.1f} s, Bob's log-densities {parts[1]:.1f} s, recursion "
        f"{parts[2]:.1f} s",
    )


def _made_up(size: Size) -> tuple[Reals, list[GaussianWord]]:
    """Frames and left-right words with full covariances; times depend on the lengths of the numbers only."""
    n, d = size.states, size.dimensions
    stay = np.full(n, 0.6)
    stay[-1] = 1.0
    chain = Chain(np.eye(n)[0], np.diag(stay) + np.diag(1 - stay[:-1], 1))
    mixing = _reals(size.words, n, d, d)
    covariances = mixing @ mixing.transpose(0, 1, 3, 2) / d + np.eye(d)
    words = [GaussianWord(f"word {number}", chain, _reals(n, d), covariances[number]) for number in range(size.words)]
    return 2 * _reals(size.frames, d), words


def _reals(*shape: int) -> Reals:
    """Numbers between -1 and 1."""
    return uniform_residues(shape, 53).astype(np.float64) / 2**52 - 1


def _resend(channel: Channel, payloads: list[bytes]) -> None:
    for payload in payloads:
        channel.send(Kind.PRODUCTS, payload)


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _timed_pair(first: Callable[[Channel], object], second: Callable[[Channel], Result]) -> tuple[float, Result]:
    seconds, (_, result) = _timed(lambda: run_together(first, second))
    return seconds, result
