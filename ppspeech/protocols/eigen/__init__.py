"""Principal directions of what several parties have together."""

from ppspeech.protocols.eigen.many import find_together
from ppspeech.protocols.eigen.moments import second_moments
from ppspeech.protocols.eigen.two import MOST_FEATURES, SQUARINGS, alice, bob

__all__ = ["MOST_FEATURES", "SQUARINGS", "alice", "bob", "find_together", "second_moments"]
