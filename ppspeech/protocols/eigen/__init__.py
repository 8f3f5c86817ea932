"""Principal directions of what several parties have together."""

from ppspeech.protocols.eigen import eigenvector, eigenvector_parties
from ppspeech.protocols.eigen.eigenvector import MOST_FEATURES, SQUARINGS, alice, bob
from ppspeech.protocols.eigen.eigenvector_parties import party
from ppspeech.protocols.eigen.moments import second_moments

__all__ = [
    "MOST_FEATURES",
    "SQUARINGS",
    "alice",
    "bob",
    "eigenvector",
    "eigenvector_parties",
    "party",
    "second_moments",
]
