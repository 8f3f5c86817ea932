"""A clip as a picture: waveform, spectrogram and MFCCs, one above the other."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ppspeech.audio.mfcc import Mfcc
from ppspeech.errors import AudioError
from ppspeech.pictures import blank, save


def plot_clip(waveform: Tensor, mfcc: Mfcc, path: Path, title: str = "") -> None:
    """Draw one waveform `(samples,)`, its log-mel spectrogram and its features; saved as .png, .pdf or .svg."""
    if path.suffix.lower() not in {".png", ".pdf", ".svg"}:
        raise AudioError(f"cannot save a picture as {path}: the suffix must be .png, .pdf or .svg")
    config = mfcc.config
    with torch.no_grad():
        features = mfcc(waveform).features[0].cpu().numpy()
        spectrum = mfcc.spectrogram(waveform).cpu().numpy()
    seconds = len(waveform) / config.sample_rate
    figure = blank(9, 7)
    wave, mel, cepstra = figure.subplots(3, 1, sharex=config.vad_db is None)
    wave.plot(np.arange(len(waveform)) / config.sample_rate, waveform.cpu().numpy(), linewidth=0.6, color="#4c72b0")
    wave.set(ylabel="amplitude", title=title or "waveform")
    covered = len(spectrum) * config.hop_s
    mel.imshow(spectrum.T, origin="lower", aspect="auto", cmap="magma", extent=(0, covered, 0, config.mel_filters))
    mel.set(ylabel="mel filter", title="log-mel spectrogram")
    shown = features.clip(-3, 3) if config.cmvn != "none" else features
    extent = (0, len(features) * config.hop_s, 0, config.features)
    cepstra.imshow(shown.T, origin="lower", aspect="auto", cmap="RdBu_r", extent=extent)
    parts = ["cepstra", "deltas", "delta-deltas"][: 1 + config.deltas]
    cepstra.set(ylabel="feature", xlabel="seconds", title=f"{config.features} MFCC features: {', '.join(parts)}")
    for order in range(1, 1 + config.deltas):
        cepstra.axhline(order * config.cepstra, color="black", linewidth=0.5)
    if config.vad_db is None:
        wave.set_xlim(0, seconds)
    save(figure, path, dpi=120)
