"""Mel-frequency cepstral coefficients as a differentiable nn.Module."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio.cepstra import cosines, mel_filters, taper, too_short
from ppspeech.audio.encoder import Encoder
from ppspeech.audio.frames import Frames, compact, length_mask
from ppspeech.audio.mfcc_config import GivenFeatures, MfccConfig
from ppspeech.audio.steps import active_frames, delta, normalize_public, normalize_utterance
from ppspeech.errors import AudioError


class Mfcc(nn.Module):
    """Waveforms to MFCCs: D log(M |F x|^2), then derivatives, voice activity and normalization; then a public encoder
    of these, if the config has one.

    F is the Fourier transform of a frame, M the mel filters and D the cosine transform (Pathak 2010 section 2.1.1).
    Batched and masked: an utterance gives the same frames alone and in a padded batch, whatever its padding holds.
    Differentiable to the waveform, on any device; frames start at sample 0 and only whole frames count, so every frame
    is known as soon as its last sample is. The constants have `dtype`, and waveforms are computed in it.
    """

    window: Tensor
    mel: Tensor
    cosine: Tensor

    def __init__(self, config: MfccConfig | None = None, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.config = config or MfccConfig()
        if isinstance(self.config, GivenFeatures):
            raise AudioError(
                f"the {self.config.given} features a frame are given, as in a filtered corpus: they are not computed "
                "from sound"
            )
        constants = {"window": taper(self.config), "mel": mel_filters(self.config), "cosine": cosines(self.config)}
        for name, constant in constants.items():
            self.register_buffer(name, torch.tensor(constant, dtype=dtype), persistent=False)
        self.encoder = None if self.config.encoder is None else Encoder(self.config.encoder, dtype)

    def forward(self, waveforms: Tensor | NDArray[Any], lengths: Tensor | NDArray[Any] | None = None) -> Frames:
        """Compute the features of a batch, of tensors or arrays.

        Waveforms are `(batch, samples)`, or one `(samples,)`; `lengths` `(batch,)` are in samples, None means all.
        Raises AudioError for a wrong shape, an utterance too short for one frame (two with `cmvn="utterance"`), samples
        that are not finite, or silence, which has no spectrum to normalize. Inside `torch.compile` only shapes are
        checked.
        """
        if isinstance(waveforms, np.ndarray):
            waveforms = torch.from_numpy(waveforms).to(self.window.device)
        if waveforms.ndim == 1:
            waveforms = waveforms.unsqueeze(0)
        if lengths is None:
            lengths = torch.full((len(waveforms),), waveforms.shape[-1], device=waveforms.device)
        elif isinstance(lengths, np.ndarray):
            lengths = torch.from_numpy(lengths).to(waveforms.device)
        self._check(waveforms, lengths)
        samples = waveforms.to(self.window.dtype).masked_fill(~length_mask(lengths, waveforms.shape[-1]), 0.0)
        if self.config.level == "peak":
            samples = samples / samples.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(samples.dtype).tiny)
        frames = self._features(samples, self.frame_counts(lengths))
        encoded: Frames = frames if self.encoder is None else self.encoder(frames)
        return encoded

    def frame_counts(self, lengths: Tensor) -> Tensor:
        """Whole frames in waveforms of these lengths, `(batch,)`."""
        return 1 + torch.div(lengths - self.config.window_length, self.config.hop_length, rounding_mode="floor")

    def of_clips(self, clips: Sequence[Tensor]) -> Frames:
        """Pad waveforms of different lengths, each `(samples,)`, into one batch and compute their features."""
        if not clips:
            raise AudioError("no waveforms given: pass at least one")
        lengths = torch.tensor([len(clip) for clip in clips], device=clips[0].device)
        result: Frames = self(pad_sequence(list(clips), batch_first=True), lengths)
        return result

    def spectrogram(self, waveform: Tensor) -> Tensor:
        """The log-mel spectrogram ln(M |F x|^2) of one waveform `(samples,)`: `(frames, mel_filters)`."""
        return self._log_mel(waveform.to(self.window.dtype).unsqueeze(0)).squeeze(0)

    def _log_mel(self, samples: Tensor) -> Tensor:
        emphasis = self.config.pre_emphasis
        if emphasis:  # the sample before the first counts as 0
            samples = samples - emphasis * functional.pad(samples[:, :-1], (1, 0))
        frames = samples.unfold(-1, self.config.window_length, self.config.hop_length)
        spectrum = torch.fft.rfft(frames * self.window, n=self.config.fft_length)
        power = spectrum.real.square() + spectrum.imag.square()
        energies: Tensor = power @ self.mel
        return energies.clamp_min(self.config.floor).log()

    def _features(self, samples: Tensor, count: Tensor) -> Frames:
        """Cepstra, their derivatives, voice activity, normalization, in this order."""
        config = self.config
        orders = [self._log_mel(samples) @ self.cosine]
        for _ in range(config.deltas):
            orders.append(delta(orders[-1], count, config.delta_reach))
        features = torch.cat(orders, dim=-1)
        frames = Frames(features * length_mask(count, features.shape[1]).unsqueeze(-1), count)
        if config.vad_db is not None:
            pieces = samples.unfold(-1, config.window_length, config.hop_length)
            frames = compact(frames, active_frames(pieces, count, config.vad_db, config.vad_hangover))
        if config.cmvn == "utterance":
            return normalize_utterance(frames)
        if config.cmvn == "public":
            return normalize_public(frames, config.public_mean, config.public_std)
        return frames

    def _check(self, waveforms: Tensor, lengths: Tensor) -> None:
        if waveforms.ndim != 2 or not waveforms.is_floating_point():
            raise AudioError(
                f"waveforms are floating point of shape (batch, samples), got {waveforms.dtype} of shape "
                f"{tuple(waveforms.shape)}"
            )
        if lengths.shape != waveforms.shape[:1]:
            raise AudioError(f"lengths have shape ({len(waveforms)},), got {tuple(lengths.shape)}")
        needed = self.config.window_length
        if self.config.cmvn == "utterance":
            needed += self.config.hop_length
        if waveforms.shape[-1] < needed:
            raise AudioError(too_short(self.config, waveforms.shape[-1], needed))
        if torch.compiler.is_compiling():
            return
        short = lengths < needed
        if short.any():
            raise AudioError(f"utterance {_first(short)}: " + too_short(self.config, int(lengths[short][0]), needed))
        if (lengths > waveforms.shape[-1]).any():
            raise AudioError(f"a length exceeds the {waveforms.shape[-1]} samples given")
        inside = length_mask(lengths, waveforms.shape[-1])
        bad = ~torch.isfinite(waveforms.masked_fill(~inside, 0.0)).all(1)
        if bad.any():
            raise AudioError(f"utterance {_first(bad)} has samples that are NaN or infinite")
        silent = ~(waveforms.ne(0) & inside).any(1)
        if silent.any() and (self.config.level == "peak" or self.config.cmvn == "utterance"):
            raise AudioError(f"utterance {_first(silent)} is silent: every sample is zero")


def _first(flags: Tensor) -> int:
    return int(flags.nonzero()[0])
