"""Encrypted linear algebra on lattices: matrix products and correlations that end in additive shares.

One party holds a key and numbers, the other weights. Each protocol is three pure functions over bytes: query, reply,
finish; a party program only sends and receives what they return.
"""

from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.correlation import (
    CorrelationCut,
    client_correlation_finish,
    client_correlation_query,
    encode_signal,
    plan_correlation,
    server_correlation_reply,
)
from ppspeech.crypto.lattice.evaluator import EncodedWeights, Evaluator, LoadedQuery, ReplyMask
from ppspeech.crypto.lattice.job import ErrorBound, Job, Precision, error_bound
from ppspeech.crypto.lattice.key_holder import KeyHolder
from ppspeech.crypto.lattice.matrix_product import (
    MatrixPlan,
    client_finish,
    client_query,
    encode_weights,
    plan_product,
    server_reply,
    share_before,
    weight_polynomials,
)
from ppspeech.crypto.lattice.parameters import KEPT_BITS, LatticeParameters, seal_context
from ppspeech.crypto.lattice.public_key import COIN_BYTES, key_length
from ppspeech.crypto.lattice.streaming import FrameSender, plan_stream, publish_model, receive_scores
from ppspeech.crypto.lattice.vectors import CKKS_PRIMES, CKKS_SCALE, DEGREE, VectorEvaluator, VectorKeyHolder
from ppspeech.crypto.lattice.wire import dump_query, dump_reply, key_identity, load_reply

__all__ = [
    "CKKS_PRIMES",
    "CKKS_SCALE",
    "COIN_BYTES",
    "DEGREE",
    "KEPT_BITS",
    "CorrelationCut",
    "EncodedWeights",
    "ErrorBound",
    "Evaluator",
    "FrameSender",
    "Job",
    "KeyHolder",
    "LatticeParameters",
    "LoadedQuery",
    "MatrixPlan",
    "Precision",
    "ReplyMask",
    "VectorEvaluator",
    "VectorKeyHolder",
    "client_correlation_finish",
    "client_correlation_query",
    "client_finish",
    "client_query",
    "dump_query",
    "dump_reply",
    "encode_signal",
    "encode_weights",
    "error_bound",
    "expand_seeds",
    "key_identity",
    "key_length",
    "load_reply",
    "plan_correlation",
    "plan_product",
    "plan_stream",
    "publish_model",
    "receive_scores",
    "seal_context",
    "server_correlation_reply",
    "server_reply",
    "share_before",
    "weight_polynomials",
]
