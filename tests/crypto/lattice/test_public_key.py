"""Keys whose second half nobody chooses: what they are, what is refused, and the attacks of those who could choose."""

import numpy as np
import pytest
from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from ppspeech.crypto.lattice import (
    Evaluator,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    client_query,
    encode_weights,
    key_length,
    plan_product,
    server_reply,
)
from ppspeech.crypto.lattice import public_key as module
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.ntt import transform_of
from ppspeech.crypto.lattice.parameters import LARGEST_ERROR
from ppspeech.crypto.lattice.public_key import first_half, load_public_key, second_half
from ppspeech.crypto.lattice.wire import dump_query, load_query, load_reply
from ppspeech.errors import BadCiphertextError

RING = LatticeParameters()
PRIME, DEGREE = RING.prime, RING.degree


def signed(residues: np.ndarray) -> np.ndarray:
    return np.where(residues > PRIME // 2, residues.astype(np.int64) - PRIME, residues.astype(np.int64))


def first_residues(sent: bytes) -> np.ndarray:
    return np.pad(np.frombuffer(sent, np.uint8).reshape(DEGREE, -1), ((0, 0), (0, 1))).view("<u8").ravel()


def test_a_key_is_an_encryption_of_zero_under_the_secret() -> None:
    """b + a s = -e, of the size and spread that SEAL's errors have; the public half that travels is b alone."""
    key, transform = KeyHolder(), transform_of(RING)
    assert len(key.public_key) == key_length(RING) == 7 * DEGREE
    product = transform.multiply_(second_half(key.coins, RING)[None], key._secret, key._secret_quotients)
    error = signed(transform.inverse_((product + first_residues(key.public_key)) % np.uint64(PRIME))[0])
    assert np.abs(error).max() <= LARGEST_ERROR
    assert error.std() == pytest.approx(np.sqrt(LARGEST_ERROR / 2), rel=0.1)
    loaded = load_public_key(key.public_key, key.coins, RING)
    assert (loaded == np.stack((first_residues(key.public_key), second_half(key.coins, RING)))).all()


def test_the_second_half_follows_from_coins_and_ring_alone_and_looks_uniform() -> None:
    halves = [second_half(coins, RING) for coins in (b"a", b"b")]
    assert (halves[0] == second_half(b"a", RING)).all()
    assert not (halves[0] == halves[1]).any()
    smaller = LatticeParameters(prime=(1 << 46) - 110591)
    assert not (second_half(b"a", smaller) == halves[0] % np.uint64(smaller.prime)).any()
    spread = np.bincount((np.concatenate(halves) * np.uint64(16) // np.uint64(PRIME)).astype(int), minlength=16)
    assert ((spread - DEGREE / 8) ** 2 / (DEGREE / 8)).sum() < 60  # chi-square, 15 degrees of freedom: 2e-7
    assert first_half(KEY._secret, b"a", RING) != first_half(KEY._secret, b"a", RING)  # a new error each time


KEY = KeyHolder()


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (KEY.public_key[:-1], "bytes"),
        (KEY.public_key + b"\0", "bytes"),
        (b"", "bytes"),
        (b"\xff" * key_length(RING), "below the prime"),
        (KEY.public_key[:-7] + PRIME.to_bytes(7, "little"), "below the prime"),
    ],
    ids=["short", "long", "empty", "ones", "q"],
)
def test_what_is_no_key_is_refused(damaged: bytes, said: str) -> None:
    with pytest.raises(BadCiphertextError, match=said):
        Evaluator(damaged, KEY.coins)


# An evaluator's weights, and a key holder that sends whatever it likes.


def chosen_second_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the key holder sends both halves; here (0, 1), which is 1 in transformed form."""
    monkeypatch.setattr(module, "second_half", lambda coins, ring: np.ones(ring.degree, np.uint64))


def small_product() -> tuple[MatrixPlan, np.ndarray]:
    return plan_product(500, 4, 1), np.random.default_rng(1).normal(size=(4, 1))


def weights_found(plan: MatrixPlan, reply: bytes, query: bytes, identity: bytes) -> list[list[int]]:
    """What the key holder makes of a reply: its second part is known a_b times W_b, if nothing large was added."""
    job, equations, unknowns = plan.job, 12, 4
    _, second = load_reply(reply, RING, job.identity, identity, job.outputs, len(job.kept))
    values = [round(int(word) * PRIME / 2**32) for word in second[0, 100 : 100 + equations]]
    seeds, _ = load_query(query, RING, job.identity, identity, job.terms)
    known = expand_seeds(seeds, RING)[0].astype(object)
    size = equations + unknowns + 1  # Kannan's embedding
    basis = [[0] * size for _ in range(size)]
    for i in range(equations):
        basis[i][i] = PRIME
    for j in range(unknowns):
        basis[equations + j][:equations] = [int(known[100 + i - j]) for i in range(equations)]
        basis[equations + j][equations + j] = 1
    basis[-1][:equations], basis[-1][-1] = values, 1 << 17
    shortest = DomainMatrix(basis, (size, size), ZZ).lll().to_list()
    ends = [row for row in shortest if abs(int(row[-1])) == 1 << 17]
    return [[-int(value) * (1 if row[-1] > 0 else -1) for value in row[equations:-1]] for row in ends]


@pytest.mark.parametrize("chosen", [True, False], ids=["holder's choice", "nobody's choice"])
def test_a_key_holder_that_chooses_the_second_half_reads_the_weights(
    chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pk = (0, 1): the encryption of zero is (e1, u + e2), which rounding swallows. It cannot be said any more: what
    the holder sends is b, here 0, and a is the evaluator's own.
    """
    if chosen:
        chosen_second_half(monkeypatch)
    plan, weights = small_product()
    evaluator = Evaluator(bytes(key_length(RING)), b"coins")
    query = b"LATQ" + plan.job.identity + evaluator.identity + client_query(KEY, plan, np.zeros((500, 4)))[20:]
    reply, _ = server_reply(evaluator, plan, encode_weights(plan, weights), query)
    found = weights_found(plan, reply, query, evaluator.identity)
    assert (plan.precision.weights.encode(weights).ravel().tolist() in found) is chosen


@pytest.mark.parametrize("chosen", [True, False], ids=["evaluator's choice", "nobody's choice"])
def test_an_evaluator_that_chooses_the_second_half_reads_the_key(chosen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a = 2^10 the first half is -(1024 s + e): the secret is what stands above the error."""
    if chosen:
        monkeypatch.setattr(module, "second_half", lambda coins, ring: np.full(ring.degree, 1 << 10, np.uint64))
    key, transform = KeyHolder(coins=b"evaluator's"), transform_of(RING)
    secret = signed(transform.inverse_(key._secret[None].copy())[0])
    first = signed(transform.inverse_(first_residues(key.public_key)[None].copy())[0])
    guessed = -np.rint(first / 1024).astype(np.int64)
    assert set(secret) == {-1, 0, 1}
    assert bool((guessed == secret).all()) is chosen


def test_a_seed_that_comes_twice_is_refused() -> None:
    """Few unknowns in one lattice: what made the reading of whole models cheap."""
    plan = plan_product(100, 60, 1)
    job, query = plan.job, client_query(KEY, plan, np.zeros((100, 60)))
    seeds, first = load_query(query, RING, job.identity, KEY.identity, job.terms)
    again = dump_query(RING, job.identity, KEY.identity, [seeds[0], *seeds[:-1]], first)
    with pytest.raises(BadCiphertextError, match="comes twice"):
        Evaluator(KEY.public_key, KEY.coins).load(job, again)
