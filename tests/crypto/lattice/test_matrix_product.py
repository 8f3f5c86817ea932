"""The encrypted product against the plain one, its error against the bound, its bytes against the formula."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.lattice import (
    EncodedWeights,
    Evaluator,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    Precision,
    ReplyMask,
    client_finish,
    client_query,
    encode_weights,
    error_bound,
    plan_product,
    server_reply,
    share_before,
    weight_polynomials,
)
from ppspeech.crypto.lattice import evaluator as evaluating
from ppspeech.crypto.lattice.parameters import LARGEST_ERROR
from ppspeech.crypto.lattice.wire import HEADER_BYTES
from ppspeech.crypto.numbers import Scale
from ppspeech.errors import BadCiphertextError, PpspeechError, RangeError, WrongKeyError

KEY = KeyHolder()
EVALUATOR = Evaluator(KEY.public_key, KEY.coins)


def product(chosen: MatrixPlan, features: np.ndarray, weights: np.ndarray, key: KeyHolder = KEY) -> np.ndarray:
    """All three steps, then the sum of the shares; checks the bytes on the way."""
    evaluator = EVALUATOR if key is KEY else Evaluator(key.public_key, key.coins, key.parameters)
    query = client_query(key, chosen, features)
    reply, server = server_reply(evaluator, chosen, encode_weights(chosen, weights), query, workers=2)
    client = client_finish(key, chosen, reply)
    assert (len(query), len(reply)) == (chosen.job.query_bytes, chosen.job.reply_bytes)
    scale = chosen.precision.result
    assert client.shape == server.shape == (chosen.rows, chosen.columns)
    assert max(client.max(), server.max()) < 1 << scale.bits
    return scale.decode(scale.ring.to_signed(scale.ring.join(client, server)))


def bound(chosen: MatrixPlan, features: np.ndarray, weights: np.ndarray) -> float:
    norms = np.abs(features).sum(1).max(), np.abs(weights).sum(0).max()
    return error_bound(chosen.precision, *norms, chosen.inner, chosen.block_columns).total


def gaussian(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=scale, size=shape)


def test_the_keyword_job_is_within_its_bound_and_a_twentieth_of_a_nat() -> None:
    chosen = plan_product(98, 820, 50)
    frames = np.concatenate((gaussian(0, 98, 39), np.ones((98, 1))), axis=1)
    upper = np.triu_indices(40)
    features, weights = frames[:, upper[0]] * frames[:, upper[1]], gaussian(1, 820, 50, scale=0.5)
    features = features.clip(-64, 64)
    error = np.abs(product(chosen, features, weights) - features @ weights).max()
    assert error <= bound(chosen, features, weights) <= 0.05
    assert chosen.total_bytes <= 1.2e6


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(0, 99))
def test_any_shape_is_within_its_bound(rows: int, inner: int, columns: int, seed: int) -> None:
    chosen = plan_product(rows, inner, columns)
    features, weights = gaussian(seed, rows, inner), gaussian(seed + 100, inner, columns)
    error = np.abs(product(chosen, features, weights) - features @ weights).max()
    assert error <= bound(chosen, features, weights)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2048, 1, 1), (2049, 2, 3), (1, 2049, 2), (1, 3, 2100), (5, 7, 3)])
def test_edges_of_the_blocks(shape: tuple[int, int, int]) -> None:
    chosen = plan_product(*shape)
    features, weights = gaussian(7, *shape[:2]), gaussian(8, *shape[1:])
    assert np.abs(product(chosen, features, weights) - features @ weights).max() <= bound(chosen, features, weights)


@pytest.mark.parametrize("blocks", [(3, 4, 2), (5, 2, 3), (2, 7, 1), (5, 7, 3), (1, 1, 1)])
def test_every_cutting_gives_the_same(blocks: tuple[int, int, int]) -> None:
    chosen = MatrixPlan(5, 7, 3, Precision(), *blocks)
    features, weights = gaussian(3, 5, 7), gaussian(4, 7, 3)
    assert np.abs(product(chosen, features, weights) - features @ weights).max() <= bound(chosen, features, weights)


def test_the_range_edges_are_exact_to_the_bound_and_wrap_beyond() -> None:
    chosen = plan_product(
        1, 1, 1, Precision(limit=64.0, weights=Scale(28, 15), result=Scale(15, 6))
    )  # known modulo 512
    for x, w, expected in ((64.0, 3.99, 255.36), (-64.0, 3.99, -255.36), (64.0, 5.0, 320.0 - 512.0), (0.0, 1.0, 0.0)):
        assert abs(product(chosen, np.array([[x]]), np.array([[w]]))[0, 0] - expected) <= 0.05


@pytest.mark.parametrize("sizes", [(98, 820, 50), (1, 64, 300), (3, 20, 40), (7, 300, 5)], ids=str)
def test_errors_of_ciphertexts_meet_all_weights_of_a_polynomial(sizes: tuple[int, int, int]) -> None:
    """As large as they can be, all with the sign of the weight that they meet: no more than the bound says."""
    chosen = plan_product(*sizes)
    weights, parameters = gaussian(0, *sizes[1:]), chosen.precision.parameters
    upload = LARGEST_ERROR + 0.5 + (1 << parameters.dropped_bits) / 2
    met = np.abs(weight_polynomials(chosen, weights)).sum(axis=(1, 2)).max()
    worst = upload * met * 2.0**chosen.precision.range_bits / parameters.prime
    stated = error_bound(chosen.precision, 1.0, np.abs(weights).sum(0).max(), chosen.inner, chosen.block_columns).noise
    assert worst <= stated
    if chosen.block_columns > 1:
        one = error_bound(chosen.precision, 1.0, np.abs(weights).sum(0).max(), chosen.inner, packed=1).noise
        assert worst > one, "one column alone is not enough"


def test_other_rings_work_too() -> None:
    for ring in (LatticeParameters(prime=(1 << 46) - 110591), LatticeParameters(degree=4096)):
        chosen = plan_product(20, 30, 4, Precision(parameters=ring, weights=Scale(24, 12)))
        features, weights = gaussian(5, 20, 30), gaussian(6, 30, 4)
        found = product(chosen, features, weights, KeyHolder(ring))
        assert np.abs(found - features @ weights).max() <= bound(chosen, features, weights)


def test_prepared_and_unprepared_replies_agree() -> None:
    chosen = plan_product(4, 5, 6)
    KEY.prepare(chosen.job)
    EVALUATOR.prepare(chosen.job, replies=2)
    before = len(EVALUATOR.zeros)
    features, weights = gaussian(3, 4, 5), gaussian(4, 5, 6)
    assert np.abs(product(chosen, features, weights) - features @ weights).max() < 0.03
    assert len(EVALUATOR.zeros) == before - chosen.job.outputs


def test_a_share_may_be_fixed_before_the_query_and_its_mask_is_used_once() -> None:
    chosen = plan_product(4, 5, 6)
    features, weights = gaussian(3, 4, 5), encode_weights(chosen, gaussian(4, 5, 6))
    mask = ReplyMask(chosen.job)
    before = share_before(chosen, mask)
    query = client_query(KEY, chosen, features)
    reply, server = server_reply(EVALUATOR, chosen, weights, query, mask=mask)
    scale = chosen.precision.result
    found = scale.decode(scale.ring.to_signed(scale.ring.join(client_finish(KEY, chosen, reply), server)))
    assert (server == before).all()
    assert np.abs(found - features @ gaussian(4, 5, 6)).max() < 0.03
    with pytest.raises(PpspeechError, match="hidden a reply already"):
        server_reply(EVALUATOR, chosen, weights, query, mask=mask)
    with pytest.raises(PpspeechError, match="another job"):
        server_reply(EVALUATOR, chosen, weights, query, mask=ReplyMask(plan_product(5, 5, 6).job))
    with pytest.raises(TypeError, match="used once"):
        pickle.dumps(mask)


def test_the_plan_is_the_cheapest_of_all_cuttings() -> None:
    for rows, inner, columns in ((9, 300, 11), (1, 256, 100), (40, 3, 60)):
        cheapest = min(
            MatrixPlan(rows, inner, columns, Precision(), m, n, q).total_bytes
            for m in range(1, rows + 1)
            for n in range(1, inner + 1)
            for q in {min(columns, max(1, 2048 // (m * n)))}
            if m * n * q <= 2048
        )
        assert plan_product(rows, inner, columns).total_bytes <= 1.02 * cheapest


def test_a_larger_range_of_one_number_is_refused_before_anything_is_encrypted() -> None:
    chosen = plan_product(2, 2, 2)
    for bad in (64.1, -65.0, np.nan, np.inf):
        with pytest.raises(RangeError):
            client_query(KEY, chosen, np.array([[0.0, bad], [0.0, 0.0]]))
    with pytest.raises(RangeError):
        encode_weights(chosen, np.array([[0.0, 2.0**12], [0.0, 0.0]]))


def test_wrong_shapes_are_refused() -> None:
    chosen = plan_product(2, 3, 4)
    with pytest.raises(PpspeechError, match="features must have shape"):
        client_query(KEY, chosen, np.zeros((3, 2)))
    with pytest.raises(PpspeechError, match="weights must have shape"):
        encode_weights(chosen, np.zeros((4, 3)))
    query = client_query(KEY, chosen, np.zeros((2, 3)))
    with pytest.raises(PpspeechError, match="needs weights of shape"):
        server_reply(EVALUATOR, chosen, encode_weights(plan_product(98, 820, 3), np.zeros((820, 3))), query)
    with pytest.raises(PpspeechError, match="at least one"):
        plan_product(0, 3, 4)


@pytest.mark.parametrize(
    "precision",
    [
        {"result": Scale(33, 6)},
        {"result": Scale(32, 0), "weights": Scale(28, 20)},
        {"limit": 0.0},
        {"limit": np.inf},
        {"limit": 1e9},
    ],
)
def test_impossible_precisions_are_refused(precision: dict) -> None:
    with pytest.raises(RangeError):
        Precision(**precision)


# What arrives.

PLAN = plan_product(6, 10, 3)
QUERY = client_query(KEY, PLAN, gaussian(0, 6, 10))
WEIGHTS = encode_weights(PLAN, gaussian(1, 10, 3))
REPLY, _ = server_reply(EVALUATOR, PLAN, WEIGHTS, QUERY)


def test_every_flipped_bit_of_a_header_is_refused() -> None:
    for bit in range(8 * HEADER_BYTES):
        for message, read in (
            (QUERY, lambda data: server_reply(EVALUATOR, PLAN, WEIGHTS, data)),
            (REPLY, lambda data: client_finish(KEY, PLAN, data)),
        ):
            damaged = bytearray(message)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(BadCiphertextError if bit < 8 * 12 else WrongKeyError):
                read(bytes(damaged))


@pytest.mark.parametrize("cut", [0, 1, HEADER_BYTES, HEADER_BYTES + 64, len(QUERY) // 2, len(QUERY) - 1])
def test_truncated_messages_are_refused(cut: int) -> None:
    with pytest.raises(BadCiphertextError):
        server_reply(EVALUATOR, PLAN, WEIGHTS, QUERY[:cut])
    with pytest.raises(BadCiphertextError):
        client_finish(KEY, PLAN, REPLY[: min(cut, len(REPLY) - 1)])


def test_longer_exchanged_and_other_messages_are_refused() -> None:
    other = client_query(KEY, plan_product(6, 10, 3, Precision(limit=32.0)), gaussian(0, 6, 10))
    assert len(other) == len(QUERY)
    for bad in (QUERY + b"\0", REPLY, other):
        with pytest.raises(BadCiphertextError):
            server_reply(EVALUATOR, PLAN, WEIGHTS, bad)
    for bad in (REPLY + b"\0", QUERY):
        with pytest.raises(BadCiphertextError):
            client_finish(KEY, PLAN, bad)


@pytest.mark.parametrize("place", [0, 2047])
def test_residues_that_are_none_are_refused(place: int) -> None:
    start = HEADER_BYTES + 64 + 6 * place
    least = ((KEY.parameters.prime - 1) >> 2) + 1
    for value in (least, (1 << 48) - 1):
        with pytest.raises(BadCiphertextError, match="not below the prime"):
            server_reply(EVALUATOR, PLAN, WEIGHTS, QUERY[:start] + value.to_bytes(6, "little") + QUERY[start + 6 :])
    largest = QUERY[:start] + (least - 1).to_bytes(6, "little") + QUERY[start + 6 :]
    server_reply(EVALUATOR, PLAN, WEIGHTS, largest)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=100) | st.binary(max_size=64).map(lambda part: part.ljust(len(QUERY), b"\xff")))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadCiphertextError):
        server_reply(EVALUATOR, PLAN, WEIGHTS, data)
    with pytest.raises(BadCiphertextError):
        client_finish(KEY, PLAN, data)


def test_messages_of_another_key_are_refused() -> None:
    stranger = KeyHolder()
    with pytest.raises(WrongKeyError):
        server_reply(EVALUATOR, PLAN, WEIGHTS, client_query(stranger, PLAN, np.zeros((6, 10))))
    with pytest.raises(WrongKeyError):
        client_finish(stranger, PLAN, REPLY)


def test_lengths_depend_on_sizes_alone() -> None:
    lengths = set()
    for features, weights in ((np.zeros((6, 10)), np.zeros((10, 3))), (np.full((6, 10), 64.0), np.full((10, 3), -9.0))):
        query = client_query(KEY, PLAN, features)
        reply, _ = server_reply(EVALUATOR, PLAN, encode_weights(PLAN, weights), query)
        lengths.add((len(query), len(reply)))
    assert lengths == {(PLAN.job.query_bytes, PLAN.job.reply_bytes)}


def test_weights_are_encoded_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that serves many speakers has a gibibyte; the factors are the same however many are made at a time."""
    parameters = LatticeParameters()
    polynomials = np.random.default_rng(0).integers(-(2**20), 2**20, size=(64, 8, parameters.degree))
    whole = EncodedWeights.of(parameters, polynomials)
    monkeypatch.setattr(evaluating, "MOST_AT_ONCE", 2**15)
    tracemalloc.start()
    found = EncodedWeights.of(parameters, polynomials)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(found.factors, whole.factors)
    assert most < 1.5 * polynomials.nbytes
