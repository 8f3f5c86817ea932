"""Membership inference: how many members an attack finds while it accuses few others (Carlini et al. 2022)."""

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_probability


def found_at(members: NDArray[np.float64], others: NDArray[np.float64], false_positives: float) -> float:
    """The largest true-positive rate of a threshold on scores that accuses at most this share of the others.

    >>> found_at(np.array([3.0, 2.0, 0.0]), np.array([1.0, 0.5]), 0.1)
    0.6666666666666666
    """
    check_probability("false_positives", false_positives, zero=True)
    if len(members) == 0 or len(others) == 0:
        raise PrivacyError(f"rates need members and others, got {len(members)} and {len(others)}")
    allowed = int(false_positives * len(others))
    above = np.sort(others)[::-1][allowed] if allowed < len(others) else -np.inf
    return float((members > above).mean())
