"""Who speaks, without torch: the GE2E network of `VoiceEmbedding` in numpy, for a client that only asks.

The same weights, read from the same file, and the same numbers to rounding: tests compare the two.
"""

import pickle
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ppspeech.arrays import Reals
from ppspeech.audio.cepstra import mel_triangles
from ppspeech.audio.embeddings.front_end import RATE
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
from ppspeech.audio.sound import Samples
from ppspeech.errors import AudioError

MAGIC = 0x1950A86A20F9469CFC6C
FORMAT = 1001
"""What a file of torch before 1.6 begins with: a number, and how the rest is laid out."""


class LightVoice:
    """Samples at 16 kHz to a voice `(256,)` of length 1. Raises as `weights_of` without the weights."""

    def __init__(self) -> None:
        held = read_tensors(weights_of("voice"))
        self._layers = [
            tuple(held[f"lstm.{part}_l{layer}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            for layer in range(LAYERS)
        ]
        self._weight, self._bias = held["linear.weight"], held["linear.bias"]
        grid = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
        self._filters = mel_triangles(grid, MEL, 0.0, RATE / 2, "slaney").astype(np.float32)
        self._taper = np.hanning(WINDOW + 1)[:-1].astype(np.float32)

    def __call__(self, samples: Samples) -> Reals:
        """The voice of one utterance. Raises AudioError for one that is too short, silent or not finite."""
        mel = self._spoken(np.asarray(samples, np.float32))
        starts = starts_of(len(mel))
        padded = np.pad(mel, ((0, max(0, starts[-1] + PIECE - len(mel))), (0, 0)))
        rows = np.stack([padded[start : start + PIECE] for start in starts])
        for layer in self._layers:
            rows = _lstm(rows, *layer)
        said = np.maximum(rows[:, -1] @ self._weight.T + self._bias, 0)
        voice: Reals = _unit(_unit(said).sum(axis=0).astype(np.float64))
        return voice

    def _spoken(self, samples: Samples) -> Any:
        """Mel power every 10 ms `(frames, 40)`, of speech brought to a loudness, its silences left out."""
        if len(samples) < WINDOW or not np.isfinite(samples).all():
            raise AudioError(f"a voice needs {WINDOW} finite samples or more, got {len(samples)}")
        power = np.mean(samples**2)
        if not power > 0:
            raise AudioError("the waveform is silent: every sample is zero")
        samples = samples * np.maximum(np.float32(10 ** (LOUDNESS_DB / 20)) / np.sqrt(power), np.float32(1))
        pieces = sliding_window_view(np.pad(samples, WINDOW // 2), WINDOW)[::HOP]
        mel = (np.abs(np.fft.rfft(pieces * self._taper)) ** 2).astype(np.float32) @ self._filters
        energy = 10 * np.log10(np.maximum((pieces**2).sum(axis=-1), np.float32(1e-20)))
        loud = np.pad(energy > energy.max() - SILENT_DB, HANGOVER)
        spoken = mel[sliding_window_view(loud, 2 * HANGOVER + 1).any(axis=1)]
        if len(spoken) < SHORTEST:
            raise AudioError(f"a voice needs {SHORTEST / 100:g} s of speech, got {len(spoken) / 100:g} s")
        return spoken


def read_tensors(path: Path) -> dict[str, Any]:
    """The 32-bit tensors of a model in a file of torch before 1.6, by their names; nothing else in it is made.

    Raises AudioError for a file that is none, or that names anything but tensors.
    """
    try:
        with path.open("rb") as file:
            if (_Plain(file).load(), _Plain(file).load()) != (MAGIC, FORMAT):
                raise ValueError("another format")
            _Plain(file).load()  # of the machine that wrote it
            held = _Plain(file)
            saved, keys = held.load(), _Plain(file).load()
            for key in keys:
                count = int(np.frombuffer(file.read(8), "<i8")[0])
                held.stored[key][:] = np.frombuffer(file.read(4 * count), "<f4")
            return dict(saved["model_state"])
    except Exception as damaged:  # a pickle fails in any way
        raise AudioError(f"{path} holds no weights: {damaged}") from None


class _Plain(pickle.Unpickler):
    """Reads numbers, names and tensors, and refuses every other thing that a pickle could make."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.stored: dict[str, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch", "FloatStorage"): np.float32,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        what, kind, key, _, count, *_ = pid
        if what != "storage" or kind is not np.float32:
            raise pickle.UnpicklingError("it stores something else than numbers")
        return self.stored.setdefault(key, np.zeros(count, np.float32))


def _tensor(stored: Any, offset: int, size: Sequence[int], strides: Sequence[int], *_: Any) -> Any:
    """A view of what is stored, filled when the numbers are read."""
    usual = [int(np.prod(size[place + 1 :])) for place in range(len(size))]
    if list(strides) != usual:
        raise pickle.UnpicklingError("a tensor does not lie in order")
    return stored[offset : offset + int(np.prod(size))].reshape(tuple(size))


def _lstm(rows: Any, weight: Any, recurrent: Any, bias: Any, more: Any) -> Any:
    """One layer over `(batch, frames, features)`: `(batch, frames, 256)`. Gates are in torch's order: i, f, g, o."""
    given = rows @ weight.T + (bias + more)
    hidden = cell = np.zeros((len(rows), HIDDEN), np.float32)
    found = np.empty((*rows.shape[:2], HIDDEN), np.float32)
    for place in range(rows.shape[1]):
        keep, forget, new, out = np.split(given[:, place] + hidden @ recurrent.T, 4, axis=1)
        cell = _sigmoid(forget) * cell + _sigmoid(keep) * np.tanh(new)
        hidden = found[:, place] = _sigmoid(out) * np.tanh(cell)
    return found


def _sigmoid(values: Any) -> Any:
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * values))


def _unit(rows: Any) -> Any:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
