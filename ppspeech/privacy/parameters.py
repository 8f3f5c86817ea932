"""The doors of the privacy room: what a parameter must be, and how a wrong one is refused."""

import sys
from collections.abc import Iterable
from typing import Any

from ppspeech.errors import PrivacyError


def check_finite(name: str, value: Any) -> float:
    """Refuse what is not a finite real number (bool is not one)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise PrivacyError(f"{name} must be a finite number, got {value!r:.80}")
    return float(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Refuse what is not a finite number > 0 (or >= 0)."""
    number = check_finite(name, value)
    if number < 0 or (number == 0 and not zero):
        raise PrivacyError(f"{name} must be {'>= 0' if zero else '> 0'}, got {value!r}")
    return number


def check_positives(value: Any, *names: str) -> None:
    """Refuse a value whose named fields are not all finite numbers > 0."""
    for name in names:
        check_positive(name, getattr(value, name))


def check_probability(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """Refuse what is not in (0, 1), with the ends that are allowed."""
    number = check_finite(name, value)
    if not 0 <= number <= 1 or (number == 0 and not zero) or (number == 1 and not one):
        raise PrivacyError(f"{name} must be in {'[' if zero else '('}0, 1{']' if one else ')'}, got {value!r}")
    return number


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Refuse what is not a whole number >= `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PrivacyError(f"{name} must be a whole number >= {least}, got {value!r}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Refuse what is not one of the named choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise PrivacyError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value
