"""The Huber hinge against its definition."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.models.margin.hinge import huber_hinge, huber_hinge_curvature, huber_hinge_slope

numbers = st.floats(-5, 5)
widths = st.floats(0.01, 3)


def by_cases(u: float, h: float) -> float:
    if u < -h:
        return 0.0
    return (u + h) ** 2 / (4 * h) if u <= h else u


@given(numbers, widths)
def test_definition_and_sandwich(u: float, h: float) -> None:
    value = float(huber_hinge(torch.tensor(u, dtype=torch.double), h))
    assert abs(value - by_cases(u, h)) <= 1e-12 * (1 + abs(u))
    assert max(u, 0) - 1e-12 <= value <= max(u, 0) + h / 4 + 1e-12


@given(numbers, numbers, st.floats(0, 1), widths)
def test_convex_and_slope_lipschitz(a: float, b: float, mix: float, h: float) -> None:
    u = torch.tensor([a, b, mix * a + (1 - mix) * b], dtype=torch.double)
    value = huber_hinge(u, h)
    assert value[2] <= mix * value[0] + (1 - mix) * value[1] + 1e-12
    slope = huber_hinge_slope(u, h)
    assert ((slope >= 0) & (slope <= 1)).all()
    assert (slope[0] - slope[1]).abs() <= abs(a - b) / (2 * h) + 1e-12
    assert value[1] >= value[0] + slope[0] * (b - a) - 1e-12


@given(numbers, widths)
def test_slope_and_curvature_are_the_derivatives(u: float, h: float) -> None:
    point = torch.tensor(u, dtype=torch.double, requires_grad=True)
    (slope,) = torch.autograd.grad(huber_hinge(point, h), point)
    assert torch.isclose(slope, huber_hinge_slope(point, h), atol=1e-12)
    if abs(abs(u) - h) > 1e-6:
        assert float(huber_hinge_curvature(point, h)) == (1 / (2 * h) if abs(u) < h else 0)


def test_width_zero_is_the_hinge() -> None:
    u = torch.linspace(-2, 2, 9)
    assert torch.equal(huber_hinge(u, 0), u.clamp_min(0))
