"""Secure LOGSUM: right against scipy, and the ratios of its terms in Alice's sight."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.exponent import MU_LARGEST
from ppspeech.evidence.published.protocols.logsum import alice, alice_logsum, bob, bob_logsum, encode_weights
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import LOG_SCALE, LOG_ZERO, decode, encode
from ppspeech.network import memory_pair
from ppspeech.protocols.message_kinds import Kind

from .views import DEMO, demo_key, run_recorded, seen


def run(logs: list[float], weights: list[float], **options: object) -> tuple[float, object]:
    key = demo_key()
    encrypted = key.encrypt_many([encode(log, LOG_SCALE) for log in logs])
    _, found, record = run_recorded(
        lambda c: alice(c, key, count=len(logs), **DEMO), lambda c: bob(c, encrypted, weights, **options, **DEMO)
    )
    return key.decrypt(key.public.finish(found)) / LOG_SCALE, record


@pytest.mark.parametrize(
    ("logs", "weights"),
    [
        ([-1.0, -2.0, -3.0], [0.2, 0.3, 0.5]),
        ([-700.0, -701.0], [0.6, 0.4]),
        ([5.0, 5.0, 5.0, 5.0], [0.25, 0.25, 0.25, 0.25]),
        ([-3.0, -90.0], [0.5, 0.5]),
        ([-4.0], [1.0]),
        ([-1e4, LOG_ZERO], [0.9, 0.1]),
        ([-2.0, -2.5], [0.0, 1.0]),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_it_gives_the_logarithm_of_the_sum(logs: list[float], weights: list[float], strict: bool) -> None:
    found, _ = run(logs, weights, strict=strict)
    # Terms are rounded at 10^-6 of the largest blinded one, up to 255 times smaller than the largest.
    assert found == pytest.approx(logsumexp(logs, b=weights), abs=1e-3)


def test_many_sums_over_the_same_terms() -> None:
    key, rng = demo_key(), np.random.default_rng(5)
    logs, weights = rng.normal(-50, 2, (2, 3)), rng.random((2, 4, 3))
    encrypted = key.encrypt_many([encode(log, LOG_SCALE) for log in logs.ravel()])
    _, found, record = run_recorded(
        lambda c: alice_logsum(Alice(c, key), groups=2, terms=3, sums=4),
        lambda c: bob_logsum(Bob(c, key.public), encrypted, encode_weights(weights)),
    )
    expected = logsumexp(logs[:, None, :], b=weights, axis=2)
    assert decode(key.decrypt_many(found), LOG_SCALE) == pytest.approx(expected.ravel(), abs=0.05)
    assert record.messages == 4


def test_sums_too_small_to_be_seen_have_a_floor() -> None:
    """Nothing but terms 200 nats below the largest: 10^-12 of it stands in their place."""
    found, _ = run([0.0, -200.0], [0.0, 1.0])
    assert -27.7 - math.log(MU_LARGEST) < found < -27.6


@pytest.mark.parametrize("weights", [[0.5], [0.5, -0.1], [0.5, math.nan], [0.5, math.inf], [0.5, 2e6]])
def test_weights_that_are_none_are_refused_before_anything_is_sent(weights: list[float]) -> None:
    here, there = memory_pair()
    with pytest.raises(RangeError, match="weights"):
        bob(here, demo_key().encrypt_many([0, 0]), weights, **DEMO)
    here.close()
    with pytest.raises(Exception, match="the peer is gone"):
        there.receive(Kind.BLINDED_LOG, 1)


# Attacks


def test_alice_reads_the_ratios_of_the_terms() -> None:
    logs = [-800.0, -750.0, -900.0]
    (blinded,) = seen(run(logs, [0.2, 0.3, 0.5])[1], Kind.BLINDED_LOG)
    read = np.subtract.outer(*2 * [np.array(decode(blinded, LOG_SCALE))])
    true = np.subtract.outer(logs, logs)
    assert np.abs(read - true).max() <= math.log(MU_LARGEST) + 1e-9
    assert (np.sign(read) == np.sign(true)).all()
