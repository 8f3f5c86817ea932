"""Learning with others, who show nobody their data."""

from ppspeech.training.together.average import JointTraining, local_minimizer, train_jointly
from ppspeech.training.together.descent import DescentTraining, JointDescent, clipped_gradient, descend_jointly_
from ppspeech.training.together.group import METHODS, model_of, terms_of, write_joint_bundle, write_plain
from ppspeech.training.together.statistics import MixtureTraining, WordTraining
from ppspeech.training.together.terms import JointFit, JointTerms

__all__ = [
    "METHODS",
    "DescentTraining",
    "JointDescent",
    "JointFit",
    "JointTerms",
    "JointTraining",
    "MixtureTraining",
    "WordTraining",
    "clipped_gradient",
    "descend_jointly_",
    "local_minimizer",
    "model_of",
    "terms_of",
    "train_jointly",
    "write_joint_bundle",
    "write_plain",
]
