"""A public encoder as an nn.Module: batched, masked, on any device."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.audio.frames import Frames, length_mask
from ppspeech.audio.public_encoder import PublicEncoder


class Encoder(nn.Module):
    """The network, to be run; its numbers are constants, and part of no state."""

    def __init__(self, config: PublicEncoder, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.config = config
        for number, layer in enumerate(config.layers()):
            for name, values in zip(("weights", "constants"), layer, strict=True):
                self.register_buffer(f"{name}_{number}", torch.tensor(values, dtype=dtype), persistent=False)

    def forward(self, frames: Frames) -> Frames:
        """Features `(batch, frames, inputs)` to `(batch, frames, outputs)`; the same alone and in any batch."""
        features, lengths = frames
        found = with_neighbors(features, lengths, self.config.reach)
        layers = len(self.config.shapes)
        for number in range(layers):
            found = functional.linear(
                found, self.get_buffer(f"weights_{number}"), self.get_buffer(f"constants_{number}")
            )
            found = found.relu() if number + 1 < layers else found
        return Frames(found * length_mask(lengths, features.shape[1]).unsqueeze(-1), lengths)


def with_neighbors(features: Tensor, lengths: Tensor, reach: int) -> Tensor:
    """Every frame beside those `reach` before and after, `(batch, frames, (2 reach + 1) d)`; beyond its ends an
    utterance goes on as it began and ended.
    """
    places = torch.arange(features.shape[1], device=features.device)
    last = (lengths.to(features.device) - 1).clamp_min(0).unsqueeze(-1)
    beside = [
        (places + off).clamp_min(0).minimum(last).unsqueeze(-1).expand(-1, -1, features.shape[2])
        for off in range(-reach, reach + 1)
    ]
    return torch.cat([features.gather(1, place) for place in beside], dim=-1)
