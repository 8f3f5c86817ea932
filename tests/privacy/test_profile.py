"""The privacy profile as numbers and as a picture."""

from pathlib import Path

import numpy as np
import pytest

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant, GaussianEvent, PureEvent, Relation, gaussian_delta
from ppspeech.privacy.accounting.profile import plot_profile, privacy_profile


def gaussian_account() -> Accountant:
    account = Accountant(Relation("speaker", "add_remove"))
    account.compose(GaussianEvent(2.0, Relation("speaker", "add_remove")))
    return account


def test_the_profile_is_delta_of_epsilon() -> None:
    epsilons = [0.0, 0.5, 2.0]
    found = privacy_profile(gaussian_account(), epsilons)
    assert found == pytest.approx([gaussian_delta(epsilon, 0.5) for epsilon in epsilons], rel=2e-3)
    assert np.all(np.diff(found) <= 0)


def test_the_picture_is_written(tmp_path: Path) -> None:
    pure = Accountant(Relation("speaker", "add_remove"))
    pure.compose(PureEvent(1.0, Relation("speaker", "add_remove")))
    plot_profile({"gaussian": gaussian_account(), "pure": pure}, tmp_path / "profile.png", largest=2.0, method="basic")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")


def test_accounts_of_different_units_are_not_drawn_together(tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="compare"):
        plot_profile({"a": gaussian_account(), "b": Accountant(Relation("frame", "add_remove"))}, tmp_path / "x.png")
    with pytest.raises(PrivacyError, match="no account"):
        plot_profile({}, tmp_path / "x.png")
