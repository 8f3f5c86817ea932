"""Learning with others, who show nobody their data."""

from ppspeech.training.together.average import JointTraining, local_minimizer, model_of
from ppspeech.training.together.descent import JointDescent, clipped_gradient, descend_jointly_
from ppspeech.training.together.group import CURATOR, PARTY, as_plain, curate, take_part, terms_of, train_alone

__all__ = [
    "CURATOR",
    "PARTY",
    "JointDescent",
    "JointTraining",
    "as_plain",
    "clipped_gradient",
    "curate",
    "descend_jointly_",
    "local_minimizer",
    "model_of",
    "take_part",
    "terms_of",
    "train_alone",
]
