"""What every additive scheme must do, and what is particular to Damgard-Jurik and Benaloh."""

import copy
import pickle

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.crypto.paillier import (
    BenalohPublicKey,
    BenalohSecretKey,
    DamgardJurikPublicKey,
    DamgardJurikSecretKey,
    PaillierSecretKey,
    generate_benaloh,
    generate_damgard_jurik,
    generate_paillier,
)
from ppspeech.crypto.paillier.benaloh import generates, prime_factors
from ppspeech.crypto.paillier.primes import prime_pair
from ppspeech.errors import BadCiphertextError, BadLengthError, NotInGroupError, PrivacyError, RangeError, WrongKeyError

KEYS: dict[str, PaillierSecretKey | DamgardJurikSecretKey | BenalohSecretKey] = {
    "paillier": generate_paillier(128, insecure_demo=True),
    "damgard-jurik-1": generate_damgard_jurik(128, s=1, insecure_demo=True),
    "damgard-jurik-3": generate_damgard_jurik(128, s=3, insecure_demo=True),
    "benaloh-prime": generate_benaloh(128, r=65537, insecure_demo=True),
    "benaloh-composite": generate_benaloh(128, r=3**4 * 5 * 49, insecure_demo=True),
}
P, Q = prime_pair(128, lambda p, q: True)

every_scheme = pytest.mark.parametrize("name", KEYS)


def centered(value: int, modulus: int) -> int:
    return (value + modulus // 2) % modulus - modulus // 2


@every_scheme
@given(data=st.data())
def test_sums_and_multiples(name: str, data: st.DataObject) -> None:
    key = KEYS[name]
    scheme = key.public
    modulus = int(scheme.plaintext_modulus)
    numbers = st.integers(-(modulus // 2), modulus // 2)
    a, b, k = (data.draw(numbers) for _ in range(3))
    left, right = scheme.encrypt(a), scheme.encrypt(b)
    assert key.decrypt(left) == a
    assert key.decrypt(scheme.finish(scheme.add(left, right))) == centered(a + b, modulus)
    assert key.decrypt(scheme.finish(scheme.add_plain(left, b))) == centered(a + b, modulus)
    assert key.decrypt(scheme.finish(scheme.scale(left, k))) == centered(a * k, modulus)
    weights = np.array([[3, -2]])
    (product,) = scheme.scalar_products([left, right], weights)
    assert key.decrypt(scheme.finish(product)) == centered(3 * a - 2 * b, modulus)


@every_scheme
def test_messages(name: str) -> None:
    scheme = KEYS[name].public
    ciphertexts = [scheme.encrypt(1), scheme.encrypt(1)]
    assert ciphertexts[0].value != ciphertexts[1].value
    data = scheme.dump(ciphertexts)
    assert scheme.load(data, 2) == ciphertexts
    with pytest.raises(BadLengthError):
        scheme.load(data[:-1], 2)
    with pytest.raises(WrongKeyError):
        scheme.load(bytes(16) + data[16:], 2)
    size = (len(data) - 16) // 2
    with pytest.raises(BadCiphertextError):
        scheme.load(data[:16] + bytes(size), 1)
    with pytest.raises(BadCiphertextError):
        scheme.load(data[:16] + b"\xff" * size, 1)


@every_scheme
def test_doors_are_closed(name: str) -> None:
    key = KEYS[name]
    modulus = int(key.public.plaintext_modulus)
    for value in (modulus // 2 + 1, -(modulus // 2) - 1):
        with pytest.raises(RangeError, match="does not fit"):
            key.public.encrypt(value)
    other = next(k for k in KEYS.values() if k is not key)
    with pytest.raises(WrongKeyError):
        key.decrypt(other.public.encrypt(1))
    for duplicate in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="never pickled"):
            duplicate(key)
    assert "INSECURE demo" in repr(key)
    assert "INSECURE demo" in repr(key.public)


@pytest.mark.parametrize("generate", [generate_paillier, generate_damgard_jurik, generate_benaloh])
def test_short_keys_are_refused(generate: object) -> None:
    with pytest.raises(PrivacyError, match="insecure_demo"):
        generate(1024)  # type: ignore[operator]


# Damgard-Jurik


def test_damgard_jurik_with_s_1_is_paillier() -> None:
    paillier = PaillierSecretKey(P, Q, insecure_demo=True)
    jurik = DamgardJurikSecretKey(P, Q, 1, insecure_demo=True)
    assert jurik.public._embed(mpz(-12345)) == paillier.public._embed(mpz(-12345))
    for value in (0, 5, -(10**15)):
        assert jurik.decrypt(jurik.public.accept(paillier.encrypt(value).value)) == value
        assert paillier.decrypt(paillier.public.accept(jurik.public.encrypt(value).value)) == value


@pytest.mark.parametrize("s", [1, 2, 5])
def test_damgard_jurik_powers_of_the_generator(s: int) -> None:
    public = DamgardJurikPublicKey(P * Q, s, insecure_demo=True)
    for value in (0, 1, 2, -1, 12345678901234567890, -(2**100)):
        assert public._embed(mpz(value)) == gmpy2.powmod(1 + P * Q, value, public.modulus)
    assert public.ciphertext_bytes == 16 * (s + 1)


@pytest.mark.parametrize("s", [0, 17])
def test_damgard_jurik_refuses_other_exponents(s: int) -> None:
    with pytest.raises(RangeError, match="between 1 and 16"):
        generate_damgard_jurik(128, s=s, insecure_demo=True)


def test_damgard_jurik_refuses_what_is_no_key() -> None:
    with pytest.raises(NotInGroupError):
        DamgardJurikPublicKey(gmpy2.next_prime(1 << 127), 2, insecure_demo=True)
    with pytest.raises(NotInGroupError):
        DamgardJurikSecretKey(P, P, 2, insecure_demo=True)


# Benaloh


def small_benaloh(r: int) -> tuple[mpz, mpz]:
    """Primes of 32 bits with r | p - 1, as the scheme needs them."""
    p = next(
        mpz(k * r + 1)
        for k in range(2 * ((3 << 29) // r), 1 << 40)
        if gmpy2.gcd(k, r) == 1 and gmpy2.is_prime(k * r + 1) and mpz(k * r + 1).bit_length() == 32
    )
    q = next(q for q in range((1 << 32) - 5, 0, -2) if gmpy2.is_prime(q) and gmpy2.gcd(q - 1, r) == 1)
    return p, mpz(q)


def test_benaloh_own_condition_is_not_enough() -> None:
    """For r = 15 some y pass Benaloh's test and decrypt two plaintexts to one; the corrected test refuses them."""
    r = 15
    p, q = small_benaloh(r)
    phi = (p - 1) * (q - 1)
    original = [y for y in range(2, 400) if gmpy2.powmod(y, phi // r, p * q) != 1]
    ambiguous = [y for y in original if len({gmpy2.powmod(y, m * (p - 1) // r, p) for m in range(r)}) < r]
    assert ambiguous, "the published condition must let some bad generators through"
    for y in original:
        assert generates(mpz(y), p, r) == (y not in ambiguous)
    with pytest.raises(NotInGroupError, match="several plaintexts"):
        BenalohSecretKey(p, q, r, ambiguous[0], insecure_demo=True)
    key = BenalohSecretKey(p, q, r, next(y for y in original if y not in ambiguous), insecure_demo=True)
    assert sorted(key.decrypt(key.public.encrypt(m)) for m in range(-7, 8)) == list(range(-7, 8))


@pytest.mark.parametrize("r", [3, 15, 45, 257, 1001])
def test_benaloh_decrypts_every_plaintext(r: int) -> None:
    key = generate_benaloh(128, r=r, insecure_demo=True)
    for m in range(-(r // 2), r // 2 + 1, max(1, r // 100)):
        assert key.decrypt(key.public.encrypt(m)) == m


@pytest.mark.parametrize("r", [1, 2, 10, -3, 2**33 + 1])
def test_benaloh_refuses_other_plaintext_moduli(r: int) -> None:
    with pytest.raises(RangeError, match="odd, between 3"):
        generate_benaloh(128, r=r, insecure_demo=True)


def test_benaloh_refuses_what_is_no_key() -> None:
    p, q = small_benaloh(15)
    with pytest.raises(NotInGroupError, match="must divide"):
        BenalohSecretKey(p, q, 7 * 11 * 13 * 17, 2, insecure_demo=True)
    for y in (0, 1, p * q, p):
        with pytest.raises(NotInGroupError):
            BenalohPublicKey(p * q, 15, y, insecure_demo=True)
    with pytest.raises(RangeError, match="no room"):
        generate_benaloh(64, r=2**31 - 1, insecure_demo=True)


@given(number=st.integers(2, 10**6))
def test_prime_factors(number: int) -> None:
    factors = prime_factors(number)
    assert all(gmpy2.is_prime(f) and number % f == 0 for f in factors)
    for f in factors:
        while number % f == 0:
            number //= f
    assert number == 1
