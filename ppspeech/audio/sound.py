"""Sound as arrays: files that are read, rates that are changed, and what speech lacks for a model.

Nothing here needs torch: this is what a client hears with.
"""

import math
import re
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import soundfile
from numpy.typing import ArrayLike, NDArray

from ppspeech.arrays import Reals
from ppspeech.errors import AudioError, SpeechWarning

if TYPE_CHECKING:
    from torch import Tensor

Sound: TypeAlias = Union["Tensor", Reals, str, Path]
"""A waveform `(samples,)`, or a sound file."""
Samples: TypeAlias = NDArray[np.float32]

CUT = re.compile(r"(?:data|SSND)\s*: (\d+) \(should be (\d+)\)")  # how libsndfile tells of a file that ends too soon
UNKNOWN = 2**31 - 2**16  # what programs that write to a pipe say that a file will hold, at least
LOST = 0.01  # the share that may lack without a word: some programs count their own headers
CROSSINGS, ROLL_OFF = 6, 0.99  # of a resampling kernel: zeros on each side, and the part of the band that passes
AT_ONCE = 1 << 15  # samples that are resampled together: memory


def read_samples(path: str | Path) -> tuple[Samples, int]:
    """A sound file as one channel in [-1, 1], `(samples,)`, and its rate in Hz.

    Any format that libsndfile reads (WAV, FLAC, OGG, ...); channels are averaged. Raises AudioError if the file is
    missing, unreadable, empty or cut short, or holds samples that are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise AudioError(f"no sound file at {path}")
    try:
        with soundfile.SoundFile(path) as file:
            samples, rate = file.read(dtype="float32", always_2d=True), int(file.samplerate)
            lost = _lost(file, len(samples))
    except soundfile.LibsndfileError as unreadable:
        why = unreadable.error_string or "damaged, or cut short"
        raise AudioError(f"{path} is not a readable sound file: {why}") from None
    if not len(samples):
        raise AudioError(f"{path} is empty: it holds no samples")
    if lost > LOST:
        raise AudioError(
            f"{path} is cut short: {lost:.0%} of what its header tells of are missing; copy it again, or save what is "
            "left as a new file"
        )
    if not np.isfinite(samples).all():
        bad = int((~np.isfinite(samples)).any(axis=1).argmax())
        raise AudioError(f"{path} has a sample that is NaN or infinite, first at {bad / rate:.3f} s")
    return samples.mean(axis=1, dtype=np.float32), rate


def _lost(file: Any, read: int) -> float:
    """The share of an open file's samples that its header tells of and that are not there."""
    for told, there in CUT.findall(file.extra_info):
        if int(there) < int(told) < UNKNOWN:
            return 1 - int(there) / int(told)
    guessed = file.format == "MP3"  # which has no count of its samples
    return 0.0 if guessed or not file.frames else 1 - read / file.frames


def missing_band(rate: int, wanted: int) -> str | None:
    """What speech recorded at `rate` lacks for a model that listens at `wanted`, in Hz; None where it lacks nothing.

    Resampling cannot bring back what was not recorded. Raises AudioError below half of what is wanted, where a model
    would guess.

    >>> missing_band(44_100, 16_000), missing_band(8_000, 16_000)
    (None, 'recorded at 8,000 Hz, it has nothing above 4,000 Hz, and the model listens up to 8,000 Hz')
    """
    if rate >= wanted:
        return None
    there, heard = f"{rate // 2:,} Hz", f"{wanted // 2:,} Hz"
    lacks = f"recorded at {rate:,} Hz, it has nothing above {there}, and the model listens up to {heard}"
    if 2 * rate < wanted:
        raise AudioError(f"{lacks}: record at {wanted:,} Hz, or train a model for {rate:,} Hz")
    return lacks


def samples_at(sound: Sound, rate: int | None, wanted: int) -> Samples:
    """One channel `(samples,)` at the wanted rate; a waveform needs its `rate` in Hz, a file knows its own.

    Warns by SpeechWarning of speech that lacks part of the band that is wanted; `missing_band` refuses worse.
    """
    if isinstance(sound, str | Path):
        if rate is not None:
            raise AudioError(f"{sound} knows its own rate: give one with a waveform only")
        samples, rate = read_samples(sound)
    else:
        given = _array(sound)
        if rate is None or rate < 1:
            raise AudioError(f"a waveform needs its rate in Hz, got {rate}")
        if given.ndim != 1 or not given.size or given.dtype.kind != "f":
            raise AudioError(f"a waveform is real of shape (samples,), got {given.dtype} of {given.shape}")
        samples = given.astype(np.float32, copy=False)
    lacks = missing_band(rate, wanted)
    if lacks is not None:
        name = f"{sound}: " if isinstance(sound, str | Path) else ""
        warnings.warn(f"{name}{lacks}: expect more errors", SpeechWarning, stacklevel=2)
    return resampled(samples, rate, wanted)


def one_channel(samples: "Tensor | ArrayLike") -> Samples:
    """Samples of one channel, `(samples,)`, in float32. Raises AudioError for anything else."""
    given = _array(samples)
    if given.ndim != 1 or given.dtype.kind != "f" or not np.isfinite(given).all():
        raise AudioError(f"samples are finite, real and of shape (samples,), got {given.dtype} of {given.shape}")
    return given.astype(np.float32, copy=False)


def spoken_part(samples: Samples, rate: int, below_db: float = 24.0, around_s: float = 0.025) -> Samples:
    """Samples `(samples,)` without the silence before and after: from where their power, over `around_s`, comes within
    `below_db` of the greatest for the first time, to where it is for the last, and `around_s` on both sides.

    >>> len(spoken_part(np.repeat(np.float32([0, 1, 0]), [900, 400, 700]), 1_000))
    473
    """
    around = max(1, round(around_s * rate))
    power = np.pad(samples.astype(np.float64) ** 2, (around // 2, around - 1 - around // 2))
    sums = np.concatenate(([0.0], power.cumsum()))
    means = (sums[around:] - sums[:-around]) / around
    loud = np.flatnonzero(means > means.max() * 10 ** (-below_db / 10))
    return samples[max(0, loud[0] - around) : loud[-1] + around] if len(loud) else samples


def resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    """Samples at another rate, by a windowed sinc: what torchaudio's `resample` computes, to rounding.

        y(j) = s sum_i x(i) sinc(t) cos²(π t / 12),    t = b (i / rate - j / wanted), |t| <= 6,    s = b / rate,

    where b is 0.99 of the smaller rate. Which t there are depends on j modulo `wanted` alone.

    >>> len(resampled(np.zeros(441, np.float32), 44_100, 16_000))
    160
    """
    if rate == wanted:
        return samples
    common = math.gcd(rate, wanted)
    rate, wanted = rate // common, wanted // common
    kernels, reach = _kernels(rate, wanted)
    padded = np.pad(samples.astype(np.float64), (reach, reach + 1))
    count = -(-len(samples) * wanted // rate)
    found = np.empty(count, np.float32)
    for start in range(0, count, AT_ONCE):
        places = np.arange(start, min(start + AT_ONCE, count), dtype=np.int64)
        first, phase = np.divmod(places * rate, wanted)
        around = padded[first[:, None] + np.arange(2 * reach + 2)]
        found[places] = np.einsum("jk,jk->j", around, kernels[phase])
    return found


@lru_cache(maxsize=8)
def _kernels(rate: int, wanted: int) -> tuple[Reals, int]:
    """For every place of an output between two inputs, `(wanted, 2 reach + 2)`, and how far it reaches."""
    band = ROLL_OFF * min(rate, wanted)
    reach = math.ceil(CROSSINGS * rate / band)
    offsets = np.arange(-reach, reach + 2)[None, :] - np.arange(wanted)[:, None] / wanted
    t = np.clip(offsets * band / rate, -CROSSINGS, CROSSINGS)
    return band / rate * np.sinc(t) * np.cos(np.pi * t / (2 * CROSSINGS)) ** 2, reach


def _array(given: "Tensor | ArrayLike") -> NDArray[Any]:
    """An array of a tensor too, wherever it is."""
    return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
