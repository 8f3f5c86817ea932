"""Features computed once and kept on disk."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ppspeech.audio import Mfcc, MfccConfig
from ppspeech.data.corpus import Utterance
from ppspeech.errors import AudioError, CorpusError
from ppspeech.progress import track
from ppspeech.storage import atomic_write, cache_folder

FORMAT = 1
"""Raise when the meaning of a cached array changes."""


class FeatureStore:
    """MFCC features of utterances, in a cache keyed by the front end's choices and the file's bytes.

    A changed file or a changed config is a new key; nothing has to be cleared by hand. Every array is written
    whole or not at all, so several workers may fill the same store, and an interrupted run goes on where it was.

    Args:
        config: the front end.
        folder: where to keep the arrays; the cache folder by default. Features of private speech are as private
            as the speech: keep the folder where the recordings may be.
    """

    def __init__(self, config: MfccConfig, folder: Path | None = None) -> None:
        self.config = config
        self.folder = folder or cache_folder() / "features"
        self._mfcc = Mfcc(config)
        self._prefix = json.dumps([FORMAT, asdict(config)], sort_keys=True).encode()

    def path(self, utterance: Utterance) -> Path:
        """Where the utterance's features are, or will be."""
        try:
            content = utterance.path.read_bytes()
        except OSError as missing:
            raise AudioError(f"cannot read {utterance.path}: {missing.strerror}") from missing
        key = hashlib.sha256(self._prefix + content).hexdigest()
        return self.folder / key[:2] / f"{key[2:]}.npy"

    def __getitem__(self, utterance: Utterance) -> Tensor:
        """The features of one utterance, `(frames, features)`, from the cache or computed now."""
        return self.load([utterance])[0]

    def load(self, utterances: Sequence[Utterance], batch_size: int = 64) -> list[Tensor]:
        """The features of many utterances, each `(frames, features)`, in order; what is missing is computed in batches.

        Raises:
            AudioError: naming the file that cannot be read or used.
        """
        paths = [self.path(u) for u in utterances]
        found = [self._read(path) for path in paths]
        missing = [i for i, features in enumerate(found) if features is None]
        # Files of similar size have similar lengths: sorting them keeps the padding of a batch small.
        missing.sort(key=lambda i: utterances[i].path.stat().st_size)
        batches = [missing[i : i + batch_size] for i in range(0, len(missing), batch_size)]
        for batch in track(batches, "Computing features"):
            computed = self._compute([utterances[i] for i in batch])
            for index, features in zip(batch, computed, strict=True):
                with atomic_write(paths[index], durable=False) as temporary:
                    np.save(temporary, features.numpy(), allow_pickle=False)
                found[index] = features
        return [features for features in found if features is not None]

    def _compute(self, utterances: list[Utterance]) -> Iterator[Tensor]:
        clips = [u.waveform(self.config.sample_rate) for u in utterances]
        try:
            with torch.no_grad():
                frames = self._mfcc.of_clips(clips)
        except AudioError:
            for utterance, clip in zip(utterances, clips, strict=True):
                self._blame(utterance, clip)
            raise
        for features, length in zip(frames.features, frames.lengths.tolist(), strict=True):
            yield features[:length].clone()

    def _blame(self, utterance: Utterance, clip: Tensor) -> None:
        """Say which file of a batch cannot be used."""
        try:
            self._mfcc(clip)
        except AudioError as error:
            raise AudioError(f"{utterance.path}: {error}") from None

    def _read(self, path: Path) -> Tensor | None:
        try:
            array = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EOFError):
            return None  # damaged from outside: it is computed again and replaced
        if array.ndim != 2 or array.shape[1] != self.config.features or array.dtype != np.float32:
            raise CorpusError(f"{path} does not hold features of this config: delete it")
        return torch.from_numpy(array)
