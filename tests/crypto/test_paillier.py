"""Paillier against phe, its homomorphic identities, every malformed input, and what must stay secret."""

import copy
import gc
import pickle
import threading
import types
from collections.abc import Iterable

import gmpy2
import numpy as np
import phe
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.paillier import PaillierPublicKey, PaillierSecretKey, RecodedWeights, Unfinished, generate_paillier
from ppspeech.crypto.paillier.primes import prime_pair
from ppspeech.errors import (
    BadCiphertextError,
    BadLengthError,
    BadTypeError,
    NotInGroupError,
    PrivacyError,
    RangeError,
    WrongKeyError,
)

DEMO = generate_paillier(256, insecure_demo=True)
FULL = generate_paillier(256, randomness="full", insecure_demo=True)
LARGEST = int(DEMO.public.n) // 2

plaintexts = st.integers(-(2**200), 2**200)
weights = st.integers(-(2**40), 2**40)


@pytest.fixture(scope="module")
def key() -> PaillierSecretKey:
    return generate_paillier(2048)


# Against phe


@pytest.fixture(scope="module")
def phe_keys() -> tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey]:
    return phe.generate_paillier_keypair(n_length=2048)


@pytest.mark.parametrize("value", [0, 1, -1, 123456789, -(2**2000)])
def test_phe_reads_ours(phe_keys: tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey], value: int) -> None:
    public, secret = phe_keys
    ours = PaillierSecretKey(secret.p, secret.q)
    for ciphertext in (ours.encrypt(value), ours.public.encrypt(value)):
        assert secret.raw_decrypt(int(ciphertext.value)) == value % public.n


@pytest.mark.parametrize("value", [0, 1, -1, 123456789, -(2**2000)])
def test_we_read_phe(phe_keys: tuple[phe.PaillierPublicKey, phe.PaillierPrivateKey], value: int) -> None:
    public, secret = phe_keys
    ours = PaillierSecretKey(secret.p, secret.q)
    assert ours.decrypt(ours.public.accept(public.raw_encrypt(value % public.n))) == value


def test_our_key_serves_phe(key: PaillierSecretKey) -> None:
    p, q = (int(half.prime) for half in key._halves)
    public = phe.PaillierPublicKey(int(key.public.n))
    secret = phe.PaillierPrivateKey(public, p, q)
    assert secret.raw_decrypt(int(key.encrypt(77).value)) == 77
    encrypted = public.encrypt(3.25) * 4 + 1.5
    assert secret.decrypt(encrypted) == 14.5
    assert key.decrypt(key.public.accept(public.encrypt(-9).ciphertext())) == -9


def test_operations_are_those_of_phe() -> None:
    """With the same randomizer, every operation gives phe's very number."""
    public = phe.PaillierPublicKey(int(FULL.public.n))
    one, two = FULL.encrypt(41), FULL.encrypt(-7)
    theirs = phe.EncryptedNumber(public, int(one.value))
    assert FULL.public.add(one, two).value == theirs._raw_add(int(one.value), int(two.value))
    assert FULL.public.scale(one, 12345).value == theirs._raw_mul(12345)
    assert FULL.public.scale(one, -5).value == theirs._raw_mul(public.n - 5)
    zero = int(gmpy2.powmod(99, public.n, public.nsquare))
    assert FULL.public._embed(mpz(41)) * zero % public.nsquare == public.raw_encrypt(41, r_value=99)


# Identities


@pytest.mark.parametrize("secret", [DEMO, FULL], ids=["djn", "full"])
@given(value=plaintexts)
def test_decryption_undoes_encryption(secret: PaillierSecretKey, value: int) -> None:
    assert secret.decrypt(secret.encrypt(value)) == value
    assert secret.decrypt(secret.public.encrypt(value)) == value


@given(a=plaintexts, b=plaintexts, k=weights)
def test_homomorphic_identities(a: int, b: int, k: int) -> None:
    public = DEMO.public
    left, right = DEMO.encrypt(a), DEMO.encrypt(b)
    assert DEMO.decrypt(public.finish(public.add(left, right))) == a + b
    assert DEMO.decrypt(public.finish(public.add_plain(left, b))) == a + b
    assert DEMO.decrypt(public.finish(public.add_plain(public.scale(left, k), b))) == k * a + b
    assert public.scale(left, k) == public.scale(left, k, secret=False)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 0], ids=["largest", "smallest", "zero"])
def test_the_ends_of_the_range(value: int) -> None:
    assert DEMO.decrypt(DEMO.encrypt(value)) == value


@pytest.mark.parametrize("value", [LARGEST + 1, -LARGEST - 1, 2**4000], ids=["above", "below", "far"])
def test_beyond_the_range_is_refused(value: int) -> None:
    for attempt in (DEMO.encrypt, DEMO.public.encrypt, lambda v: DEMO.public.add_plain(DEMO.encrypt(0), v)):
        with pytest.raises(RangeError, match="does not fit"):
            attempt(value)


def test_sums_wrap_around() -> None:
    assert DEMO.decrypt(DEMO.public.finish(DEMO.public.add_plain(DEMO.encrypt(LARGEST), 1))) == -LARGEST


@settings(max_examples=25)
@given(rows=st.integers(0, 4), terms=st.integers(1, 6), data=st.data())
def test_scalar_products(rows: int, terms: int, data: st.DataObject) -> None:
    matrix = np.array(data.draw(st.lists(weights, min_size=rows * terms, max_size=rows * terms)), dtype=np.int64)
    matrix = matrix.reshape(rows, terms)
    vector = data.draw(st.lists(plaintexts, min_size=terms, max_size=terms))
    results = DEMO.public.scalar_products(DEMO.encrypt_many(vector), matrix)
    expected = [sum(int(w) * x for w, x in zip(row, vector, strict=True)) for row in matrix]
    assert DEMO.decrypt_many(DEMO.public.finish_many(results)) == expected


def test_both_cores_give_what_one_gives(key: PaillierSecretKey) -> None:
    values = [5, -3, 2**70, 0, 9]
    ciphertexts = key.encrypt_many(values, workers=2)
    assert key.decrypt_many(ciphertexts) == key.decrypt_many(ciphertexts, workers=2) == values
    plan = RecodedWeights.of(np.array([[1, -2, 3, 100, -5], [0, 0, 0, 0, 0], [7, 7, -7, 1, 1]]))
    alone = key.public.scalar_products(ciphertexts, plan)
    assert alone == key.public.scalar_products(ciphertexts, plan, workers=2)
    finished = key.public.finish_many(alone, workers=2)
    assert key.decrypt_many(finished, workers=3) == [5 + 6 + 3 * 2**70 - 45, 0, 35 - 21 - 7 * 2**70 + 9]


# Randomness


@pytest.mark.parametrize("secret", [DEMO, FULL], ids=["djn", "full"])
def test_equal_plaintexts_have_different_ciphertexts(secret: PaillierSecretKey) -> None:
    for encrypt in (secret.encrypt_many, secret.public.encrypt_many):
        ciphertexts = encrypt([7] * 50)
        assert len({c.value for c in ciphertexts}) == 50
        assert secret.decrypt_many(ciphertexts) == [7] * 50


@pytest.mark.parametrize("secret", [DEMO, FULL], ids=["djn", "full"])
def test_randomizers_are_nth_powers(secret: PaillierSecretKey) -> None:
    """Encryptions of zero have order dividing (p - 1)(q - 1); a number with a plaintext in it does not."""
    p, q = (half.prime for half in secret._halves)
    for zero in secret._fresh_zeros(3) + secret.public._fresh_zeros(3):
        assert gmpy2.powmod(zero, (p - 1) * (q - 1), secret.public.modulus) == 1
    assert gmpy2.powmod(secret.encrypt(1).value, (p - 1) * (q - 1), secret.public.modulus) != 1


def test_short_exponents_have_the_stated_length(key: PaillierSecretKey) -> None:
    assert [half.tables.length for half in key._halves] == [48, 48]  # 384 bits modulo each prime
    assert key.public._tables.length == 128  # 1024 bits modulo N


def test_finishing_changes_the_number_not_the_plaintext() -> None:
    result = DEMO.public.add(DEMO.encrypt(1), DEMO.encrypt(2))
    first, second = DEMO.public.finish(result), DEMO.public.finish(result)
    assert len({result.value, first.value, second.value}) == 3
    assert DEMO.decrypt(first) == DEMO.decrypt(second) == 3


def test_what_finishing_protects_against() -> None:
    """The key holder reads a weight off an unfinished result by trying them all; a finished one matches none."""
    sent, weight = DEMO.encrypt(12), 37
    result = DEMO.public.scale(sent, weight)
    candidates = {DEMO.public.scale(sent, guess).value: guess for guess in range(100)}
    assert candidates[result.value] == weight
    assert DEMO.public.finish(result).value not in candidates


def test_prepared_randomizers_are_used_once_and_by_one_thread() -> None:
    secret = generate_paillier(128, insecure_demo=True)
    secret.prepare(300)
    prepared = set(secret.randomizers._store)
    taken: list[mpz] = []

    def take() -> None:
        for _ in range(100):
            taken.extend(secret.randomizers.take(1))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 400
    assert prepared < set(taken)
    assert len(secret.randomizers) == 0


def test_prepared_randomizers_make_valid_ciphertexts() -> None:
    DEMO.prepare(3, workers=2)
    DEMO.public.prepare(3)
    assert (len(DEMO.randomizers), len(DEMO.public.randomizers)) == (3, 3)
    assert DEMO.decrypt_many(DEMO.encrypt_many([4, 5])) == [4, 5]
    assert DEMO.decrypt(DEMO.public.finish(DEMO.public.add_plain(DEMO.public.encrypt(-4), 1))) == -3
    assert (len(DEMO.randomizers), len(DEMO.public.randomizers)) == (1, 1)


# Keys


@pytest.mark.parametrize("bits", [64, 512, 1024, 2046])
def test_short_keys_are_refused(bits: int) -> None:
    with pytest.raises(PrivacyError, match="insecure_demo=True"):
        generate_paillier(bits)
    short = generate_paillier(bits if bits < 1024 else 512, insecure_demo=True)
    assert short.public.insecure_demo
    with pytest.raises(PrivacyError):
        PaillierPublicKey(short.public.n)
    with pytest.raises(PrivacyError):
        PaillierPublicKey.from_bytes(short.public.to_bytes())


@pytest.mark.parametrize("bits", [30, 257, 0, -2])
def test_impossible_key_sizes_are_refused(bits: int) -> None:
    with pytest.raises(PrivacyError, match="even number of bits"):
        generate_paillier(bits, insecure_demo=True)


def test_the_demo_mark_is_shown() -> None:
    assert "INSECURE demo" in repr(DEMO)
    assert "INSECURE demo" in repr(DEMO.public)


def test_generated_keys_are_sound(key: PaillierSecretKey) -> None:
    p, q = (half.prime for half in key._halves)
    assert key.public.n == p * q
    assert key.public.bits == 2048
    assert p.bit_length() == q.bit_length() == 1024
    assert p % 4 == q % 4 == 3
    assert gmpy2.gcd(p - 1, q - 1) == 2
    assert gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1
    assert "INSECURE" not in repr(key)


def test_the_default_is_3072_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def small_pair(bits: int, fits: object) -> tuple[mpz, mpz]:
        asked.append(bits)
        return prime_pair(128, lambda p, q: True)

    monkeypatch.setattr("ppspeech.crypto.paillier.scheme.prime_pair", small_pair)
    generate_paillier(insecure_demo=True)
    assert asked == [3072]


def test_impossible_primes_are_refused() -> None:
    p, q = prime_pair(128, lambda p, q: True)
    for first, second in [(p, p), (p, q + 1), (p * q, q)]:
        with pytest.raises(NotInGroupError, match="two different primes"):
            PaillierSecretKey(first, second, insecure_demo=True)
    with pytest.raises(NotInGroupError, match="divides the other"):
        PaillierSecretKey(p, next(k * p + 1 for k in range(2, 9999) if gmpy2.is_prime(k * p + 1)), insecure_demo=True)
    with pytest.raises(NotInGroupError, match="Blum"):
        PaillierSecretKey(2**31 - 1, 4294967029, randomness="djn", insecure_demo=True)


@pytest.mark.parametrize("n", [gmpy2.next_prime(1 << 63), (2**31 - 1) ** 2, 3 * gmpy2.next_prime(1 << 62), 1 << 63])
def test_moduli_that_are_no_keys_are_refused(n: mpz) -> None:
    with pytest.raises(NotInGroupError, match="no product of two large primes"):
        PaillierPublicKey(n, insecure_demo=True)


def test_unknown_randomness_is_refused() -> None:
    with pytest.raises(ValueError, match="'djn' or 'full'"):
        PaillierPublicKey(DEMO.public.n, randomness="none", insecure_demo=True)  # type: ignore[arg-type]


# Messages


def test_public_keys_travel(key: PaillierSecretKey) -> None:
    assert PaillierPublicKey.from_bytes(key.public.to_bytes()) == key.public
    for secret in (DEMO, FULL):
        received = PaillierPublicKey.from_bytes(secret.public.to_bytes(), insecure_demo=True)
        assert received == secret.public
        assert received.randomness == secret.public.randomness
        assert secret.decrypt(received.encrypt(-6)) == -6


def test_damaged_public_keys_are_refused() -> None:
    data = DEMO.public.to_bytes()
    for wrong in (b"", data[:1], data[:-1], data + b"\0", b"\0\0\0"):
        with pytest.raises(BadLengthError):
            PaillierPublicKey.from_bytes(wrong, insecure_demo=True)
    with pytest.raises(BadTypeError):
        PaillierPublicKey.from_bytes(data[:2] + b"\2" + data[3:], insecure_demo=True)
    with pytest.raises(BadTypeError):
        PaillierPublicKey.from_bytes(data[:3] + b"\0" + data[4:], insecure_demo=True)


def test_ciphertexts_travel() -> None:
    ciphertexts = DEMO.encrypt_many([1, -2, 3])
    data = DEMO.public.dump(ciphertexts)
    assert len(data) == DEMO.public.wire_bytes(3) == 16 + 3 * 64
    assert DEMO.public.load(data, 3) == ciphertexts
    assert DEMO.public.load(DEMO.public.dump([]), 0) == []


def test_lengths_do_not_depend_on_the_plaintext() -> None:
    assert len({len(DEMO.public.dump([DEMO.encrypt(value)])) for value in (0, 1, -1, LARGEST)}) == 1


def test_malformed_ciphertexts_are_refused() -> None:
    public = DEMO.public
    data = public.dump(DEMO.encrypt_many([1, 2]))
    for wrong in (b"", data[:-1], data + b"\0", data[16:]):
        with pytest.raises(BadLengthError, match="2 ciphertexts take"):
            public.load(wrong, 2)
    with pytest.raises(WrongKeyError):
        public.load(FULL.public.key_id + data[16:], 2)
    size = public.ciphertext_bytes
    for number in (mpz(0), public.modulus, mpz(2) ** (8 * size) - 1):
        with pytest.raises(BadCiphertextError):
            public.load(public.key_id + number.to_bytes(size, "big"), 1)
    p, q = (half.prime for half in DEMO._halves)
    for number in (p, q, public.n, p * 12345, public.n * (public.n - 1)):
        with pytest.raises(NotInGroupError):
            public.load(public.key_id + number.to_bytes(size, "big"), 1)
    for number in (0, -1, public.modulus):
        with pytest.raises(BadCiphertextError):
            public.accept(number)


def test_other_keys_are_refused() -> None:
    foreign = FULL.encrypt(1)
    own = DEMO.encrypt(1)
    public = DEMO.public
    for attempt in (
        lambda: DEMO.decrypt(foreign),
        lambda: public.add(own, foreign),
        lambda: public.add_plain(foreign, 1),
        lambda: public.scale(foreign, 2),
        lambda: public.scalar_products([foreign], np.array([[1]])),
        lambda: public.finish(FULL.public.scale(foreign, 2)),
        lambda: public.dump([foreign]),
    ):
        with pytest.raises(WrongKeyError):
            attempt()


def test_unfinished_results_cannot_leave() -> None:
    result = DEMO.public.add(DEMO.encrypt(1), DEMO.encrypt(2))
    with pytest.raises(TypeError, match=r"finish\(\)"):
        DEMO.public.dump([result])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="unfinished"):
        pickle.dumps(result)
    assert str(int(result.value)) not in repr(result)


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.ones(3, np.int64), np.ones((2, 4), np.int64)])
def test_weights_that_do_not_fit_are_refused(matrix: np.ndarray) -> None:
    with pytest.raises(RangeError):
        DEMO.public.scalar_products(DEMO.encrypt_many([1, 2, 3]), matrix)


# Secrets


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_secret_keys_cannot_be_duplicated(duplicate: types.FunctionType) -> None:
    with pytest.raises(TypeError, match="never pickled"):
        duplicate(DEMO)


def test_secret_keys_are_not_shown() -> None:
    shown = repr(DEMO) + str(DEMO) + f"{DEMO}"
    for half in DEMO._halves:
        for number in (half.prime, half.square, half.prime - 1):
            assert str(number) not in shown
            assert f"{number:x}" not in shown


def reachable(roots: Iterable[object]) -> list[object]:
    """Every object that can be reached from the roots, but through modules, classes and the code they share."""
    seen: dict[int, object] = {}
    stack = list(roots)
    shared = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.FrameType)
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, shared):
            continue
        seen[id(item)] = item
        stack.extend(gc.get_referents(item))
        stack.extend(getattr(item, name) for name in getattr(type(item), "__slots__", ()) if hasattr(item, name))
    return list(seen.values())


def test_the_evaluator_cannot_reach_the_secret() -> None:
    secret = generate_paillier(256, insecure_demo=True)
    secret.prepare(2)
    secret.public.prepare(2)
    ciphertext = secret.encrypt(5)
    evaluator = [
        secret.public,
        ciphertext,
        secret.public.scale(ciphertext, 3),
        *secret.public.scalar_products([], np.ones((1, 0), np.int64)),
    ]
    found = reachable(evaluator)
    p, q = (half.prime for half in secret._halves)
    assert not any(isinstance(item, PaillierSecretKey) or "_Half" in type(item).__name__ for item in found)
    numbers = [mpz(item) for item in found if isinstance(item, int | type(p))]
    assert secret.public.n in numbers, "the walk must reach numbers at all"
    assert not any(number > 1 and gmpy2.gcd(number, p * q) in (p, q) for number in numbers)
    assert any(item is secret._halves[0] for item in reachable([secret])), (
        "the walk must see a secret where there is one"
    )
    assert isinstance(evaluator[2], Unfinished)
