"""Secure Exponent: right in the form that runs, garbage in the printed one, and what it gives away."""

import math

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.randomness import uniform_below, uniform_unit
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.exponent import MU_LARGEST, alice, alice_exponent, bob, bob_exponent
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, LOG_SCALE, decode, encode
from ppspeech.network import run_together
from ppspeech.protocols.message_kinds import Kind

from .views import DEMO, demo_key, looks_uniform, run_recorded, seen


def run(logs: list[float], **options: object) -> tuple[list[float], list[float]]:
    """The exponentials, and the numbers Alice sees."""
    key = demo_key()
    encrypted = key.encrypt_many([encode(log, LOG_SCALE) for log in logs])
    _, thetas, record = run_recorded(
        lambda c: alice(c, key, count=len(logs), **DEMO), lambda c: bob(c, encrypted, **options, **DEMO)
    )
    (blinded,) = seen(record, Kind.BLINDED_LOG)
    return decode(key.decrypt_many(thetas)), decode(blinded, LOG_SCALE)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-30, 10), max_size=5), st.booleans())
def test_it_gives_the_exponential_to_the_digits_that_the_mask_leaves(logs: list[float], strict: bool) -> None:
    found, _ = run(logs, strict=strict)
    for theta, log in zip(found, logs, strict=True):
        assert abs(theta - math.exp(log)) <= (MU_LARGEST / 2 + 1) / FACTOR + 1e-11 * math.exp(log)


def test_groups_are_normalized_by_their_largest() -> None:
    key = demo_key()
    logs = [-500.0, -501.0, -2000.0, -2000.5]
    encrypted = key.encrypt_many([encode(log, LOG_SCALE) for log in logs])
    _, (thetas, tops) = run_together(
        lambda c: alice_exponent(Alice(c, key), 4, group=2),
        lambda c: bob_exponent(Bob(c, key.public), encrypted, group=2),
    )
    shifts = decode(key.decrypt_many(tops), LOG_SCALE)
    found = decode(key.decrypt_many(thetas))
    for at, log in enumerate(logs):
        assert math.log(found[at]) + shifts[at // 2] == pytest.approx(log, abs=1e-3)


def test_exponentials_without_room_are_refused() -> None:
    with pytest.raises(RangeError, match="too large"):
        run([80.0])


# Attacks


@pytest.mark.parametrize("theta", [1 / 3, math.pi])
def test_the_printed_form_gives_garbage(theta: float) -> None:
    """β from the units mod N, which at least have an inverse there: 20 runs, and never a number near θ.

    log β as a real number exists for an integer β; Alice can round 10^6 β θ; the power by 1 / β then undoes β only
    where β divides what she rounded.
    """
    key = demo_key()
    public = key.public
    for _ in range(20):
        beta = uniform_unit(gmpy2.mpz(1) << 400)
        rounded = int(gmpy2.rint(gmpy2.mpfr(beta, 600) * (FACTOR * theta)))
        power = public.scale(key.encrypt(rounded), int(public.centered(gmpy2.invert(beta, public.n))))
        decoded = abs(key.decrypt(public.finish(power)))
        assert decoded > 10**100
    # The paper's own rule for such exponents, to keep their integer part, makes 1 / β zero for every β above 1.
    assert key.decrypt(public.finish(public.scale(key.encrypt(rounded), int(1 / beta)))) == 0


def test_alice_learns_a_logarithm_within_the_mask_and_exactly_from_some_runs() -> None:
    """The largest of 2000 blinded values has μ = 1 but for (254 / 255)^2000 = 4e-4, and then μ = 2."""
    log = -1234.5
    key = demo_key()
    encrypted = key.encrypt_many([encode(log, LOG_SCALE)] * 2000)
    _, _, record = run_recorded(
        lambda c: alice_exponent(Alice(c, key), 2000), lambda c: bob_exponent(Bob(c, key.public), encrypted)
    )
    (integers,) = seen(record, Kind.BLINDED_LOG)
    blinded = decode(integers, LOG_SCALE)
    assert all(log - math.log(MU_LARGEST) - 1e-9 <= value <= log + 1e-9 for value in blinded)
    assert abs(max(blinded) - log) <= math.log(2) + 1e-9
    modulus = int(key.public.n)
    assert not looks_uniform(integers, modulus)
    assert looks_uniform([(value + int(uniform_below(key.public.n))) % modulus for value in integers], modulus)
