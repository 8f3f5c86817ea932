"""What each party could learn: attacks that must work where a protection is left out, and fail where it is there."""

import gc
import multiprocessing
import pickle
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tenseal.sealapi as seal
from scipy.stats import chi2
from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from ppspeech.crypto.lattice import (
    Evaluator,
    KeyHolder,
    client_finish,
    client_query,
    encode_weights,
    plan_product,
    server_reply,
)
from ppspeech.crypto.lattice import evaluator as evaluator_module
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.ntt import transform_of
from ppspeech.crypto.lattice.wire import load_query, load_reply
from ppspeech.errors import PpspeechError

KEY = KeyHolder()
PRIME, DEGREE = KEY.parameters.prime, KEY.parameters.degree


class NoZeros:
    """The mutant: nothing is added to a reply."""

    def take(self, count: int) -> list[np.ndarray]:
        return [np.zeros((2, DEGREE), dtype=np.uint64)] * count


def solve(matrix: np.ndarray, values: np.ndarray) -> list[int] | None:
    """Gaussian elimination mod the prime; None if some equation does not hold."""
    rows = np.column_stack((matrix, values)).astype(object)
    unknowns = matrix.shape[1]
    for column in range(unknowns):
        pivot = next(row for row in range(column, len(rows)) if rows[row, column])
        rows[[column, pivot]] = rows[[pivot, column]]
        rows[column] = rows[column] * pow(int(rows[column, column]), -1, PRIME) % PRIME
        others = np.arange(len(rows)) != column
        rows[others] = (rows[others] - np.outer(rows[others, column], rows[column])) % PRIME
    if rows[unknowns:, -1].any():
        return None
    return [int(value) if value < PRIME // 2 else int(value) - PRIME for value in rows[:unknowns, -1]]


def shifts(polynomial: np.ndarray, count: int) -> np.ndarray:
    """Columns X^j a for j below count, modulo X^n + 1."""
    signed = polynomial.astype(object)
    return np.column_stack([np.concatenate((PRIME - signed[DEGREE - j :], signed[: DEGREE - j])) for j in range(count)])


@pytest.mark.parametrize("protected", [False, True])
def test_the_weights_follow_from_one_reply_unless_zero_is_encrypted_afresh(protected: bool) -> None:
    """The key holder knows every a_b of its query; the second part of the reply is sum(W_b a_b) if bare."""
    chosen = plan_product(100, 60, 1)  # three blocks of 20 weights
    weights = np.random.default_rng(0).normal(size=(60, 1))
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    if not protected:
        evaluator.zeros = NoZeros()  # type: ignore[assignment]
    query = client_query(KEY, chosen, np.zeros((100, 60)))
    job = chosen.job
    second = evaluator._hidden_products(evaluator.load(job, query), encode_weights(chosen, weights), 1)[0, 1]

    seeds, _ = load_query(query, KEY.parameters, job.identity, KEY.identity, job.terms)
    known = np.column_stack([shifts(a, chosen.block_inner) for a in expand_seeds(seeds, KEY.parameters)])
    found = solve(known[:70], second[:70])
    if protected:
        assert found is None
    else:
        assert found == chosen.precision.weights.encode(weights).ravel().tolist()


@pytest.mark.parametrize("protected", [False, True])
def test_rounding_the_reply_does_not_replace_the_encryption_of_zero(protected: bool) -> None:
    """From the bytes themselves: the rounding is small noise, which lattice reduction removes."""
    chosen = plan_product(500, 4, 1)
    weights = np.random.default_rng(1).normal(size=(4, 1))
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    if not protected:
        evaluator.zeros = NoZeros()  # type: ignore[assignment]
    query = client_query(KEY, chosen, np.zeros((500, 4)))
    reply, _ = server_reply(evaluator, chosen, encode_weights(chosen, weights), query)
    job, equations, unknowns = chosen.job, 10, 4
    _, second = load_reply(reply, KEY.parameters, job.identity, KEY.identity, job.outputs, len(job.kept))
    values = [round(int(word) * PRIME / 2**32) for word in second[0, 100 : 100 + equations]]
    seeds, _ = load_query(query, KEY.parameters, job.identity, KEY.identity, job.terms)
    known = shifts(expand_seeds(seeds, KEY.parameters)[0], unknowns)[100 : 100 + equations]

    size = equations + unknowns + 1  # Kannan's embedding
    basis = [[0] * size for _ in range(size)]
    for i in range(equations):
        basis[i][i] = PRIME
    for j in range(unknowns):
        basis[equations + j][:equations] = [int(value) for value in known[:, j]]
        basis[equations + j][equations + j] = 1
    basis[-1][:equations] = values
    basis[-1][-1] = 1 << 17
    shortest = DomainMatrix(basis, (size, size), ZZ).lll().to_list()
    candidates = [row for row in shortest if abs(int(row[-1])) == 1 << 17]
    found = [[-int(value) * (1 if row[-1] > 0 else -1) for value in row[equations:-1]] for row in candidates]
    assert (chosen.precision.weights.encode(weights).ravel().tolist() in found) is not protected


# Uniformity. Each test below raises a false alarm once in a million runs.


def is_uniform(values: np.ndarray, bits: int = 8) -> bool:
    counts = np.bincount(values.astype(np.int64), minlength=1 << bits)
    expected = values.size / (1 << bits)
    return bool(((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6 / 4, (1 << bits) - 1))


def masked_words(replies: int) -> np.ndarray:
    """What the key can open in many replies to one query with one model: value, noise and mask."""
    chosen = plan_product(64, 8, 4)
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    weights = encode_weights(chosen, np.full((8, 4), 0.75))
    loaded = evaluator.load(chosen.job, client_query(KEY, chosen, np.full((64, 8), 1.5)))
    return np.concatenate([KEY.open(chosen.job, evaluator.reply(loaded, weights)[0]).ravel() for _ in range(replies)])


def test_opened_words_are_uniform() -> None:
    words = masked_words(60)
    assert words.size >= 10_000
    assert all(is_uniform(words >> np.uint64(shift) & np.uint64(255)) for shift in (0, 8, 16, 24))


@pytest.mark.parametrize("bits", [20, 30, 31])
def test_the_uniformity_test_notices_a_mask_that_is_too_short(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    full = evaluator_module.uniform_residues
    monkeypatch.setattr(evaluator_module, "uniform_residues", lambda shape, _: full(shape, bits))
    words = masked_words(60)
    assert not is_uniform(words >> np.uint64(24) & np.uint64(255))


def test_both_shares_alone_are_uniform() -> None:
    chosen = plan_product(100, 4, 20)
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    weights = encode_weights(chosen, np.full((4, 20), 2.0))
    query = client_query(KEY, chosen, np.full((100, 4), 3.0))
    shares: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for _ in range(6):
        reply, server = server_reply(evaluator, chosen, weights, query)
        shares[0].append(client_finish(KEY, chosen, reply))
        shares[1].append(server)
    for side in shares:
        words = np.concatenate(side).ravel()
        assert is_uniform(words & np.uint64(255))
        assert is_uniform(words >> np.uint64(13))


def test_replies_look_uniform_and_never_repeat() -> None:
    chosen = plan_product(64, 8, 4)
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    weights = encode_weights(chosen, np.full((8, 4), 0.75))
    loaded = evaluator.load(chosen.job, client_query(KEY, chosen, np.full((64, 8), 1.5)))
    job = chosen.job
    replies = [evaluator.reply(loaded, weights)[0] for _ in range(10)]
    firsts, seconds = zip(
        *(load_reply(r, KEY.parameters, job.identity, KEY.identity, job.outputs, len(job.kept)) for r in replies),
        strict=True,
    )
    for words in (np.concatenate(firsts).ravel(), np.concatenate(seconds).ravel()):
        assert is_uniform(words >> np.uint64(28), bits=4)
        assert is_uniform(words & np.uint64(15), bits=4)
    assert len({second.tobytes() for second in seconds}) == len(seconds)


def test_queries_of_equal_numbers_differ_and_look_uniform() -> None:
    chosen = plan_product(98, 82, 5)
    queries = [client_query(KEY, chosen, np.zeros((98, 82))) for _ in range(2)]
    job = chosen.job
    seeds, first = zip(
        *(load_query(q, KEY.parameters, job.identity, KEY.identity, job.terms) for q in queries), strict=True
    )
    assert len({seed for some in seeds for seed in some}) == 2 * job.terms
    assert is_uniform(np.concatenate(first).ravel() * np.uint64(256) // np.uint64(PRIME))


# Encryptions of zero are used once.


def test_every_encryption_of_zero_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = plan_product(6, 10, 3)
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    weights = encode_weights(chosen, np.ones((10, 3)))
    query = client_query(KEY, chosen, np.zeros((6, 10)))
    taken: list[bytes] = []
    take = evaluator.zeros.take
    monkeypatch.setattr(evaluator.zeros, "take", lambda n: [taken.append(z.tobytes()) or z for z in take(n)])  # type: ignore[func-returns-value]
    evaluator.prepare(chosen.job, replies=2)
    for _ in range(5):
        server_reply(evaluator, chosen, weights, query)
    assert len(evaluator.zeros) == 0
    assert len(set(taken)) == len(taken) == 5 * chosen.job.outputs


def test_a_forked_child_does_not_spend_what_the_parent_prepared() -> None:
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    evaluator.zeros.prepare(2)
    receiving, sending = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        sending.send_bytes(len(evaluator.zeros).to_bytes(1, "little") + evaluator.zeros.take(1)[0].tobytes())

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    answer = receiving.recv_bytes()
    process.join()
    assert answer[0] == 0
    assert answer[1:] not in {zero.tobytes() for zero in evaluator.zeros.take(3)}  # two prepared, one fresh


# Secret keys stay where they are.


def reachable(root: Any) -> Iterator[Any]:
    """Everything that can be reached from an object without going through modules, types and code."""
    seen, waiting = set(), [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, types.ModuleType | type | types.FunctionType):
            continue
        seen.add(id(thing))
        yield thing
        waiting += gc.get_referents(thing)
        if isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)


def holds_secret(root: Any) -> bool:
    transform = transform_of(KEY.parameters)
    ternary = transform.inverse_(KEY._secret[None].copy())[0]
    secrets = {KEY._secret.tobytes(), ternary.tobytes()}
    kinds = (seal.SecretKey, seal.Decryptor, seal.KeyGenerator, KeyHolder)
    for thing in reachable(root):
        if isinstance(thing, kinds):
            return True
        content = thing.tobytes() if isinstance(thing, np.ndarray) else thing
        if isinstance(content, bytes) and any(secret in content for secret in secrets):
            return True
    return False


def test_no_secret_key_can_be_reached_from_the_evaluator() -> None:
    chosen = plan_product(6, 10, 3)
    evaluator = Evaluator(KEY.public_key, KEY.coins)
    weights = encode_weights(chosen, np.ones((10, 3)))
    query = client_query(KEY, chosen, np.zeros((6, 10)))
    loaded = evaluator.load(chosen.job, query)
    reply, share = server_reply(evaluator, chosen, weights, loaded)
    assert not holds_secret((evaluator, weights, query, loaded, reply, share))
    assert holds_secret((evaluator, [KEY._secret.copy()]))  # the walk finds one that is there
    assert holds_secret(KEY)


def test_keys_cannot_be_pickled() -> None:
    with pytest.raises(PpspeechError, match="stays in the process"):
        pickle.dumps(KEY)


def test_the_room_draws_from_the_operating_system_only() -> None:
    from pathlib import Path

    folder = Path(evaluator_module.__file__).parent
    for path in folder.glob("*.py"):
        source = path.read_text()
        assert "np.random" not in source, path.name
        assert "import random" not in source, path.name
