"""TenSEAL's own vectors behind the three steps."""

import pickle

import numpy as np
import pytest

from ppspeech.crypto.lattice.vectors import BFV_MODULUS, VectorEvaluator, VectorKeyHolder
from ppspeech.errors import BadCiphertextError, PpspeechError, RangeError

CKKS = VectorKeyHolder("ckks")
EVALUATOR = VectorEvaluator(CKKS.public_context, "ckks")


def test_ckks_products_are_close() -> None:
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(2, 20)), generator.normal(size=(20, 2))
    found = CKKS.finish(EVALUATOR.reply(CKKS.query(x), 2, w), 2, 2)
    assert np.abs(found - x @ w).max() < 1e-3


def test_bfv_products_are_exact() -> None:
    holder = VectorKeyHolder("bfv")
    x, w = np.array([[1, -2, 3]]), np.array([[4, 5], [6, -7], [100_000, 9]])
    found = holder.finish(VectorEvaluator(holder.public_context, "bfv").reply(holder.query(x), 1, w), 1, 2)
    assert np.array_equal(found, x @ w)
    assert np.abs(x @ w).max() < BFV_MODULUS // 2
    with pytest.raises(RangeError, match="whole numbers"):
        holder.query(np.array([[0.5]]))


def test_malformed_messages_are_refused() -> None:
    query, w = CKKS.query(np.ones((1, 3))), np.ones((3, 1))
    for bad in (b"", query[:3], query[:-1], query + b"\0", query + query, b"\xff" * 100, b"\4\0\0\0abcd"):
        with pytest.raises(BadCiphertextError):
            EVALUATOR.reply(bad, 1, w)
    with pytest.raises(BadCiphertextError, match="must have 4 numbers"):
        EVALUATOR.reply(query, 1, np.ones((4, 1)))
    with pytest.raises(BadCiphertextError):
        CKKS.finish(query, 2, 1)
    with pytest.raises(BadCiphertextError):
        VectorEvaluator(b"nonsense")


def test_the_secret_key_stays_home() -> None:
    assert not EVALUATOR._context.has_secret_key()
    with pytest.raises(PpspeechError, match="carries the secret key"):
        VectorEvaluator(CKKS._context.serialize(save_secret_key=True))
    with pytest.raises(PpspeechError, match="stays in the process"):
        pickle.dumps(CKKS)
    with pytest.raises(PpspeechError, match="scheme must be"):
        VectorKeyHolder("rsa")  # type: ignore[arg-type]
    with pytest.raises(RangeError, match="finite"):
        CKKS.query(np.array([[np.nan]]))
