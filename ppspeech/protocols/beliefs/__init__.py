"""What everyone may believe of itself, on a graph where nobody shows its own value: by two servers, or among peers."""

from ppspeech.protocols.beliefs.rounds import believe, costs, prepare
from ppspeech.protocols.beliefs.shape import BeliefShape, beliefs_in_clear

__all__ = ["BeliefShape", "beliefs_in_clear", "believe", "costs", "prepare"]
