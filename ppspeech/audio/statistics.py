"""One vector an utterance: how its features are distributed over time."""

import torch
from torch import Tensor

from ppspeech.audio.frames import Frames, length_mask
from ppspeech.errors import AudioError


def utterance_statistics(frames: Frames) -> Tensor:
    """Mean, maximum, minimum and standard deviation over time (Hamm 2015 section 5.2).

    With the 13 coefficients of `MfccConfig.hamm2015()` this is the paper's 52-dimensional vector. The standard
    deviation is the population's (divided by the number of frames). Returns `(batch, 4 d)`: all means, all maxima, all
    minima, all standard deviations. Raises AudioError if an utterance has no frame.
    """
    features, lengths = frames
    if not torch.compiler.is_compiling() and (lengths < 1).any():
        raise AudioError("an utterance without frames has no statistics: leave it out")
    inside = length_mask(lengths, features.shape[1]).unsqueeze(-1)
    total = lengths.view(-1, 1).to(features.dtype)
    mean = (features * inside).sum(1) / total
    largest = features.masked_fill(~inside, -torch.inf).amax(1)
    smallest = features.masked_fill(~inside, torch.inf).amin(1)
    centered = (features - mean.unsqueeze(1)) * inside
    # sqrt has no derivative at 0: a constant feature gets a tiny positive variance.
    deviation = (centered.square().sum(1) / total).clamp_min(torch.finfo(features.dtype).tiny).sqrt()
    return torch.cat([mean, largest, smallest, deviation], dim=-1)
