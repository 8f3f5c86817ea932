"""Hidden Markov models: topology, emissions, recursions, banks of words, Baum-Welch."""

from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import (
    HmmStatistics,
    baum_welch,
    by_length,
    flat_start_,
    flat_start_batches_,
    hmm_statistics,
    update_hmm_,
    utterance_hmm_statistics,
)
from ppspeech.models.hmm.emissions import MAXIMUM_LIKELIHOOD, DiscreteEmission, GaussianEmission, Prior, set_logits_
from ppspeech.models.hmm.topology import Topology, left_right

__all__ = [
    "MAXIMUM_LIKELIHOOD",
    "DiscreteEmission",
    "GaussianEmission",
    "HiddenMarkovModel",
    "HmmStatistics",
    "Prior",
    "Topology",
    "baum_welch",
    "by_length",
    "flat_start_",
    "flat_start_batches_",
    "hmm_statistics",
    "left_right",
    "set_logits_",
    "update_hmm_",
    "utterance_hmm_statistics",
]
