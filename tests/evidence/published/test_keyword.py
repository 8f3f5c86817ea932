"""The paper's keyword recognition: the right word, and the scores that Alice reads beside it."""

import math

import gmpy2
import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM
from scipy.stats import multivariate_normal

from ppspeech.errors import ModelError, PrivacyError, RangeError
from ppspeech.evidence.published.protocols.forward import alice_forward, bob_forward
from ppspeech.evidence.published.protocols.gaussian_forward import emission_plan, receive_emissions, send_products
from ppspeech.evidence.published.protocols.gaussian_word import Chain, GaussianWord
from ppspeech.evidence.published.protocols.keyword import alice, bob
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, LOG_SCALE, decode
from ppspeech.evidence.published.protocols.slice_timing import Size
from ppspeech.network import memory_pair, run_together, socket_pair
from ppspeech.protocols import PROTOCOLS
from ppspeech.protocols.message_kinds import Kind

from .views import DEMO, ciphertexts_of, demo_key, looks_uniform, run_recorded, seen

STATES, FEATURES, FRAMES = 2, 3, 4
CHAIN = Chain(np.array([1.0, 0.0]), np.array([[0.6, 0.4], [0.0, 1.0]]))


def words(seed: int = 0, count: int = 3) -> list[GaussianWord]:
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(count, STATES, FEATURES, FEATURES))
    covariances = mixing @ mixing.transpose(0, 1, 3, 2) + np.eye(FEATURES)
    names = ("ja", "nein", "vielleicht")
    return [GaussianWord(names[at], CHAIN, rng.normal(size=(STATES, FEATURES)), covariances[at]) for at in range(count)]


def speech(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1.5, (FRAMES, FEATURES))


def plain_scores(models: list[GaussianWord], frames: np.ndarray) -> np.ndarray:
    scores = []
    for model in models:
        reference = GaussianHMM(STATES, "full")
        reference.startprob_, reference.transmat_ = model.chain.initial, model.chain.transitions
        reference.means_, reference.covars_ = model.means, model.covariances
        scores.append(reference.score(frames))
    return np.array(scores)


def recognize(models: list[GaussianWord], frames: np.ndarray, **options: object) -> tuple[str, object]:
    word, _, record = run_recorded(
        lambda c: alice(c, demo_key(), frames, words=len(models), states=STATES, **options, **DEMO),
        lambda c: bob(c, models, frames=len(frames), **options, **DEMO),
    )
    return word, record


def encrypted_scores(models: list[GaussianWord], frames: np.ndarray, strict: bool = False) -> tuple[np.ndarray, object]:
    """Step 1 alone: the scores Bob has ciphertexts of, and Alice's transcript."""
    key = demo_key()

    def be_alice(channel: object) -> None:
        send_products(Alice(channel, key), frames)
        alice_forward(Alice(channel, key), frames=len(frames), chains=len(models), states=STATES, strict=strict)

    def be_bob(channel: object) -> list:
        met = Bob(channel, key.public, strict)
        emissions = receive_emissions(met, emission_plan(models, strict=strict), len(frames))
        return bob_forward(met, [model.chain for model in models], emissions)

    _, scores, record = run_recorded(be_alice, be_bob)
    return np.array(decode(key.decrypt_many(scores), LOG_SCALE)), record


@pytest.mark.parametrize("seed", range(4))
def test_alice_gets_the_most_likely_word(seed: int) -> None:
    models, frames = words(seed), speech(seed)
    expected = plain_scores(models, frames)
    assert np.diff(np.sort(expected))[-1] > 0.05, "a seed without a margin tests nothing"
    assert recognize(models, frames)[0] == models[int(expected.argmax())].word


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_far_within_the_seeds_own_error(seed: int) -> None:
    """The paper saw 0.5 %; rounding at six places costs less than a thousandth of a nat."""
    models, frames = words(seed), speech(seed)
    assert encrypted_scores(models, frames)[0] == pytest.approx(plain_scores(models, frames), abs=1e-3)


def test_likelihoods_that_underflow_are_normalized() -> None:
    """To the paper's 0.5 %: a state far behind the best is rounded away, and with it a path that might win later."""
    models, frames = words(0), 40 * speech(0)
    expected = plain_scores(models, frames)
    assert expected.max() < -1000
    assert encrypted_scores(models, frames)[0] == pytest.approx(expected, rel=0.005)


def test_over_a_socket() -> None:
    models, frames = words(0), speech(0)
    word, _ = run_together(
        lambda c: alice(c, demo_key(), frames, words=3, states=STATES, **DEMO),
        lambda c: bob(c, models, frames=FRAMES, **DEMO),
        socket_pair(),
    )
    assert word == models[int(plain_scores(models, frames).argmax())].word


def test_log_densities_are_scipys_and_the_printed_constant_is_not_theirs() -> None:
    model, x = words()[0], speech(9)[0]
    z = np.append(x, 1.0)
    true = [multivariate_normal(m, c).logpdf(x) for m, c in zip(model.means, model.covariances, strict=True)]
    assert np.einsum("a,jab,b->j", z, model.weights(), z) == pytest.approx(true)
    printed = np.einsum("a,jab,b->j", z, model.weights(strict=True), z)
    assert np.abs(printed - true).min() > 0.5
    # Exactly two signs: of μ' C^-1 μ, and of the determinant.
    squares = [m @ np.linalg.solve(c, m) for m, c in zip(model.means, model.covariances, strict=True)]
    assert printed - true == pytest.approx(squares + np.log(np.linalg.det(model.covariances)))


def test_what_is_printed_runs_and_scores_something_else() -> None:
    models, frames = words(1), speech(1)
    found = encrypted_scores(models, frames, strict=True)[0]
    assert np.abs(found - plain_scores(models, frames)).min() > 1
    assert recognize(models, frames, strict=True)[0] in {model.word for model in models}


def test_shapes_say_nothing_of_voice_or_models_and_ciphertexts_are_as_many_as_counted() -> None:
    runs = [recognize(words(a), speech(b))[1].shape() for a, b in ((0, 0), (0, 1), (2, 1))]
    assert runs[0] == runs[1] == runs[2]
    recursion = {Kind.BLINDED_LOG, Kind.EXPONENTIAL, Kind.SCALED, Kind.LOGARITHM}
    public, size = demo_key().public, Size(FRAMES, FEATURES, 3, STATES)
    crossed = sum((length - 16) // public.ciphertext_bytes for _, kind, length in runs[0] if kind in recursion)
    products = sum((length - 16) // public.ciphertext_bytes for _, kind, length in runs[0] if kind == Kind.PRODUCTS)
    assert (crossed, products) == (size.crossing, size.products)


# Attacks


def test_alice_reads_all_gaps_up_to_one_factor() -> None:
    models, frames = words(2), speech(2)
    (ordered,) = seen(recognize(models, frames)[1], Kind.ORDERED)
    scores = plain_scores(models, frames)
    read = (ordered[0] - ordered[1]) / (ordered[0] - ordered[2])
    assert read == pytest.approx((scores[0] - scores[1]) / (scores[0] - scores[2]), rel=0.02)


def test_no_other_matrix_keeps_the_order_of_all_vectors() -> None:
    """R with one entry off a I + c 1' puts some pair of vectors in the wrong order: a search finds one every time."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = rng.integers(1, 50) * np.eye(3) + rng.integers(-50, 50, (3, 1))
        vectors = rng.normal(size=(4000, 3))
        assert (np.argsort(vectors @ matrix) == np.argsort(vectors)).all()
        matrix[rng.integers(3), rng.integers(3)] += 5.0
        assert (np.argsort(vectors @ matrix) != np.argsort(vectors)).any()


def test_the_test_of_masked_words_fails_on_every_kind_of_message_that_alice_opens() -> None:
    models, frames = words(3), speech(3)
    collected: dict[Kind, list[int]] = {kind: [] for kind in (Kind.BLINDED_LOG, Kind.SCALED)}
    for _ in range(12):
        _, record = encrypted_scores(models, frames)
        for kind, values in collected.items():
            values += [value for message in seen(record, kind) for value in message]
    for kind, values in collected.items():
        assert not looks_uniform(values, int(demo_key().public.n)), kind.name
    _, record = recognize(models, frames)
    (ordered,) = seen(record, Kind.ORDERED)
    assert max(map(abs, ordered)) < demo_key().public.n >> 200  # of a uniform residue, once in 2^200


@pytest.mark.parametrize("strict", [True, False])
def test_a_result_that_is_not_randomized_again_confirms_a_guess_at_the_model(strict: bool) -> None:
    """Alice raises the randomness of her own ciphertexts by the guessed W and finds it in Bob's first message."""
    key, models, frames = demo_key(), words(4, count=2), speech(4)
    public = key.public
    _, record = encrypted_scores(models, frames, strict=strict)
    first = next(entry for entry in record.entries if entry.kind == Kind.PRODUCTS)
    answer = next(entry for entry in record.entries if entry.kind == Kind.BLINDED_LOG)

    def randomness(ciphertext: object) -> gmpy2.mpz:
        plain = 1 + key.decrypt(ciphertext) * public.n
        return ciphertext.value * gmpy2.invert(plain, public.modulus) % public.modulus

    own = [randomness(each) for each in ciphertexts_of(first.payload)]
    shown = randomness(ciphertexts_of(answer.payload)[0])

    def confirmed(guess: np.ndarray) -> bool:
        exponents = np.rint(guess.ravel() * FACTOR).astype(int).tolist()
        powers = [gmpy2.powmod(rho, exponent, public.modulus) for rho, exponent in zip(own, exponents, strict=True)]
        return math.prod(powers) % public.modulus == shown

    assert confirmed(models[0].weights(strict=strict)[0]) == strict
    assert not confirmed(models[0].weights(strict=strict)[1])


# Doors


def test_keys_that_protect_nothing_are_refused() -> None:
    with pytest.raises(PrivacyError, match="insecure_demo"):
        alice(memory_pair()[0], demo_key(), speech(0), words=3, states=2)
    with pytest.raises(PrivacyError, match="insecure_demo"):
        run_recorded(
            lambda c: alice(c, demo_key(), speech(0), words=3, states=STATES, **DEMO),
            lambda c: bob(c, words(), frames=FRAMES),
        )


@pytest.mark.parametrize(
    "frames",
    [np.zeros(3), np.zeros((0, 3)), np.zeros((2, 0)), np.full((2, 3), np.nan), np.full((2, 3), np.inf), [[2e6]]],
)
def test_alice_refuses_frames_that_cannot_be_encoded_before_anything_is_sent(frames: object) -> None:
    here, there = memory_pair()
    with pytest.raises(RangeError):
        alice(here, demo_key(), np.array(frames), words=2, states=2, **DEMO)
    here.close()
    with pytest.raises(Exception, match="the peer is gone"):
        there.receive(Kind.PAILLIER_KEY, at_most=1000)


def with_word(name: str) -> GaussianWord:
    model = words()[0]
    return GaussianWord(name, model.chain, model.means, model.covariances)


def test_bob_refuses_words_that_do_not_fit() -> None:
    model = words()[0]
    short = GaussianWord("kurz", CHAIN, model.means[:, :2], model.covariances[:, :2, :2])
    for wrong in ([], [model], [model, short], [model, with_word("x" * 33)], [model, with_word("")]):
        with pytest.raises(ModelError):
            bob(memory_pair()[0], wrong, frames=FRAMES, **DEMO)


@pytest.mark.parametrize("what", ["shape", "asymmetric", "indefinite", "nan"])
def test_gaussians_that_are_none_are_refused(what: str) -> None:
    model = words()[0]
    means, covariances = model.means.copy(), model.covariances.copy()
    if what == "shape":
        means = means[:, :2]
    elif what == "asymmetric":
        covariances[0, 0, 1] += 1
    elif what == "indefinite":
        covariances[1] = -covariances[1]
    else:
        means[0, 0] = math.nan
    with pytest.raises(ModelError):
        GaussianWord("x", CHAIN, means, covariances)


def test_weights_beyond_the_fixed_point_are_refused() -> None:
    model = words()[0]
    with pytest.raises(RangeError, match="floor its variances"):
        GaussianWord("x", CHAIN, model.means, np.tile(1e-10 * np.eye(FEATURES), (STATES, 1, 1))).weights()


def test_it_says_what_it_leaks(caplog: pytest.LogCaptureFixture) -> None:
    recognize(words(0), speech(0))
    leakage = PROTOCOLS["published_keyword"].leakage
    assert "gaps between the scores of all words" in leakage
    assert [r.levelname for r in caplog.records if leakage in r.getMessage()] == ["WARNING", "WARNING"]
