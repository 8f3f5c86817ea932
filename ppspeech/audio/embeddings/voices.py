"""Who speaks: the GE2E voice embedding (Wan et al. 2018, "Generalized end-to-end loss for speaker verification").

An LSTM hears 1.6 s at a time; what it says of each is averaged and brought to length 1. The weights are Resemblyzer's,
read as plain tensors; what computes with them is here, in torch: batched, on any device, and differentiable.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio.cepstra import mel_triangles
from ppspeech.audio.embeddings.front_end import RATE, EmbeddingConfig
from ppspeech.audio.embeddings.ge2e import (
    HANGOVER,
    HIDDEN,
    HOP,
    LAYERS,
    LOUDNESS_DB,
    MEL,
    PIECE,
    SHORTEST,
    SILENT_DB,
    WINDOW,
    starts_of,
)
from ppspeech.audio.embeddings.wheels import weights_of
from ppspeech.audio.frames import Frames
from ppspeech.errors import AudioError


class VoiceEmbedding(nn.Module):
    """Waveforms `(batch, samples)` at 16 kHz and lengths to voices `(batch, 256)` of length 1.

    `frames` gives the mel frames of speech, without its silences, and `voices` what frames say: whoever joins
    utterances, or cuts them, does it between the two. Raises as `weights_of` without the weights.
    """

    _filters: Tensor
    _taper: Tensor

    def __init__(self, config: EmbeddingConfig | None = None) -> None:
        super().__init__()
        self.config = config or EmbeddingConfig("voice")
        if self.config.name != "voice":
            raise AudioError(f"people are heard through voice embeddings, got those of {self.config.name}")
        self.lstm = nn.LSTM(MEL, HIDDEN, LAYERS, batch_first=True)
        self.linear = nn.Linear(HIDDEN, self.config.size)
        filters = mel_triangles(np.linspace(0, RATE / 2, WINDOW // 2 + 1), MEL, 0.0, RATE / 2, "slaney")
        self.register_buffer("_filters", torch.from_numpy(filters).float(), persistent=False)
        self.register_buffer("_taper", torch.hann_window(WINDOW), persistent=False)
        saved: dict[str, Any] = torch.load(weights_of("voice"), map_location="cpu", weights_only=True)
        own = set(self.state_dict())
        self.load_state_dict({name: each for name, each in saved["model_state"].items() if name in own})
        self.eval()

    def forward(self, waveforms: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The voice of each utterance. Raises AudioError for one that is too short, silent or not finite."""
        return self.voices(self.frames(waveforms, lengths))

    def frames(self, waveforms: Tensor, lengths: Tensor | None = None) -> Frames:
        """Mel power every 10 ms, `(batch, frames, 40)`, of speech brought to a loudness, its silences left out."""
        if waveforms.ndim == 1:
            waveforms = waveforms.unsqueeze(0)
        if waveforms.ndim != 2 or not waveforms.is_floating_point():
            raise AudioError(f"waveforms are floating point of shape (batch, samples), got {tuple(waveforms.shape)}")
        given = [waveforms.shape[1]] * len(waveforms) if lengths is None else lengths.tolist()
        found = []
        for number, (each, length) in enumerate(zip(waveforms, given, strict=True)):
            try:
                found.append(self._spoken(each[:length]))
            except AudioError as error:
                raise AudioError(f"utterance {number}: {error}") from None
        counts = torch.tensor([len(each) for each in found], device=waveforms.device)
        return Frames(pad_sequence(found, batch_first=True), counts)

    def voices(self, frames: Frames) -> Tensor:
        """The voices that mel frames were spoken with, `(batch, 256)`, each of length 1."""
        pieces, owners = [], []
        for number, (each, length) in enumerate(zip(frames.features, frames.lengths.tolist(), strict=True)):
            starts = starts_of(length)
            padded = functional.pad(each[:length], (0, 0, 0, max(0, starts[-1] + PIECE - length)))
            pieces += [padded[start : start + PIECE] for start in starts]
            owners += [number] * len(starts)
        _, (hidden, _) = self.lstm(torch.stack(pieces))
        said = functional.normalize(functional.relu(self.linear(hidden[-1])), dim=-1)
        total = said.new_zeros(len(frames.features), said.shape[-1])
        return functional.normalize(total.index_add(0, torch.tensor(owners, device=said.device), said), dim=-1)

    def of_power(self, power: Tensor) -> Tensor:
        """As `frames`, of one utterance whose sound is not there: power `(frames, 201)` at 0 to 8 kHz, every 10 ms, on
        any scale. Gives `(spoken, 40)`. Raises AudioError for too little that is not silent.
        """
        if power.ndim != 2 or power.shape[1] != len(self._filters) or not bool(torch.isfinite(power).all()):
            raise AudioError(f"power is finite, (frames, {len(self._filters)}), got {tuple(power.shape)}")
        energy = power.detach().sum(-1).clamp_min(1e-30)
        # of a waveform x: a frame's spectrum holds WINDOW times the energy of x times the taper, each frequency twice
        square = 2 * energy.mean() / (WINDOW * self._taper.square().sum().to(power))
        level = 10 ** (LOUDNESS_DB / 10) / square
        return self._without_silence(power @ self._filters.to(power) * level, 10 * energy.log10())

    def _spoken(self, samples: Tensor) -> Tensor:
        if len(samples) < WINDOW or not bool(torch.isfinite(samples).all()):
            raise AudioError(f"a voice needs {WINDOW} finite samples or more, got {len(samples)}")
        power = samples.square().mean()
        if not bool(power > 0):
            raise AudioError("the waveform is silent: every sample is zero")
        samples = samples * (10 ** (LOUDNESS_DB / 20) / power.detach().sqrt()).clamp_min(1.0)
        pieces = functional.pad(samples, (WINDOW // 2, WINDOW // 2)).unfold(0, WINDOW, HOP)
        spectrum: Tensor = torch.fft.rfft(pieces * self._taper.to(samples)).abs().square()
        energy = 10 * pieces.detach().square().sum(-1).clamp_min(1e-20).log10()
        return self._without_silence(spectrum @ self._filters.to(samples), energy)

    @staticmethod
    def _without_silence(mel: Tensor, energy: Tensor) -> Tensor:
        """Mel frames `(frames, 40)` that are loud, in dB, or near one that is."""
        loud = (energy > energy.max() - SILENT_DB).to(mel).view(1, 1, -1)
        near = functional.max_pool1d(loud, 2 * HANGOVER + 1, stride=1, padding=HANGOVER).view(-1) > 0
        spoken = mel[near]
        if len(spoken) < SHORTEST:
            raise AudioError(f"a voice needs {SHORTEST / 100:g} s of speech, got {len(spoken) / 100:g} s")
        return spoken
