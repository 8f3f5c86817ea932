"""Encrypted correlation: the key holder has a short pattern s, the evaluator a long signal y; each gets a share.

    c[w] = sum over channels c and times i of s[c, i] y[c, w + i],   w = 0 .. L - m

c says how well the pattern fits at every offset. A pattern reversed in a polynomial and a stretch of the signal in
another multiply to all offsets of the stretch at once. Several channels may share a polynomial, interleaved.

>>> from ppspeech.crypto.lattice import Evaluator, KeyHolder
>>> plan, key = plan_correlation(channels=2, pattern=3, signal=8), KeyHolder()
>>> pattern, signal = np.sin(np.arange(6.0)).reshape(2, 3), np.cos(np.arange(16.0)).reshape(2, 8)
>>> query = client_correlation_query(key, plan, pattern)
>>> evaluator = Evaluator(key.public_key, key.coins)
>>> reply, theirs = server_correlation_reply(evaluator, plan, encode_signal(plan, signal), query)
>>> scale = plan.precision.result
>>> fits = scale.decode(scale.ring.to_signed(scale.ring.join(client_correlation_finish(key, plan, reply), theirs)))
>>> expected = [np.sum(pattern * signal[:, w : w + 3]) for w in range(6)]
>>> bool(np.abs(fits - expected).max() < 1 / 32)
True
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice.evaluator import EncodedWeights, Evaluator
from ppspeech.crypto.lattice.job import Job, Precision
from ppspeech.crypto.lattice.key_holder import KeyHolder
from ppspeech.errors import PpspeechError


@dataclass(frozen=True, slots=True)
class CorrelationCut:
    """How a correlation is cut into polynomials. Get one by `plan_correlation`.

    Attributes:
        channels: features a time step.
        pattern: m, time steps of the pattern.
        signal: L, time steps of the signal.
        interleaved: channels that share a polynomial.
    """

    channels: int
    pattern: int
    signal: int
    precision: Precision
    interleaved: int

    @property
    def offsets(self) -> int:
        """How many places the pattern is tried at."""
        return self.signal - self.pattern + 1

    @property
    def span(self) -> int:
        """Coefficients that the pattern takes."""
        return self.interleaved * self.pattern

    @property
    def step(self) -> int:
        """Offsets that one reply polynomial carries."""
        return min(self.offsets, (self.precision.parameters.degree - self.span) // self.interleaved + 1)

    @property
    def job(self) -> Job:
        """The evaluation of this plan; `job.query_bytes` and `job.reply_bytes` are its exact cost."""
        kept = range(self.span - 1, self.span + (self.step - 1) * self.interleaved, self.interleaved)
        return Job(
            self.precision,
            groups=1,
            terms=-(-self.channels // self.interleaved),
            outputs=-(-self.offsets // self.step),
            kept=kept,
        )

    @property
    def total_bytes(self) -> int:
        """Bytes of query and reply."""
        return self.job.query_bytes + self.job.reply_bytes


def plan_correlation(channels: int, pattern: int, signal: int, precision: Precision | None = None) -> CorrelationCut:
    """The cutting with the fewest bytes in both directions.

    >>> chosen = plan_correlation(12, 100, 1_000)
    >>> chosen.interleaved, chosen.job.terms, chosen.job.outputs
    (6, 2, 4)
    """
    chosen = precision or Precision()
    degree = chosen.parameters.degree
    if channels < 1 or not 1 <= pattern <= min(signal, degree):
        raise PpspeechError(
            f"a pattern of 1 to {degree} time steps, no longer than the signal, in at least one channel is needed; "
            f"got {pattern} of {signal} in {channels} channels"
        )
    widths = range(1, min(channels, degree // pattern) + 1)
    return min(
        (CorrelationCut(channels, pattern, signal, chosen, width) for width in widths),
        key=lambda found: found.total_bytes,
    )


def _interleave(plan: CorrelationCut, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Channels `(channels, times)` as sequences `(terms, times * interleaved)`, padded with silent channels."""
    terms = plan.job.terms
    padded = np.zeros((terms * plan.interleaved, rows.shape[1]), dtype=np.int64)
    padded[: plan.channels] = rows
    return padded.reshape(terms, plan.interleaved, -1).transpose(0, 2, 1).reshape(terms, -1)


def encode_signal(plan: CorrelationCut, signal: Reals, workers: int = 1) -> EncodedWeights:
    """The server's signal `(channels, L)`, once. Raises RangeError if a value does not fit the scale of weights."""
    if signal.shape != (plan.channels, plan.signal):
        raise PpspeechError(f"the signal must have shape {(plan.channels, plan.signal)}, got {signal.shape}")
    job, degree = plan.job, plan.precision.parameters.degree
    sequences = _interleave(plan, plan.precision.weights.encode(signal))
    stride = plan.step * plan.interleaved
    padded = np.pad(sequences, ((0, 0), (0, degree)))
    stretches = [padded[:, out * stride : out * stride + degree] for out in range(job.outputs)]
    return EncodedWeights.of(plan.precision.parameters, np.stack(stretches), workers)


def client_correlation_query(key: KeyHolder, plan: CorrelationCut, pattern: Reals) -> bytes:
    """Step 1, client: encrypt the pattern `(channels, m)`. Raises RangeError for a value beyond the public limit."""
    if pattern.shape != (plan.channels, plan.pattern):
        raise PpspeechError(f"the pattern must have shape {(plan.channels, plan.pattern)}, got {pattern.shape}")
    polynomials = np.zeros((plan.job.terms, plan.precision.parameters.degree), dtype=np.int64)
    polynomials[:, : plan.span] = _interleave(plan, plan.precision.encode(pattern))[:, ::-1]
    return key.query(plan.job, polynomials)


def server_correlation_reply(
    evaluator: Evaluator, plan: CorrelationCut, signal: EncodedWeights, query: bytes, workers: int = 1
) -> tuple[bytes, Residues]:
    """Step 2, server: the reply, and its share of c, shape `(offsets,)`. Raises BadCiphertextError if the query is
    malformed or of another plan, WrongKeyError if it was encrypted under another key.
    """
    reply, share = evaluator.reply(evaluator.load(plan.job, query, workers), signal, workers)
    return reply, plan.precision.shorten(share.ravel()[: plan.offsets])


def client_correlation_finish(key: KeyHolder, plan: CorrelationCut, reply: bytes, workers: int = 1) -> Residues:
    """Step 3, client: its share of c, `(offsets,)`. Raises BadCiphertextError or WrongKeyError for another's reply."""
    return plan.precision.shorten(key.open(plan.job, reply, workers).ravel()[: plan.offsets])
