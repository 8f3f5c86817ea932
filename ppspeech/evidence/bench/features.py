"""MFCC features of a batch of clips, beside librosa's.

Needs librosa; --quick takes about 5 s.
"""

import os
from importlib.metadata import version

import numpy as np
import torch

from ppspeech.audio import Mfcc, MfccConfig
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds
from ppspeech.figures import Figure


@BENCHES.register("features")
def run(quick: bool) -> list[Figure]:
    """Time 64 one-second clips: 39 MFCCs with normalization, in one batch and in a loop over librosa.

    Both do the same work: mel cepstra, liftering, two orders of derivatives, mean and variance normalization. The
    peer is called as its users call it, a clip at a time, with its filters and windows warm in its caches.
    """
    import librosa

    config = MfccConfig.wideband()
    mfcc = Mfcc(config)
    clips = 0.1 * torch.randn(64, config.sample_rate, generator=torch.Generator().manual_seed(0))
    signals = clips.numpy()

    def ours() -> None:
        with torch.inference_mode():
            mfcc(clips)

    def theirs() -> None:
        for signal in signals:
            emphasized = librosa.effects.preemphasis(signal / np.abs(signal).max(), coef=config.pre_emphasis)
            static = librosa.feature.mfcc(
                y=emphasized,
                sr=config.sample_rate,
                n_mfcc=config.cepstra,
                n_fft=config.fft_length,
                win_length=config.window_length,
                hop_length=config.hop_length,
                window="hamming",
                center=False,
                n_mels=config.mel_filters,
                fmin=config.low_hz,
                htk=True,
                lifter=config.lifter,
            )
            slopes = [librosa.feature.delta(static, order=order, width=5, mode="nearest") for order in (1, 2)]
            features = np.concatenate([static, *slopes])
            (features - features.mean(1, keepdims=True)) / features.std(1, keepdims=True)

    repeats = 5 if quick else 25
    batch, loop = best_seconds(ours, repeats), best_seconds(theirs, repeats)
    setting = (
        f"64 clips of 1 s, 39 features, {torch.get_num_threads()} threads of {os.cpu_count()} cores, best of {repeats}"
    )
    return [
        Figure.less("features.batch_ms", 1e3 * batch, "ms", f"librosa {version('librosa')}", 1e3 * loop, setting),
        Figure("features.speedup_vs_librosa", loop / batch, "x", note=setting),
        Figure("features.real_time_factor", batch / 64, "s/s", note="seconds of computing a second of speech"),
    ]
