"""The hinge [u]_+ and its smooth form, the Huber hinge.

    l_h(u) = 0               u < -h
             (u + h)^2 / 4h  |u| <= h
             u               u > h

It is convex, 1-Lipschitz, has a 1/2h-Lipschitz slope and lies between [u]_+ and [u]_+ + h/4 (touching the latter
at u = 0). Pathak and Raj 2012 eq. (9) prints it with the sign of u reversed, so that it would reward mistakes; this is
the form of its Fig. 1. A width h = 0 is the hinge itself.
"""

from torch import Tensor


def huber_hinge(u: Tensor, width: float) -> Tensor:
    """l_h(u), elementwise.

    >>> import torch
    >>> huber_hinge(torch.tensor([-1.0, 0.0, 2.0]), width=0.5)
    tensor([0.0000, 0.1250, 2.0000])
    """
    if width == 0:
        return u.relu()
    # relu, whose slope at 0 is 0, so that the two parts do not both count at u = h
    return (u + width).clamp(0, 2 * width).square() / (4 * width) + (u - width).relu()


def huber_hinge_slope(u: Tensor, width: float) -> Tensor:
    """l_h'(u) in [0, 1], elementwise; `width` must be > 0."""
    return ((u + width) / (2 * width)).clamp(0, 1)


def huber_hinge_curvature(u: Tensor, width: float) -> Tensor:
    """l_h''(u), 1/2h within the width and 0 outside: one element of the generalized derivative at the kinks."""
    return (u.abs() <= width).to(u.dtype) / (2 * width)
