"""From a bundle of words to keywords that a server looks for in recordings of its clients.

What a word is compared with, one Gaussian of all states of all words, is linear in the monomials of a frame as they
are: the server takes it off its weights, and clients need no garbage model.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import usual_range
from ppspeech.bundle import (
    Bundle,
    KeywordHmmSettings,
    SentenceHmmSettings,
    feature_limit,
    feature_radius,
)
from ppspeech.errors import ModelError
from ppspeech.models.decoding import Chain
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.protocols.scores import MOST_LIMIT, frame_bounds, scaled_weights
from ppspeech.protocols.search import Keywords, SpotShape
from ppspeech.service.export import score_columns
from ppspeech.service.tasks.spotting import Spotting

ROUND = 50  # nats that the range of scores is rounded to: it says little about the models
LONGEST_SECONDS, RECORDING_SECONDS = 1.5, 60.0
THRESHOLD = 40.0


@dataclass(frozen=True, slots=True)
class SpotDeployment:
    """What whoever serves keywords chooses; all but the threshold is public.

    Attributes:
        threshold: nats above any other speech, from which a keyword counts as said.
        longest: seconds of a keyword, at the most.
        seconds: of the longest recording.
    """

    threshold: float = THRESHOLD
    longest: float = LONGEST_SECONDS
    seconds: float = RECORDING_SECONDS


@dataclass(frozen=True, slots=True, eq=False)
class KeywordBundle:
    """The server's keywords: weights `(keywords, states, monomials)`, constants and thresholds `(keywords,)`."""

    terms: Spotting
    weights: Reals
    constants: Reals
    thresholds: Reals

    def keywords(self, shape: SpotShape) -> Keywords:
        """As a search of this shape takes them."""
        return Keywords(shape, self.weights, self.constants, self.thresholds)


@torch.no_grad()
def export_keywords(bundle: Bundle, deployment: SpotDeployment | None = None) -> KeywordBundle:
    """The words of a bundle as keywords. Raises ModelError for one without chains of single Gaussians, RangeError where
    scores are further apart than shares hold.
    """
    chosen, bank, mfcc = deployment or SpotDeployment(), bundle.model, bundle.mfcc
    if isinstance(bundle.config.settings, KeywordHmmSettings):
        raise ModelError(
            f"a {bundle.config.type} learned words one at a time, with the silence around each, and does not find them "
            "in running speech: look for words of a bundle of sentences (`ppspeech train sentences`)"
        )
    if not isinstance(bundle.config.settings, SentenceHmmSettings):
        raise ModelError(f"a {bundle.config.type} has no models of words that could be looked for")
    if bundle.config.settings.units:
        raise ModelError("keywords that are looked for have models of their own, and this bundle's are made of units")
    assert isinstance(bank, HiddenMarkovModel)
    emission = bank.emission
    assert isinstance(emission, GaussianEmission)
    limit = feature_limit(bank, mfcc)
    assert limit is not None
    if emission.components > 1 or limit > MOST_LIMIT:
        raise ModelError("keywords that are looked for have one Gaussian a state, of normalized features")
    monomials: Literal["full", "diagonal"] = "full" if emission.whole else "diagonal"
    words = len(bundle.labels)
    columns = score_columns(emission.gaussians.phi().double(), monomials)[:, : words * bank.states]
    columns = columns - score_columns(emission.gaussians.pooled().phi().double(), monomials)
    chains = [Chain.of_bank(bank, word) for word in range(words)]
    columns[-1] += np.concatenate([chain.stays.numpy() for chain in chains])
    center, spread = usual_range(mfcc)
    columns = scaled_weights(columns, monomials, center, spread)
    radius = feature_radius(bank, mfcc)
    low, high = frame_bounds(columns, monomials, limit, radius)
    scores = math.floor(low.min() / ROUND - 0.1) * ROUND, math.ceil(high.max() / ROUND + 0.1) * ROUND
    longest = max(2, round(chosen.longest / mfcc.hop_s))
    terms = Spotting(
        type=bundle.config.type,
        holder="client",
        mfcc=mfcc,
        names=bundle.labels,
        states=bank.states,
        longest=longest,
        frames=max(2 * longest, math.ceil(chosen.seconds / mfcc.hop_s / (2 * longest)) * 2 * longest),
        monomials=monomials,
        limit=limit,
        radius=radius,
        scores=scores,
    )
    weights = np.moveaxis(columns.reshape(-1, words, bank.states), 0, -1)
    constants = np.array([chain.constant for chain in chains])
    return KeywordBundle(terms, weights, constants, np.full(words, chosen.threshold))
