"""The names of services: those that every server has, and what a model may be called."""

from ppspeech.errors import BundleError
from ppspeech.network.channel import NAME

DESCRIBE = "describe"
"""What is offered, to whoever asks."""
HEALTH = "health"
"""Whether the server is well, for whoever watches it."""
LONGEST_NAME = 21
"""Bytes of a speaker's name: three residues of the share engine."""
MOST_SPEAKERS = 10_000
"""Enrolled with one model."""


def check_name(name: str) -> str:
    """Refuse what cannot name a service.

    Raises:
        BundleError: unless it is up to 64 lower-case letters, digits and `_.-`.
    """
    if not NAME.fullmatch(name):
        raise BundleError(f"a service is named by up to 64 of a-z, 0-9, '_', '.', '-', got {name!r:.80}")
    return name
