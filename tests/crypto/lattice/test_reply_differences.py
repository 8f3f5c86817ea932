"""Differences of the polynomials of one reply: bare products, were one encryption of zero added to several of them."""

import numpy as np
import pytest

from ppspeech.crypto.lattice import client_query, encode_weights, plan_product
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.wire import load_query
from ppspeech.crypto.single_use import SingleUse

from .test_matrix_product import EVALUATOR, KEY
from .test_security import shifts, solve


@pytest.mark.parametrize("shared", [True, False])
def test_the_difference_of_two_polynomials_of_a_reply_gives_weights_only_where_they_share_a_zero(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key holder knows every a_b of its query: sum((W_b - W'_b) a_b) is linear in the difference of two models."""
    chosen = plan_product(100, 60, 2)
    weights = np.random.default_rng(0).normal(size=(60, 2))
    query = client_query(KEY, chosen, np.zeros((100, 60)))
    job = chosen.job
    if shared:  # the mutant
        take = SingleUse.take
        monkeypatch.setattr(SingleUse, "take", lambda self, count, **_: take(self, 1) * count)
    both = EVALUATOR._hidden_products(EVALUATOR.load(job, query), encode_weights(chosen, weights), 1)[:, 1]

    seeds, _ = load_query(query, KEY.parameters, job.identity, KEY.identity, job.terms)
    known = np.column_stack([shifts(a, chosen.block_inner) for a in expand_seeds(seeds, KEY.parameters)])
    prime = KEY.parameters.prime
    one, other = (polynomial.astype(object) for polynomial in both[:2])
    found = solve(known[:70], (one - other)[:70] % prime)
    if not shared:
        assert found is None
        return
    assert found is not None
    encoded = chosen.precision.weights.encode(weights).astype(np.int64)
    assert sorted(map(abs, found)) == sorted(np.abs(encoded[:, 0] - encoded[:, 1]).tolist())
