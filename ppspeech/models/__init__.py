"""Frames to scores: Gaussians, mixtures, hidden Markov models and large-margin classifiers as nn.Modules."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.models.convex import (
        LARGEST_EXPLICIT,
        Certificate,
        ConvexObjective,
        Expansion,
        Head,
        Point,
        Solution,
        check_solver_arguments,
        minimize,
        not_reached,
    )
    from ppspeech.models.decoding.decoder import Hypothesis, Word, decode
    from ppspeech.models.embedded import EmbeddingHead
    from ppspeech.models.floored import (
        RAREST,
        ScoreFloor,
        WordModel,
        floored_scores,
        score_floor,
    )
    from ppspeech.models.gaussian.em import fit_mixture
    from ppspeech.models.gaussian.gaussians import Gaussians
    from ppspeech.models.gaussian.mixture import GaussianMixture
    from ppspeech.models.gaussian.phi import cost, moments_from_phi, phi_from_moments, smat, svec
    from ppspeech.models.gaussian.ubm import map_adapt, supervectors
    from ppspeech.models.hmm.bank import HiddenMarkovModel
    from ppspeech.models.hmm.baum_welch import baum_welch, flat_start_
    from ppspeech.models.hmm.emissions import DiscreteEmission, GaussianEmission, Prior
    from ppspeech.models.hmm.topology import Topology, ergodic, left_right
    from ppspeech.models.impostors import FEWEST_PEOPLE, UNUSUAL, Impostors, rare_score
    from ppspeech.models.kernel import KernelClassifier
    from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
    from ppspeech.models.margin.gaussians import LargeMarginGaussians
    from ppspeech.models.margin.hmm import LargeMarginHmm, train_large_margin
    from ppspeech.models.margin.loss import MarginLoss
    from ppspeech.models.measures import (
        WordErrors,
        det_curve,
        equal_error_rate,
        equal_error_threshold,
        error_rates,
        minimum_dcf,
        plot_det,
        total_word_errors,
        word_errors,
    )
    from ppspeech.models.network import FrameLayer, FrameNetwork, SequenceNetwork, StateNetwork, greedy_labels, span_of
    from ppspeech.models.patch_grid import PatchGrid
    from ppspeech.models.patches import (
        PatchDetector,
        learn_patches,
        learn_word,
        regions,
        sliding_maxima,
        weigh_patches,
    )
    from ppspeech.models.scaled import TableClassifier, UtteranceClassifier
    from ppspeech.models.speakers import SpeakerVerifier, adapt_speakers, supervector_scores
    from ppspeech.models.voices import EmbeddedVoices, UbmVoices, Voices, one_direction, voice_directions

__all__ = [
    "FEWEST_PEOPLE",
    "LARGEST_EXPLICIT",
    "RAREST",
    "UNUSUAL",
    "Certificate",
    "ConvexObjective",
    "DiscreteEmission",
    "EmbeddedVoices",
    "EmbeddingHead",
    "Expansion",
    "FrameLayer",
    "FrameNetwork",
    "GaussianEmission",
    "GaussianMixture",
    "Gaussians",
    "Head",
    "HiddenMarkovModel",
    "HuberSvm",
    "Hypothesis",
    "Impostors",
    "KernelClassifier",
    "LargeMarginGaussians",
    "LargeMarginHmm",
    "LogisticRegression",
    "MarginLoss",
    "PatchDetector",
    "PatchGrid",
    "Point",
    "Prior",
    "ScoreFloor",
    "SequenceNetwork",
    "SoftmaxRegression",
    "Solution",
    "SpeakerVerifier",
    "StateNetwork",
    "TableClassifier",
    "Topology",
    "UbmVoices",
    "UtteranceClassifier",
    "Voices",
    "Word",
    "WordErrors",
    "WordModel",
    "adapt_speakers",
    "baum_welch",
    "check_solver_arguments",
    "cost",
    "decode",
    "det_curve",
    "equal_error_rate",
    "equal_error_threshold",
    "ergodic",
    "error_rates",
    "fit_mixture",
    "flat_start_",
    "floored_scores",
    "greedy_labels",
    "learn_patches",
    "learn_word",
    "left_right",
    "map_adapt",
    "minimize",
    "minimum_dcf",
    "moments_from_phi",
    "not_reached",
    "one_direction",
    "phi_from_moments",
    "plot_det",
    "rare_score",
    "regions",
    "score_floor",
    "sliding_maxima",
    "smat",
    "span_of",
    "supervector_scores",
    "supervectors",
    "svec",
    "total_word_errors",
    "train_large_margin",
    "voice_directions",
    "weigh_patches",
    "word_errors",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
