"""Bundles as pages show them: what the bundle says, and the curve of its own accountant."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from ppspeech.bundle import load_bundle
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting import Accountant, NonPrivateEvent, trade_off, trade_off_curve
from ppspeech.studio import Places
from ppspeech.studio.models import described
from tests.bundle.conftest import gaussian_account
from tests.studio.running import ask, running

RELATION = Relation("speaker", "add_remove")


def test_the_curve_is_the_accountants(bundles: Path) -> None:
    """Every (epsilon, delta(epsilon)) of the account is a line that the curve touches from above, and none crosses."""
    told = described("animals", bundles / "animals")
    account = load_bundle(bundles / "animals").account
    curve = np.asarray(told["trade_off"])
    assert told["trade_off"] == trade_off_curve(account)
    assert curve[:, 0].tolist() == [round(each / 100, 4) for each in range(101)]
    end = account.epsilon(1e-9)
    for epsilon in np.linspace(0.0, end, 97)[::8]:
        line = 1 - account.delta(float(epsilon)) - np.exp(epsilon) * curve[:, 0]
        assert (curve[:, 1] >= line - 2e-6).all()
    assert (np.diff(curve[:, 1]) <= 0).all()
    assert (curve[:, 1] <= 1 - curve[:, 0] + 1e-6).all()


def test_of_gaussian_noise_it_is_that_of_two_normal_distributions() -> None:
    """Dong, Roth and Su 2022: G_mu(x) = Phi(Phi^-1(1 - x) - mu); ours lies on or just below it, never above."""
    account = gaussian_account()
    rates = np.linspace(0.01, 0.99, 50)
    ours = trade_off(account, rates.tolist())
    mu = _mu(account)
    exact = norm.cdf(norm.ppf(1 - rates) - mu)
    assert (ours <= exact + 1e-3).all()
    assert np.abs(ours - exact).max() < 0.01


def _mu(account: Accountant) -> float:
    """Of one Gaussian: by its own delta at epsilon 0, which is 2 Phi(mu / 2) - 1."""
    return float(2 * norm.ppf((1 + account.delta(0.0)) / 2))


def test_without_a_guarantee_there_is_none_and_nothing_learned_is_a_coin() -> None:
    account = Accountant(RELATION)
    assert [y for _, y in trade_off_curve(account)] == pytest.approx([1 - x for x, _ in trade_off_curve(account)])
    account.compose(NonPrivateEvent("plain training", RELATION))
    assert all(y == 0 for _, y in trade_off_curve(account))
    with pytest.raises(PrivacyError, match=r"between 0 and 1, got -0\.5"):
        trade_off(account, [-0.5])


def test_two_bundles_and_one_that_is_refused_stand_side_by_side(places: Places, bundles: Path) -> None:
    with running(places) as studio:
        told = {each["name"]: each for each in ask(studio, "/api/models").plain}
        assert told["animals"]["guarantee"] == str(load_bundle(bundles / "animals").statement.guarantee)
        assert told["animals"]["labels"] == ["aardvark", "bumblebee", "caterpillar"]
        assert told["animals"]["fingerprint"] != told["margins"]["fingerprint"]
        assert told["animals"]["speakable"]
        assert told["sentences"]["speakable"]
        assert told["animals"]["private"]
        assert {"covers", "caveats", "touches", "assumes", "events", "metrics", "words"} <= set(told["animals"])
        assert "refused" in told["broken"]
        assert "trade_off" not in told["broken"]
