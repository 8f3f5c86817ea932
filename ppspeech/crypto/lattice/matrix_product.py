"""Encrypted matrix product: the key holder has X (m x n), the evaluator W (n x q); each gets a share of X W.

Coefficient packing, without rotations: in blocks of m_b rows, n_b inner terms and q_b columns, m_b n_b q_b <= degree,

    x[i, j] at coefficient i n_b q_b + n_b - 1 - j,   w[j, l] at l n_b + j,
    result (i, l) at i n_b q_b + l n_b + n_b - 1,

and the other terms of the product fall elsewhere. In the steps below "client" holds the key and "server" the weights.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice.evaluator import EncodedWeights, Evaluator, LoadedQuery, ReplyMask
from ppspeech.crypto.lattice.job import Job, Precision
from ppspeech.crypto.lattice.key_holder import KeyHolder
from ppspeech.errors import PpspeechError


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """How a product is cut into polynomials. Get one by `plan_product`.

    Attributes:
        rows: m.
        inner: n.
        columns: q.
        precision: ring, scales and the public limit of X.
        block_rows: m_b.
        block_inner: n_b.
        block_columns: q_b.
    """

    rows: int
    inner: int
    columns: int
    precision: Precision
    block_rows: int
    block_inner: int
    block_columns: int

    @property
    def job(self) -> Job:
        """The evaluation of this plan; `job.query_bytes` and `job.reply_bytes` are its exact cost."""
        stride = self.block_inner * self.block_columns
        return Job(
            self.precision,
            groups=-(-self.rows // self.block_rows),
            terms=-(-self.inner // self.block_inner),
            outputs=-(-self.columns // self.block_columns),
            kept=range(self.block_inner - 1, self.block_rows * stride, self.block_inner),
        )

    @property
    def total_bytes(self) -> int:
        """Bytes of query and reply."""
        return self.job.query_bytes + self.job.reply_bytes


@lru_cache(maxsize=1024)
def plan_product(rows: int, inner: int, columns: int, precision: Precision | None = None) -> MatrixPlan:
    """The cutting with the fewest bytes in both directions; of equals, the one with the fewest products.

    >>> chosen = plan_product(98, 820, 50)
    >>> chosen.block_rows, chosen.block_inner, chosen.block_columns
    (98, 20, 1)
    >>> chosen.job.query_bytes, chosen.job.reply_bytes
    (506452, 429220)
    """
    if min(rows, inner, columns) < 1:
        raise PpspeechError(f"a product has at least one row, term and column, got {rows} x {inner} x {columns}")
    chosen = precision or Precision()
    degree = chosen.parameters.degree
    best: tuple[int, int, MatrixPlan] | None = None
    for terms in sorted({-(-inner // size) for size in range(1, min(inner, degree) + 1)}):
        block_inner = -(-inner // terms)
        most = min(rows, degree // block_inner)
        for groups in {-(-rows // most), rows}:
            block_rows = -(-rows // groups)
            block_columns = min(columns, degree // (block_inner * block_rows))
            block_columns = -(-columns // -(-columns // block_columns))  # even out the last block
            found = MatrixPlan(rows, inner, columns, chosen, block_rows, block_inner, block_columns)
            job = found.job
            rank = (found.total_bytes, job.groups * job.terms * job.outputs)
            if best is None or rank < best[:2]:
                best = (*rank, found)
    assert best is not None
    return best[2]


def encode_weights(plan: MatrixPlan, weights: Reals, workers: int = 1) -> EncodedWeights:
    """The server's matrix `(inner, columns)`, once a model. Raises RangeError if a weight does not fit its scale."""
    return EncodedWeights.of(plan.precision.parameters, weight_polynomials(plan, weights), workers)


def weight_polynomials(plan: MatrixPlan, weights: Reals) -> NDArray[np.int64]:
    """The weights `(inner, columns)` where the plan puts them: integers, `(outputs, terms, degree)`."""
    if weights.shape != (plan.inner, plan.columns):
        raise PpspeechError(f"weights must have shape {(plan.inner, plan.columns)}, got {weights.shape}")
    job, n, q = plan.job, plan.block_inner, plan.block_columns
    padded = np.zeros((job.terms * n, job.outputs * q), dtype=np.int64)
    padded[: plan.inner, : plan.columns] = plan.precision.weights.encode(weights)
    polynomials = np.zeros((job.outputs, job.terms, plan.precision.parameters.degree), dtype=np.int64)
    blocks = padded.reshape(job.terms, n, job.outputs, q).transpose(2, 0, 3, 1)
    polynomials[:, :, : n * q] = blocks.reshape(job.outputs, job.terms, n * q)
    return polynomials


def _query_polynomials(plan: MatrixPlan, features: Reals) -> NDArray[np.int64]:
    if features.shape != (plan.rows, plan.inner):
        raise PpspeechError(f"features must have shape {(plan.rows, plan.inner)}, got {features.shape}")
    job, m, n, q = plan.job, plan.block_rows, plan.block_inner, plan.block_columns
    padded = np.zeros((job.groups * m, job.terms * n), dtype=np.int64)
    padded[: plan.rows, : plan.inner] = plan.precision.encode(features)
    blocks = padded.reshape(job.groups, m, job.terms, n).transpose(0, 2, 1, 3)[..., ::-1]
    spaced = np.zeros((job.groups, job.terms, m, q * n), dtype=np.int64)
    spaced[..., :n] = blocks
    polynomials = np.zeros((job.groups * job.terms, plan.precision.parameters.degree), dtype=np.int64)
    polynomials[:, : m * n * q] = spaced.reshape(job.groups * job.terms, -1)
    return polynomials


def _share_of_results(plan: MatrixPlan, share: Residues) -> Residues:
    """Shares `(groups, outputs, kept)` mod 2^32 as a share of the matrix, mod 2^k."""
    job = plan.job
    blocks = share.reshape(job.groups, job.outputs, plan.block_rows, plan.block_columns).transpose(0, 2, 1, 3)
    matrix = blocks.reshape(job.groups * plan.block_rows, -1)[: plan.rows, : plan.columns]
    return plan.precision.shorten(matrix)


def client_query(key: KeyHolder, plan: MatrixPlan, features: Reals) -> bytes:
    """Step 1, client: encrypt X, `(rows, inner)`. Raises RangeError before that, for a feature beyond the limit."""
    return key.query(plan.job, _query_polynomials(plan, features))


def share_before(plan: MatrixPlan, mask: ReplyMask) -> Residues:
    """The server's share of X W, `(rows, columns)`, before there is an X: a reply with this mask will leave it so."""
    return _share_of_results(plan, mask.share)


def server_reply(
    evaluator: Evaluator,
    plan: MatrixPlan,
    weights: EncodedWeights,
    query: bytes | LoadedQuery,
    workers: int = 1,
    mask: ReplyMask | None = None,
) -> tuple[bytes, Residues]:
    """Step 2, server: the reply, and its share of X W, shape `(rows, columns)`; that of `share_before` for a `mask`
    that was drawn before. Raises BadCiphertextError if the query is malformed or of another plan, WrongKeyError if it
    was encrypted under another key.
    """
    loaded = query if isinstance(query, LoadedQuery) else evaluator.load(plan.job, query, workers)
    reply, share = evaluator.reply(loaded, weights, workers, mask)
    return reply, _share_of_results(plan, share)


def client_finish(key: KeyHolder, plan: MatrixPlan, reply: bytes, workers: int = 1) -> Residues:
    """Step 3, client: its share of X W, shape `(rows, columns)`. Raises BadCiphertextError if the reply is malformed or
    of another plan, WrongKeyError if it is for another key.
    """
    return _share_of_results(plan, key.open(plan.job, reply, workers))
