"""What is done to feature sequences after the cepstra: time derivatives, voice activity, normalization."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.audio.frames import Frames, extend_last, length_mask
from ppspeech.errors import AudioError

FLAT = 1e-10  # A feature whose variance over time is below this does not vary


def delta(features: Tensor, lengths: Tensor, reach: int = 2) -> Tensor:
    """Regression slope over `reach` frames on each side: sum_k k (c(t+k) - c(t-k)) / (2 sum_k k^2).

    Beyond either end of an utterance its end frame repeats, so that padding never enters. Features are
    `(batch, frames, features)`, lengths `(batch,)` in frames; the slopes are meaningless from each length on.
    """
    frames = extend_last(features, lengths)
    size = frames.shape[1]
    first, last = frames[:, :1], frames[:, -1:]
    padded = torch.cat([first.expand(-1, reach, -1), frames, last.expand(-1, reach, -1)], dim=1)
    slope = torch.zeros_like(frames)
    for k in range(1, reach + 1):
        slope = slope + k * (padded[:, reach + k : reach + k + size] - padded[:, reach - k : reach - k + size])
    return slope / (2 * sum(k * k for k in range(1, reach + 1)))


def active_frames(frames: Tensor, lengths: Tensor, below_db: float, hangover: int) -> Tensor:
    """Which frames are loud enough to be speech.

    A frame `(batch, frames, samples)` is loud if its energy is within `below_db` of the utterance's loudest; `hangover`
    frames on each side of a loud one are kept too. Returns `(batch, frames)`, True for those to keep.
    """
    inside = length_mask(lengths, frames.shape[1])
    energy = frames.square().sum(-1).masked_fill(~inside, 0.0)
    loud = (energy >= energy.amax(1, keepdim=True) * 10 ** (-below_db / 10)) & inside
    width = 2 * hangover + 1
    near = functional.max_pool1d(loud.to(energy.dtype).unsqueeze(1), width, stride=1, padding=hangover).squeeze(1) > 0
    return near & inside


def normalize_utterance(frames: Frames) -> Frames:
    """Give every feature of every utterance mean 0 and variance 1 over time.

    A single feature that does not vary (a derivative in a very short utterance) becomes 0, not NaN. Raises AudioError
    if no feature of an utterance varies: it is silent. Not checked inside `torch.compile`.
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
