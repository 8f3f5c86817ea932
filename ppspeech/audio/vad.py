"""Voice activity by energy."""

from torch import Tensor
from torch.nn import functional

from ppspeech.audio.frames import length_mask


def active_frames(frames: Tensor, lengths: Tensor, below_db: float, hangover: int) -> Tensor:
    """Which frames are loud enough to be speech.

    Args:
        frames: samples of every frame, `(batch, frames, samples)`.
        lengths: frames in each utterance, `(batch,)`.
        below_db: a frame is loud if its energy is within this of the utterance's loudest.
        hangover: frames kept on each side of a loud one.

    Returns:
        True for frames to keep, `(batch, frames)`; the loudest is always kept.
    """
    inside = length_mask(lengths, frames.shape[1])
    energy = frames.square().sum(-1).masked_fill(~inside, 0.0)
    loud = (energy >= energy.amax(1, keepdim=True) * 10 ** (-below_db / 10)) & inside
    width = 2 * hangover + 1
    near = functional.max_pool1d(loud.to(energy.dtype).unsqueeze(1), width, stride=1, padding=hangover).squeeze(1) > 0
    return near & inside
