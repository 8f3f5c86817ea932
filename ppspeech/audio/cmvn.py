"""Cepstral mean and variance normalization, from the utterance itself or from public statistics."""

from collections.abc import Sequence

import torch

from ppspeech.audio.frames import Frames, length_mask
from ppspeech.errors import AudioError

FLAT = 1e-10
"""A feature whose variance over time is below this does not vary."""


def normalize_utterance(frames: Frames) -> Frames:
    """Give every feature of every utterance mean 0 and variance 1 over time.

    A single feature that does not vary (a derivative in a very short utterance) becomes 0, not NaN.

    Raises:
        AudioError: if no feature of an utterance varies: it is silent. Not checked inside `torch.compile`.
    """
    features, lengths = frames
    inside = length_mask(lengths, features.shape[1]).unsqueeze(-1)
    total = lengths.clamp_min(1).view(-1, 1, 1).to(features.dtype)
    centered = (features - (features * inside).sum(1, keepdim=True) / total) * inside
    variance = centered.square().sum(1, keepdim=True) / total
    if not torch.compiler.is_compiling():
        flat = (variance < FLAT).all(2).squeeze(1)
        if flat.any():
            raise AudioError(
                f"utterance {int(flat.nonzero()[0])} is silent or does not change over time: its features cannot be "
                "normalized; leave it out, or use cmvn='public' or 'none'"
            )
    return Frames(centered / variance.clamp_min(FLAT).sqrt(), lengths)


def normalize_public(frames: Frames, mean: Sequence[float], std: Sequence[float]) -> Frames:
    """Subtract `mean` and divide by `std`, one value a feature, estimated from public speech."""
    features, lengths = frames
    inside = length_mask(lengths, features.shape[1]).unsqueeze(-1)
    return Frames((features - features.new_tensor(mean)) / features.new_tensor(std) * inside, lengths)
