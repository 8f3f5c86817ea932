"""Time derivatives of feature sequences."""

import torch
from torch import Tensor

from ppspeech.audio.frames import extend_last


def delta(features: Tensor, lengths: Tensor, reach: int = 2) -> Tensor:
    """Regression slope over `reach` frames on each side: sum_k k (c(t+k) - c(t-k)) / (2 sum_k k^2).

    Beyond either end of an utterance its end frame repeats, so that padding never enters.

    Args:
        features: `(batch, frames, features)`.
        lengths: frames in each utterance, `(batch,)`.
        reach: frames on each side.

    Returns:
        Slopes of the same shape; meaningless from each utterance's length on.
    """
    frames = extend_last(features, lengths)
    size = frames.shape[1]
    first, last = frames[:, :1], frames[:, -1:]
    padded = torch.cat([first.expand(-1, reach, -1), frames, last.expand(-1, reach, -1)], dim=1)
    slope = torch.zeros_like(frames)
    for k in range(1, reach + 1):
        slope = slope + k * (padded[:, reach + k : reach + k + size] - padded[:, reach - k : reach - k + size])
    return slope / (2 * sum(k * k for k in range(1, reach + 1)))
