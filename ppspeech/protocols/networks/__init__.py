"""Networks on frames, evaluated on shares: weights at the server, a voice at the client, labels to the client."""

from ppspeech.protocols.networks.lines import ACTIVATIONS, Activation, Polyline, lines_of
from ppspeech.protocols.networks.network import (
    activate,
    answer_network,
    ask_network,
    check_told,
    follow_layers,
    network_cost,
    network_rounds,
    prepare_network,
    product_bytes,
    read_network,
    share_scores,
    tell,
)
from ppspeech.protocols.networks.range import NetworkArrays, fit_network
from ppspeech.protocols.networks.shape import Layer, NetworkShape, Output, Pool
from ppspeech.protocols.networks.training import TrainingTerms, bring, descend, predict, teach

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Layer",
    "NetworkArrays",
    "NetworkShape",
    "Output",
    "Polyline",
    "Pool",
    "TrainingTerms",
    "activate",
    "answer_network",
    "ask_network",
    "bring",
    "check_told",
    "descend",
    "fit_network",
    "follow_layers",
    "lines_of",
    "network_cost",
    "network_rounds",
    "predict",
    "prepare_network",
    "product_bytes",
    "read_network",
    "share_scores",
    "teach",
    "tell",
]
