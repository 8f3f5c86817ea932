"""Secure Logarithm: right, and what it gives away."""

import math
from functools import reduce

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.randomness import uniform_below
from ppspeech.errors import PrivacyError, RangeError
from ppspeech.evidence.published.protocols.logarithm import BETA_BITS, alice, alice_logarithm, bob, bob_logarithm
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, LOG_SCALE, decode, encode
from ppspeech.network import memory_pair, run_together
from ppspeech.protocols.message_kinds import Kind

from .views import DEMO, ciphertexts_of, demo_key, looks_uniform, run_recorded, seen


def run(thetas: list[int], **options: object) -> tuple[list[float], object]:
    key = demo_key()
    encrypted = key.encrypt_many(thetas)
    _, logs, record = run_recorded(
        lambda c: alice(c, key, count=len(thetas), **DEMO), lambda c: bob(c, encrypted, **options, **DEMO)
    )
    return decode(key.decrypt_many(logs), LOG_SCALE), record


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(1e-6, 1e9), max_size=5), st.booleans())
def test_it_gives_the_logarithm(numbers: list[float], strict: bool) -> None:
    thetas = [encode(number) for number in numbers]
    found, _ = run(thetas, strict=strict)
    assert found == pytest.approx([math.log(theta / FACTOR) for theta in thetas], abs=1e-11)


def test_a_scale_is_taken_off() -> None:
    assert run([7 * LOG_SCALE], scale=LOG_SCALE)[0] == pytest.approx([math.log(7)])


@pytest.mark.parametrize("theta", [0, -5])
def test_zero_and_negative_numbers_have_none(theta: int) -> None:
    with pytest.raises(RangeError, match="zero or negative"):
        run([theta])


def test_keys_that_protect_nothing_are_refused() -> None:
    key = demo_key()
    here, _there = memory_pair()
    with pytest.raises(PrivacyError, match="512-bit key protects nothing"):
        alice(here, key, count=1)
    with pytest.raises(PrivacyError, match="2048"):
        run_together(lambda c: alice(c, key, count=1, **DEMO), lambda c: bob(c, key.encrypt_many([1])))


# Attacks


def test_alice_finds_the_number_as_a_common_divisor_of_its_maskings() -> None:
    """24 maskings share a factor with probability 1e-7; two already do without one six times in ten."""
    theta = 123_456_789
    (products,) = seen(run([theta] * 24)[1], Kind.SCALED)
    assert reduce(math.gcd, products) == theta


def test_alice_reads_the_size_from_one_masking() -> None:
    """β has 40 bits half of the time and fewer than 31 once in 500: one masking tells two sizes 2^20 apart."""
    small, large = 1_000_003, 1_000_003 << 20
    (products,) = seen(run([small] * 64 + [large] * 64)[1], Kind.SCALED)
    guesses = [product.bit_length() - BETA_BITS > 30 for product in products]
    assert sum(not guess for guess in guesses[:64]) == 64
    assert sum(guesses[64:]) > 50


def test_the_test_of_masked_words_fails_on_these() -> None:
    key = demo_key()
    (products,) = seen(run([FACTOR] * 1024)[1], Kind.SCALED)
    modulus = int(key.public.n)
    assert not looks_uniform(products, modulus)
    # As it should, and not because it always does: a mask uniform on the whole ring passes.
    assert looks_uniform([FACTOR + int(uniform_below(key.public.n)) for _ in range(4096)], modulus)


def discrete_log(base: gmpy2.mpz, power: gmpy2.mpz, modulus: gmpy2.mpz, bits: int) -> int | None:
    """Baby steps and giant steps: the exponent, if it has no more than `bits` bits."""
    step = 1 << ((bits + 1) // 2)
    babies, value = {}, gmpy2.mpz(1)
    for exponent in range(step):
        babies[value] = exponent
        value = value * base % modulus
    giant, value = gmpy2.invert(value, modulus), power
    for times in range(step):
        if value in babies:
            return times * step + babies[value]
        value = value * giant % modulus
    return None


@pytest.mark.parametrize("strict", [True, False])
def test_a_result_that_is_not_randomized_again_tells_its_exponent(strict: bool) -> None:
    """Alice divides the plaintexts out and is left with ρ and ρ^β: she finds β without knowing θ's other factors."""
    key, theta, bits = demo_key(), 987_654_321, 20
    public, encrypted = key.public, key.encrypt_many([987_654_321])
    _, _, record = run_recorded(
        lambda c: alice_logarithm(Alice(c, key), 1),
        lambda c: bob_logarithm(Bob(c, public, strict), encrypted, FACTOR, bits=bits),
    )
    (sent,) = ciphertexts_of(record.entries[0].payload or b"")

    def randomness(ciphertext: object) -> gmpy2.mpz:
        plain = 1 + key.decrypt(ciphertext) * public.n
        return ciphertext.value * gmpy2.invert(plain, public.modulus) % public.modulus

    beta = discrete_log(randomness(encrypted[0]), randomness(sent), public.modulus, bits)
    assert beta == (key.decrypt(sent) // theta if strict else None)
