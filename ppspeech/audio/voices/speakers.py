"""The built-in speakers, and how they speak."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from ppspeech.audio.voices.espeak import SAMPLE_RATE, Espeak, Prompt
from ppspeech.errors import AudioError


@dataclass(frozen=True, slots=True)
class Style:
    """A way of speaking that any voice can take: changes to pitch and liveliness, a factor on the rate."""

    pitch: int
    pitch_range: int
    rate: float


STYLES = {"calm": Style(0, 0, 1.0), "excited": Style(16, 40, 1.2)}


@dataclass(frozen=True, slots=True)
class Voice:
    """One speaker."""

    name: str
    gender: str
    accent: str  # an English of eSpeak: `en-us`, `en-gb-scotland`,
    variant: str  # a voice quality of eSpeak: glottal source, formants, roughness
    tract: float  # factor on all frequencies, formants and pitch, as by a shorter (> 1) or longer vocal tract
    pitch: int
    pitch_range: int
    rate: int

    def prompt(self, text: str, style: str, generator: np.random.Generator) -> Prompt:
        """What to ask of eSpeak for one take: nobody says a word twice at the same pace and pitch."""
        if style not in STYLES:
            raise AudioError(f"no speaking style {style!r}: choose from {', '.join(STYLES)}")
        change = STYLES[style]
        # `shape` plays the sound faster by `tract`; asking for slower speech keeps the pace the speaker's own.
        rate = self.rate * change.rate * generator.uniform(0.93, 1.07) / self.tract
        pitch = self.pitch + change.pitch + generator.uniform(-4, 4)
        pitch_range = self.pitch_range + change.pitch_range + generator.uniform(-6, 6)
        return Prompt(text, f"{self.accent}+{self.variant}", round(rate), round(pitch), round(pitch_range))

    def shape(self, samples: NDArray[np.float32], sample_rate: int) -> NDArray[np.float64]:
        """Give what eSpeak said this speaker's vocal tract, at `sample_rate`, without the silence around it.

        scipy rather than torchaudio: its result does not depend on the number of threads, so that a corpus is the same
        to the byte wherever it is built. Samples are at eSpeak's own rate.
        """
        loud = np.flatnonzero(np.abs(samples) > 1e-3)
        if loud.size:
            samples = samples[loud[0] : loud[-1] + 1]
        ratio = Fraction(sample_rate / (SAMPLE_RATE * self.tract)).limit_denominator(500)
        up, down = ratio.numerator, ratio.denominator
        shaped: NDArray[np.float64] = scipy.signal.resample_poly(
            samples.astype(np.float64), up, down, window=_lowpass(up, down)
        )
        return shaped

    def say(
        self,
        text: str,
        espeak: Espeak,
        generator: np.random.Generator,
        *,
        style: str = "calm",
        sample_rate: int = 16000,
    ) -> NDArray[np.float64]:
        """One take of `text`, clean and without silence around it, `(samples,)`."""
        return self.shape(espeak.say(self.prompt(text, style, generator)), sample_rate)


@lru_cache(maxsize=128)
def _lowpass(up: int, down: int) -> NDArray[np.float64]:
    """The filter that `scipy.signal.resample_poly` would design anew at every call."""
    widest = max(up, down)
    taps: NDArray[np.float64] = scipy.signal.firwin(20 * widest + 1, 1 / widest, window=("kaiser", 5.0))
    return taps


# Of the hundred or so in eSpeak's data, those that differ from each other and that a recognizer trained on the
# others understands.
_VARIANTS = {
    "f": (
        *("f1", "belinda", "f3", "Andrea", "f5", "anika", "f4", "steph", "grandma", "f2", "Annie", "shelby"),
        *("linda", "aunty"),
    ),
    "m": (
        *("m1", "klatt3", "m3", "Denis", "m7", "Andy", "m8", "edward", "Gene", "m2", "Tweaky", "boris", "Jacky"),
        *("m5", "Mario", "norbert", "m4", "AnxiousAndy", "Diogo", "travis", "quincy", "Storm", "m6", "pablo"),
        *("Alex", "iven4", "Michael", "paul"),
    ),
}
_ACCENTS = (
    *("en", "en-us", "en-gb-scotland", "en-gb-x-rp", "en-029", "en-gb-x-gbcwmd", "en-us-nyc", "en-gb-x-gbclan"),
)


def _voice(gender: str, index: int) -> Voice:
    """The speaker at a place of the list.

    Multiples of an irrational number modulo 1 spread evenly whatever the length of the list, hence the odd constants;
    these also set speakers with the same variant, 14 places apart, far from each other in `tract` and `pitch`.
    """

    def spread(step: float, low: float, high: float) -> float:
        return low + (high - low) * ((index + 1) * step % 1)

    variants = _VARIANTS[gender]
    return Voice(
        name=f"{gender}{index + 1:02d}",
        gender=gender,
        accent=_ACCENTS[(3 * index + index // len(variants)) % len(_ACCENTS)],
        variant=variants[index % len(variants)],
        tract=round(spread(0.5386, 0.89, 1.11), 3),
        pitch=round(spread(0.2361, 28, 66)),
        pitch_range=round(spread(0.7339, 22, 48)),
        rate=round(spread(0.6287, 140, 195)),
    )


VOICES: tuple[Voice, ...] = tuple(_voice(gender, index) for index in range(28) for gender in "fm")
"""The speakers, women and men in turn, so that the first few are as balanced as all."""
