"""What parties bring: second moments in a form that the protocol takes, private ones with their guarantee."""

import numpy as np
import pytest

from ppspeech.errors import PrivacyError, RangeError
from ppspeech.privacy import Relation
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss
from ppspeech.protocols.eigen.matrix import START, START_FRACTION, whole
from ppspeech.protocols.eigen.moments import own_moments, private_moments, second_moments, start_share

GOOD = np.eye(3)


def test_shares_of_all_parties_add_up_to_the_moments_over_the_bounds() -> None:
    frames = np.random.default_rng(0).normal(size=(3, 20, 4))
    shares = [start_share(second_moments(own), 4, 200.0, parties=3) for own in frames]
    total = START.to_signed(START.reduce(sum(shares[1:], shares[0]))) * 2.0**-START_FRACTION
    expected = sum(own.T @ own for own in frames) / 600.0
    assert np.abs(total - expected[np.triu_indices(4)]).max() < 2.0**-53
    assert whole(shares[0], 4).shape == (4, 4)


def test_a_trace_at_the_bound_is_let_through() -> None:
    assert start_share(GOOD, 3, 3.0, parties=2).shape == (6,)


@pytest.mark.parametrize(
    ("moments", "bound", "said"),
    [
        (np.eye(4), 5.0, "3 features have shape"),
        (np.full((3, 3), np.nan), 5.0, "finite"),
        (np.full((3, 3), np.inf), 5.0, "finite"),
        (GOOD * 2, 5.0, "above the public bound"),
        (-GOOD, 5.0, "negative eigenvalues"),
        (GOOD + np.diag([1.0], 2), 5.0, "symmetric"),
        (GOOD, 0.0, "bound"),
        (GOOD, np.nan, "bound"),
    ],
)
def test_unfit_moments_are_refused(moments: np.ndarray, bound: float, said: str) -> None:
    with pytest.raises(RangeError, match=said):
        start_share(moments, 3, bound, parties=2)


def test_private_moments_always_fit_the_protocol() -> None:
    """Mostly noise: negative eigenvalues and a trace above the bound, which would stop it."""
    mechanism = AnalyzeGauss(sigma=50.0, radius=1.0, features=6, delta=1e-6, relation=Relation("frame", "add_remove"))
    for _ in range(20):
        moments = private_moments(np.ones((3, 6)), mechanism, bound=1.0).value
        assert start_share(moments, 6, 1.0, parties=2).shape == (21,)
    with pytest.raises(RangeError, match="bound"):
        private_moments(np.ones((3, 6)), mechanism, bound=0.0)


def test_private_moments_carry_their_guarantee_and_little_noise_changes_little() -> None:
    mechanism = AnalyzeGauss(sigma=0.02, radius=2.0, features=2, delta=1e-6, relation=Relation("speaker", "replace"))
    frames = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    released = private_moments(frames, mechanism, bound=10.0, unit_ids=np.array([0, 0, 1]))
    assert np.abs(released.value - frames.T @ frames).max() < 0.15
    assert released.guarantee.unit == "speaker"
    assert released.guarantee == mechanism.guarantee


def test_own_moments_are_exact_without_epsilon_and_noisy_with() -> None:
    frames = np.random.default_rng(1).normal(size=(5000, 2)) * 0.3
    exact = frames.T @ frames
    assert np.allclose(own_moments(frames, 1e4, None, 1e-6, None), exact)
    errors = [np.abs(own_moments(frames, 1e4, 1.0, 1e-6, 2.0) - exact).max() for _ in range(2)]
    assert all(0.1 < error < 200 for error in errors)
    assert errors[0] != errors[1]


def test_doors_of_private_moments() -> None:
    with pytest.raises(RangeError, match="give radius"):
        own_moments(GOOD, 5.0, 1.0, 1e-6, None)
    with pytest.raises(PrivacyError, match="epsilon"):
        own_moments(GOOD, 5.0, -1.0, 1e-6, 1.0)
    with pytest.raises(PrivacyError, match="radius"):
        own_moments(GOOD, 5.0, 1.0, 1e-6, 0.0)
    for epsilon in (None, 1.0):
        with pytest.raises(RangeError, match="frames, features"):
            own_moments(np.zeros(3), 5.0, epsilon, 1e-6, 1.0)
