"""Frames to scores: Gaussians, mixtures, hidden Markov models and large-margin classifiers as nn.Modules."""

from ppspeech.models.baum_welch import baum_welch, flat_start_
from ppspeech.models.convex import Certificate, ConvexObjective, Solution, minimise
from ppspeech.models.decoder import Hypothesis, Word, decode
from ppspeech.models.detection import det_curve, equal_error_rate, minimum_dcf
from ppspeech.models.em import fit, fit_minibatch, fit_mixture
from ppspeech.models.emissions import DiscreteEmission, GaussianEmission, Prior
from ppspeech.models.gaussian import Gaussians
from ppspeech.models.hmm import HiddenMarkovModel
from ppspeech.models.large_margin import LargeMarginGaussians
from ppspeech.models.large_margin_hmm import LargeMarginHmm, train_large_margin
from ppspeech.models.logistic import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin import MarginLoss
from ppspeech.models.mixture import GaussianMixture
from ppspeech.models.phi import cost, moments_from_phi, phi_from_moments, smat, svec
from ppspeech.models.topology import Topology, ergodic, left_right
from ppspeech.models.ubm import map_adapt, supervectors
from ppspeech.models.verification import SpeakerVerifier
from ppspeech.models.word_error import word_errors

__all__ = [
    "Certificate",
    "ConvexObjective",
    "DiscreteEmission",
    "GaussianEmission",
    "GaussianMixture",
    "Gaussians",
    "HiddenMarkovModel",
    "HuberSvm",
    "Hypothesis",
    "LargeMarginGaussians",
    "LargeMarginHmm",
    "LogisticRegression",
    "MarginLoss",
    "Prior",
    "SoftmaxRegression",
    "Solution",
    "SpeakerVerifier",
    "Topology",
    "Word",
    "baum_welch",
    "cost",
    "decode",
    "det_curve",
    "equal_error_rate",
    "ergodic",
    "fit",
    "fit_minibatch",
    "fit_mixture",
    "flat_start_",
    "left_right",
    "map_adapt",
    "minimise",
    "minimum_dcf",
    "moments_from_phi",
    "phi_from_moments",
    "smat",
    "supervectors",
    "svec",
    "train_large_margin",
    "word_errors",
]
