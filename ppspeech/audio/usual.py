"""Where features of speech usually lie, from the public choices of the front end alone.

Whoever computes with bounded numbers needs a center and a unit for every feature. Normalized features have 0 and 1;
cepstra that are not normalized lie where speech puts them: their spread falls with their number, the lifter raises it
again, and derivatives are a fraction of it. The constants are of speech at large, right within a factor of two for
studio, telephone and built-in voices alike; nothing depends on them but where numbers are clipped and how finely they
are rounded.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio.mfcc_config import GivenFeatures, MfccConfig

if TYPE_CHECKING:
    from torch import Tensor

LIMIT = 8.0  # spreads from its center that a feature is clipped to, unless a model's states lie further out
USUAL = 2.5  # spreads of a frame from its center in all directions at once: the largest that is usual
FILTER_SPREAD = 2.5  # standard deviation of the mean log filter energy over frames of speech, in nats
FILTER_LEVEL = {"peak": -3.0, "keep": -7.0}  # its mean: scaled to full level, or as people record
DERIVATIVES = (1.0, 1 / 5, 1 / 13)  # spread of a cepstrum and of its derivatives, as a part of the cepstrum's


def usual_range(config: MfccConfig) -> tuple[Reals, Reals]:
    """Center and spread of every feature, `(features,)` each, in float64.

    >>> [round(float(x[0]), 1) for x in usual_range(MfccConfig(cmvn="none"))]
    [-15.3, 12.7]
    """
    center = np.zeros(config.features)
    if config.cmvn != "none" or config.encoder is not None or isinstance(config, GivenFeatures):
        return center, np.ones_like(center)
    center[0] = FILTER_LEVEL[config.level] * math.sqrt(config.mel_filters)
    n = np.arange(config.cepstra)
    spread = FILTER_SPREAD * math.sqrt(config.mel_filters) / (1 + n)
    if config.lifter:
        spread = spread * np.maximum(np.abs(1 + config.lifter / 2 * np.sin(math.pi * n / config.lifter)), 1e-2)
    return center, np.concatenate([part * spread for part in DERIVATIVES[: 1 + config.deltas]])


def in_usual_range(frames: "Reals | Tensor", config: MfccConfig) -> Reals:
    """Frames `(frames, features)` about their usual center, in units of their usual spread."""
    center, spread = usual_range(config)
    scaled: Reals = (np.asarray(frames, np.float64) - center) / spread
    return scaled


def usual_radius(features: int) -> float:
    """The largest norm of a frame that is usual, in spreads: 2.5 in all directions at once."""
    return USUAL * math.sqrt(features)
