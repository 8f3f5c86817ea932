"""The party with the weights: it multiplies what it cannot read, hides what it added, and keeps one share.

A reply, in order: multiply-accumulate in transformed form; transform back; add a fresh encryption of zero; keep the
first part where results stand; round to 32 bits; add a mask uniform mod 2^32 to the kept first part. The second part
is then pseudorandom (ring LWE), the kept first part uniform: value and noise are shared, and nothing needs flooding.
That holds against any key holder, whatever it sends as key and query: the second half of the key, which hides the
second part, is nobody's choice (`public_key`), and the mask on the first part covers the whole modulus. Lemma 2.9 in
docs/theory/asking.md.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.job import Job
from ppspeech.crypto.lattice.ntt import transform_of
from ppspeech.crypto.lattice.parameters import KEPT_BITS, LatticeParameters
from ppspeech.crypto.lattice.public_key import load_public_key
from ppspeech.crypto.lattice.residues import to_residues
from ppspeech.crypto.lattice.wire import dump_reply, key_identity, load_query
from ppspeech.crypto.lattice.zeros import PublicZeros
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.single_use import SingleUse
from ppspeech.errors import PpspeechError

_WHOLE = np.uint64((1 << KEPT_BITS) - 1)
MOST_AT_ONCE = 1 << 22  # coefficients that are transformed together: memory beyond the weights themselves


@dataclass(frozen=True, eq=False)
class EncodedWeights:
    """Weight polynomials, transformed once and kept for every query: shape `(degree, outputs, terms)`."""

    parameters: LatticeParameters
    factors: Residues

    @staticmethod
    def of(parameters: LatticeParameters, polynomials: NDArray[np.int64], workers: int = 1) -> "EncodedWeights":
        """From integer polynomials of shape `(outputs, terms, degree)`."""
        outputs, terms, degree = polynomials.shape
        if degree != parameters.degree:
            raise PpspeechError(f"weight polynomials must have {parameters.degree} coefficients, got {degree}")
        transform = transform_of(parameters)
        prime = np.int64(parameters.prime)
        factors = np.empty((degree, outputs, terms), np.uint64)
        at_once = max(1, MOST_AT_ONCE // (terms * degree))
        for start in range(0, outputs, at_once):  # a session has little memory, and a gallery many outputs
            some = polynomials[start : start + at_once]
            if max(int(some.max()), -int(some.min())) >= prime // 2:
                raise PpspeechError("weights must be far below the prime; use fewer bits")
            residues = np.where(some < 0, some + prime, some).view(np.uint64).reshape(-1, degree)
            transform.forward_(residues, workers)
            found = transform.for_accumulation(residues, workers).reshape(len(some), terms, degree)
            factors[:, start : start + at_once] = found.transpose(2, 0, 1)
        return EncodedWeights(parameters, factors)


@dataclass(frozen=True, eq=False)
class LoadedQuery:
    """A received query, checked, expanded and transformed: shape `(groups, degree, 2, terms)`."""

    job: Job
    residues: Residues


class ReplyMask:
    """What hides the results of one reply, drawn ahead of it: minus the evaluator's shares. Used once: two replies
    under one mask would show how their results differ.

    Attributes:
        share: mod 2^32, `(groups, outputs, kept)`.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        mask = uniform_residues((job.groups * job.outputs, len(job.kept)), KEPT_BITS)
        self.share: Residues = (-mask & _WHOLE).reshape(job.groups, job.outputs, -1)
        self._mask: Residues | None = mask

    def take(self) -> Residues:
        """The mask, `(groups * outputs, kept)`. Raises PpspeechError the second time."""
        if self._mask is None:
            raise PpspeechError("this mask has hidden a reply already: draw another one")
        mask, self._mask = self._mask, None
        return mask

    def __reduce__(self) -> NoReturn:
        raise TypeError("a mask is used once: it cannot be pickled or copied")


class Evaluator:
    """Evaluates under a public key (BadCiphertextError if malformed); holds nothing from which the secret follows.
    `coins`: those of the key, which its holder must not have chosen.
    """

    def __init__(self, public_key: bytes, coins: bytes, parameters: LatticeParameters | None = None) -> None:
        self.parameters = parameters or LatticeParameters()
        self.public_key, self.coins = public_key, coins
        self.identity = key_identity(public_key, coins)
        loaded = load_public_key(public_key, coins, self.parameters)
        self.zeros = SingleUse(PublicZeros(self.parameters, loaded))

    def prepare(self, job: Job, replies: int = 1) -> None:
        """The offline work of some replies: their encryptions of zero."""
        self.zeros.prepare(replies * job.groups * job.outputs)

    def load(self, job: Job, query: bytes, workers: int = 1) -> LoadedQuery:
        """Check and expand a query. It may be answered many times, with different weights. Raises BadCiphertextError if
        it is not a query of this job, WrongKeyError if it was encrypted under another key.
        """
        if job.parameters != self.parameters:
            raise PpspeechError(f"the job is of another ring than the evaluator: {job.parameters}")
        seeds, first = load_query(query, self.parameters, job.identity, self.identity, job.groups * job.terms)
        both = np.concatenate((first, expand_seeds(seeds, self.parameters, workers)))
        transform_of(self.parameters).forward_(both, workers)
        shaped = both.reshape(2, job.groups, job.terms, self.parameters.degree)
        return LoadedQuery(job, np.ascontiguousarray(shaped.transpose(1, 3, 0, 2)))

    def reply(
        self, query: LoadedQuery, weights: EncodedWeights, workers: int = 1, mask: ReplyMask | None = None
    ) -> tuple[bytes, Residues]:
        """The masked reply, and the evaluator's shares mod 2^32, shape `(groups, outputs, kept)`. `mask`: one drawn
        before, where the shares had to be known before the query was.
        """
        job, chosen = query.job, mask or ReplyMask(query.job)
        if chosen.job != job:
            raise PpspeechError(f"the mask was drawn for another job than {job}")
        hidden = self._hidden_products(query, weights, workers)
        first = to_residues(hidden[:, 0, job.kept_index], self.parameters)
        masked = (first + chosen.take()) & _WHOLE
        reply = dump_reply(job.identity, self.identity, masked, to_residues(hidden[:, 1], self.parameters))
        return reply, chosen.share

    def _hidden_products(self, query: LoadedQuery, weights: EncodedWeights, workers: int) -> Residues:
        """Products of query and weights, each plus a fresh encryption of zero: `(groups * outputs, 2, degree)`."""
        job, transform = query.job, transform_of(self.parameters)
        expected = (self.parameters.degree, job.outputs, job.terms)
        if weights.factors.shape != expected or weights.parameters != self.parameters:
            raise PpspeechError(f"the job needs weights of shape {expected}, got {weights.factors.shape}")
        products = np.concatenate(
            [transform.multiply_accumulate(group, weights.factors, workers) for group in query.residues]
        )
        transform.inverse_(products.reshape(-1, self.parameters.degree), workers)
        return (products + np.stack(self.zeros.take(len(products)))) % np.uint64(self.parameters.prime)
