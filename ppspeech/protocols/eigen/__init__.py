"""Principal directions of what several parties have together."""

from ppspeech.protocols.eigen.many import find_together
from ppspeech.protocols.eigen.moments import DELTA, noise_for, private_moments, second_moments
from ppspeech.protocols.eigen.two import MOST_FEATURES, SQUARINGS, alice, bob

__all__ = [
    "DELTA",
    "MOST_FEATURES",
    "SQUARINGS",
    "alice",
    "bob",
    "find_together",
    "noise_for",
    "private_moments",
    "second_moments",
]
