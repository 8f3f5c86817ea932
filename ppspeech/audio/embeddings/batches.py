"""Speech embeddings of a batch, in the form of `Mfcc`."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio.embeddings.front_end import EmbeddingConfig
from ppspeech.audio.embeddings.windows import FIRST, SpeechWindows
from ppspeech.audio.frames import Frames
from ppspeech.errors import AudioError


class SpeechEmbedding(nn.Module):
    """Waveforms `(batch, samples)` at 16 kHz and lengths to `Frames`, 96 numbers every 80 ms.

    The network runs on the CPU, and the result is where the waveforms are; there is no gradient through it, and none is
    pretended: waveforms that ask for one are refused.
    """

    def __init__(self, config: EmbeddingConfig | None = None) -> None:
        super().__init__()
        self._windows = SpeechWindows(config)
        self.config = self._windows.config

    def forward(self, waveforms: Tensor, lengths: Tensor | None = None) -> Frames:
        """Embeddings and how many each utterance has. Raises AudioError for one too short for any, or not finite."""
        if waveforms.ndim == 1:
            waveforms = waveforms.unsqueeze(0)
        if waveforms.requires_grad:
            raise AudioError("there is no gradient through the speech embedding: detach the waveforms")
        if waveforms.ndim != 2 or not waveforms.is_floating_point():
            raise AudioError(f"waveforms are floating point of shape (batch, samples), got {tuple(waveforms.shape)}")
        given = [waveforms.shape[1]] * len(waveforms) if lengths is None else lengths.tolist()
        found = []
        for number, (each, length) in enumerate(zip(waveforms.cpu().numpy(), given, strict=True)):
            if not FIRST <= length <= len(each) or not np.isfinite(each[:length]).all():
                raise AudioError(f"utterance {number}: an embedding needs {FIRST} finite samples, got {length}")
            found.append(torch.from_numpy(self._windows(each[:length])).to(waveforms))
        counts = torch.tensor([len(each) for each in found], device=waveforms.device)
        return Frames(pad_sequence(found, batch_first=True), counts)
