"""The paper's aggregation protocol: it computes what it says, and its noise is no secret among the parties."""

import numpy as np
import pytest
from scipy import optimize, stats

from ppspeech.crypto.paillier import generate_paillier
from ppspeech.errors import PrivacyError, RangeError
from ppspeech.evidence.published.attacks.aggregation import find_exponent, find_noise, mean_without_noise
from ppspeech.evidence.published.mechanisms import PublishedOutputLaplace
from ppspeech.evidence.published.protocols.aggregation import (
    NUMBERS,
    SUMS,
    PublishedJob,
    Result,
    aggregate,
    classify,
    party_bytes,
    run_published,
    take_part,
)
from ppspeech.network import memory_pair

SIZES = [400, 90, 300, 250]
SMALLEST = 1


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(4, 6))


@pytest.fixture(scope="module")
def result(weights: np.ndarray) -> Result:
    return run_published(weights, SIZES, epsilon=1.0, penalty=0.1, key_bits=512, insecure_demo=True)


def test_the_published_classifier_is_the_mean_with_the_noise_of_the_smallest(
    result: Result, weights: np.ndarray
) -> None:
    noise = NUMBERS.decode(result.views[SMALLEST].noise)
    assert np.abs(result.classifier - weights.mean(0) - noise).max() < 1e-5
    assert np.abs(noise).max() > 1e-3
    for view in result.views:
        assert (view.shares == result.views[0].shares).all()


@pytest.mark.parametrize("sizes", [[5, 5, 5], [7, 3, 3], [1, 2**31 - 1, 1000]])
def test_equal_and_extreme_sizes(sizes: list[int]) -> None:
    weights = np.zeros((3, 1))
    result = run_published(weights, sizes, epsilon=1e-3, penalty=1.0, key_bits=512, insecure_demo=True)
    owners = [at for at in range(3) if abs(mean_without_noise(result.views[at], 3)[0]) < 1e-5]
    assert len(owners) == 1
    assert sizes[owners[0]] == min(sizes)


def test_the_owner_of_the_noise_takes_it_off_and_others_cannot_so(result: Result, weights: np.ndarray) -> None:
    """No differential privacy against the chosen party, which knows that it is chosen when it finds the exact mean."""
    for number, view in enumerate(result.views):
        error = np.abs(mean_without_noise(view, 4) - weights.mean(0)).max()
        assert (error < 1e-5) == (number == SMALLEST)


def test_baby_steps_and_giant_steps_find_the_noise_of_everyone(result: Result) -> None:
    """Party 0 has ζ(v_j) and ζ(v_j)^η_j: at 20 bits after the point the exponents are small."""
    for owner in range(1, 4):
        found = find_noise(result.views[0], owner, bound=1 << 24)
        assert found is not None
        assert (found == result.views[owner].noise).all()


def test_a_fresh_encryption_of_zero_stops_baby_steps(weights: np.ndarray) -> None:
    mended = run_published(weights[:3], SIZES[:3], 1.0, 0.1, key_bits=512, insecure_demo=True, rerandomize=True)
    assert find_noise(mended.views[0], 1, bound=1 << 14) is None


@pytest.mark.parametrize("exponent", [0, 1, -1, 4095, -4096, 4096])
def test_find_exponent_at_the_ends_of_its_range(exponent: int) -> None:
    key = generate_paillier(128, insecure_demo=True)
    base = key.encrypt(1)
    power = key.public.accept(key.public.scale(base, exponent).value)
    assert find_exponent(key.public, base, power, 4096) == exponent
    beyond = key.public.accept(key.public.scale(base, 3 * 4096).value)
    assert find_exponent(key.public, base, beyond, 4096) is None


def test_shares_add_up_and_each_looks_uniform() -> None:
    run = run_published(np.ones((3, 600)), [10, 20, 30], 1.0, 1.0, key_bits=256, insecure_demo=True)
    shares = run.views[1].shares
    assert shares.shape == (4, 600)
    assert (NUMBERS.decode(SUMS.to_signed(shares.sum(0, dtype=np.uint64))) / 3 == run.classifier).all()
    for share in shares:
        counts = np.bincount((share >> np.uint64(60)).astype(np.int64), minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-4
    total = shares.sum(0, dtype=np.uint64) >> np.uint64(60)
    assert stats.chisquare(np.bincount(total.astype(np.int64), minlength=16)).pvalue < 1e-4


def test_noise_follows_the_laplace_law_of_the_smallest_size() -> None:
    run = run_published(np.zeros((3, 600)), [10, 20, 30], 0.5, 2.0, key_bits=256, insecure_demo=True)
    assert stats.kstest(run.classifier, stats.laplace(scale=2 / (10 * 0.5 * 2.0)).cdf).pvalue > 1e-4
    assert stats.kstest(run.classifier, stats.laplace(scale=2 / (20 * 0.5 * 2.0)).cdf).pvalue < 1e-4


def test_testing_phase(result: Result) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 6))
    expected = np.where(rows @ aggregate(result.views[0].shares, 4) > 0, 1, -1)
    assert (classify(result.views[0].shares, 4, rows) == expected).all()
    assert set(expected) == {-1, 1}


def test_the_sensitivity_claimed_in_l1_holds_in_l2_only() -> None:
    """One replaced record moves a local classifier by more than 2 / (n lambda) in l1, never by 1 / (n lambda) in l2.

    Many rows at zero and one at x = 1 / sqrt(d), whose label is turned: the noise is then worth less than claimed.
    """
    d, n, penalty = 64, 10, 1.0
    rows = np.zeros((n, d))
    rows[0] = 1 / np.sqrt(d)

    def fit(label: float) -> np.ndarray:
        def objective(w: np.ndarray) -> float:
            return np.log1p(np.exp(-label * (rows @ w))).mean() + penalty * w @ w

        return optimize.minimize(objective, np.zeros(d), method="L-BFGS-B", tol=1e-14).x

    moved = fit(1.0) - fit(-1.0)
    assert np.abs(moved).sum() > 1.5 * 2 / (n * penalty)
    assert np.linalg.norm(moved) <= 1 / (n * penalty)
    loss = np.abs(moved).sum() / PublishedOutputLaplace(epsilon=0.5, records=n, penalty=penalty, dimension=d).scale
    assert loss > 1.5 * 0.5


def test_bytes_are_those_of_the_formula(result: Result) -> None:
    job = PublishedJob(4, 6, 1.0, 0.1, key_bits=512, insecure_demo=True)
    for own in range(4):
        assert result.bytes_sent[own] in {party_bytes(job, own, moves=moves) for moves in (True, False)}
    assert result.seconds > 0


def test_doors() -> None:
    weights = np.zeros((3, 2))
    with pytest.raises(PrivacyError, match="insecure_demo"):
        run_published(weights, [1, 2, 3], 1.0, 1.0, key_bits=1024)
    with pytest.raises(RangeError, match="three parties"):
        run_published(weights[:2], [1, 2], 1.0, 1.0)
    with pytest.raises(RangeError, match="each has a size"):
        run_published(weights, [1, 2], 1.0, 1.0)
    with pytest.raises(RangeError, match="epsilon"):
        run_published(weights, [1, 2, 3], 0.0, 1.0)
    job = PublishedJob(3, 2, 1.0, 1.0)
    here, _ = memory_pair()
    for classifier, size, said in (
        (np.zeros(3), 5, "2 weights"),
        (np.full(2, np.nan), 5, "finite"),
        (np.full(2, 1e13), 5, "does not fit"),
        (np.zeros(2), 0, "rows"),
        (np.zeros(2), 2**31, "rows"),
    ):
        with pytest.raises(RangeError, match=said):
            take_part({3: here}, classifier, size, own=0, job=job)
