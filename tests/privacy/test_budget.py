"""Split budgets add up again in the accountant."""

import pytest

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant, GaussianEvent, PureEvent, Relation, ZcdpEvent
from ppspeech.privacy.accounting.budget import split_gaussian, split_pure, split_zcdp


def test_parts_add_up() -> None:
    gaussian, pure, concentrated = (Accountant(Relation("speaker", "add_remove")) for _ in range(3))
    for z in split_gaussian(1.5, 1e-6, (0.2, 0.5, 0.3)):
        gaussian.compose(GaussianEvent(z, Relation("speaker", "add_remove")))
    for epsilon in split_pure(1.5, (1, 2, 3)):
        pure.compose(PureEvent(epsilon, Relation("speaker", "add_remove")))
    for rho in split_zcdp(0.2, (1, 1)):
        concentrated.compose(ZcdpEvent(rho, Relation("speaker", "add_remove")))
    assert gaussian.epsilon(1e-6) == pytest.approx(1.5, rel=1e-9)
    assert pure.epsilon(0.0) == pytest.approx(1.5)
    assert concentrated.events[0][1] == 2
    assert concentrated.epsilon(1e-5, "zcdp") == pytest.approx(
        ZcdpEvent(0.2, Relation("speaker", "add_remove")).epsilon(1e-5)
    )


@pytest.mark.parametrize("shares", [(), (0.0, 1.0), (-1.0, 2.0)])
def test_bad_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(PrivacyError):
        split_pure(1.0, shares)
