"""What a device hears at a log-in: a voice, and what it says, as directions. All of it is public, and is done here.

    voice    GE2E's 256 numbers, less what the cohort's voices have in common
    digit    pooled speech embeddings, as nine numbers by which digits differ most (linear discriminants of the digits
             of the built-in voices, whitened)

What is compared with is how the person said the digits when enrolled, so that it need not be English.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound, samples_at
from ppspeech.audio.embeddings import EmbeddingConfig, LightVoice, Pooling, SpeechDetector, Stretch, WordVectors
from ppspeech.errors import AudioError, BundleError
from ppspeech.protocols.speakers import TEN

RATE = 16_000
PARTS = 2  # that the embeddings of a digit are averaged in
NUMBERS = TEN - 1  # of a digit: as many as tell ten apart
PAUSE_S, AROUND_S = 0.2, 0.1  # between digits, at least; and of what is around one, at most
BETWEEN_S, END_S = 0.4, 0.3  # between clips that are joined, and the silence after which somebody has said all
LONGEST_S = 20.0
LOUD, QUIETEST = 0.5, 1e-3  # what the peak of an answer is brought to, and a peak that is not brought up: nobody speaks
VOICE = EmbeddingConfig("voice")
SPEECH = EmbeddingConfig("speech", pooling=Pooling(parts=PARTS))
LARGEST = 1e6  # no number of a space comes near it


@dataclass(frozen=True, eq=False)
class LoginSpace:
    """Where voices and digits are compared; all of it is told to clients.

    Attributes:
        center: what voices have in common, `(256,)`.
        mean: of public digits, `(192,)`.
        projection: to what tells digits apart, `(192, 9)`.

    Raises BundleError for other shapes, or numbers that cannot be.
    """

    center: Reals
    mean: Reals
    projection: Reals

    def __post_init__(self) -> None:
        shapes = self.center.shape, self.mean.shape, self.projection.shape
        if shapes != ((VOICE.size,), (SPEECH.features,), (SPEECH.features, NUMBERS)):
            raise BundleError(f"a space of voices and digits has other sizes than {shapes}")
        if not all((np.abs(each) <= LARGEST).all() for each in (self.center, self.mean, self.projection)):
            raise BundleError("a space of voices and digits has finite numbers")

    def dump(self) -> tuple[float, ...]:
        """All numbers, to seven digits."""
        numbers = np.concatenate([self.center, self.mean, self.projection.reshape(-1)])
        return tuple(float(f"{each:.7g}") for each in numbers.tolist())

    @classmethod
    def load(cls, numbers: Sequence[float]) -> "LoginSpace":
        """What `dump` gave. Raises BundleError for anything else."""
        if len(numbers) != VOICE.size + SPEECH.features * (1 + NUMBERS):
            raise BundleError(f"a space of voices and digits has another size than {len(numbers)}")
        center, mean, projection = np.split(np.array(numbers), [VOICE.size, VOICE.size + SPEECH.features])
        return cls(center, mean, projection.reshape(-1, NUMBERS))

    @cached_property
    def digest(self) -> str:
        """Names the space, and the networks that it is of: 64 hexadecimal digits."""
        return hashlib.sha256(f"{VOICE.weights} {SPEECH.weights} {self.dump()}".encode()).hexdigest()

    def voices(self, embeddings: Reals) -> Reals:
        """Directions of voice embeddings `(count, 256)`."""
        return _unit(embeddings - self.center)

    def digits(self, vectors: Reals) -> Reals:
        """Directions of pooled speech embeddings `(count, 192)`: `(count, 9)`."""
        return _unit((vectors - self.mean) @ self.projection)


class LoginEar:
    """The networks, loaded once. Raises MissingPackageError or AudioError without their weights."""

    def __init__(self, space: LoginSpace) -> None:
        self.space = space
        self._words = WordVectors(SPEECH)
        self._detector = SpeechDetector()

    @cached_property
    def _voice(self) -> Callable[[Samples], Reals]:
        """Torch's where it is installed, or else numpy's, which says the same and is slower."""
        if find_spec("torch") is None:
            return LightVoice()
        import torch

        from ppspeech.audio.embeddings import VoiceEmbedding

        network = VoiceEmbedding(VOICE)

        def voice(samples: Samples) -> Reals:
            with torch.inference_mode():
                found: Reals = network(torch.from_numpy(samples)).double().numpy()[0]
            return found

        return voice

    def warm(self) -> None:
        """Load what is loaded at first use, before somebody speaks."""
        self.voice([np.sin(np.arange(RATE, dtype=np.float32))])

    def voice(self, clips: Sequence[Samples]) -> Reals:
        """The direction of what one person said, `(256,)`, from samples at 16 kHz."""
        direction: Reals = self.space.voices(self._voice(np.concatenate(clips))[None])[0]
        return direction

    def digit(self, clip: Samples) -> Reals:
        """The direction of what was said, `(9,)`."""
        direction: Reals = self.space.digits(self._words.of(clip, RATE)[None])[0]
        return direction

    def template(self, clips: Mapping[int, Sequence[Sound]], rate: int | None = None) -> tuple[Reals, Reals]:
        """A person's voice `(256,)` and ten digits `(10, 9)`, from clips of one digit each.

        Raises AudioError for a digit without a clip, or sound that cannot be used.
        """
        missing = [digit for digit in range(TEN) if not clips.get(digit)]
        if missing:
            raise AudioError(
                f"a log-in needs all ten digits in the person's voice, there is no clip of {missing[0]}: name clips "
                "after what is said, 0.wav, 1.wav or 7_again.wav"
            )
        heard = {digit: [samples_at(each, rate, RATE) for each in clips[digit]] for digit in range(TEN)}
        digits = _unit(np.stack([np.mean([self.digit(each) for each in own], axis=0) for own in heard.values()]))
        return self.voice([each for own in heard.values() for each in own]), digits

    def answer(self, sound: Sound, rate: int | None, count: int) -> tuple[Reals, Reals]:
        """A voice `(256,)` and the digits that it says `(count, 9)`, with pauses. AudioError for more or fewer."""
        pieces = self.pieces(samples_at(sound, rate, RATE), count)
        return self.voice(pieces), np.stack([self.digit(each) for each in pieces])

    def pieces(self, samples: Samples, count: int) -> list[Samples]:
        """What is said, cut where nobody speaks. Raises AudioError unless there are `count` pieces."""
        if len(samples) > LONGEST_S * RATE:
            raise AudioError(f"an answer takes up to {LONGEST_S:g} s, got {len(samples) / RATE:.1f} s")
        peak = float(np.abs(samples).max(initial=0.0))
        spoken = _with_pauses(self._detector.stretches(samples * np.float32(LOUD / max(peak, QUIETEST))))
        if len(spoken) != count:
            raise AudioError(
                f"{len(spoken)} words were heard where {count} digits were asked for: say each of them, with a short "
                f"pause (a third of a second) between them and nothing else"
            )
        ends = [0.0, *[(a.end + b.start) / 2 for a, b in pairwise(spoken)], len(samples) / RATE]
        cut = []
        for each, low, high in zip(spoken, ends[:-1], ends[1:], strict=True):
            start, end = max(low, each.start - AROUND_S), min(high, each.end + AROUND_S)
            cut.append(samples[round(start * RATE) : round(end * RATE)])
        return cut


def until_said(chunks: Iterable[Samples], count: int) -> Iterator[Samples]:
    """Chunks of sound at 16 kHz as they come, until so many words were said and a pause has followed the last."""
    detector, heard = SpeechDetector(), list[float]()
    for chunk in chunks:
        yield chunk
        heard += detector.feed(chunk).tolist()
        said, silence = _words_so_far(heard)
        if said >= count and silence >= END_S:
            return


def digit_of(path: Path) -> int:
    """Which digit a clip is of, by its name: `7.wav`, `7_again.wav`. Raises AudioError for another name."""
    found = re.match(r"([0-9])(?![0-9])", path.name)
    if found is None:
        raise AudioError(f"a clip of a digit is named after it, such as 7.wav or 7_again.wav, got {path}")
    return int(found[1])


def digit_clips(paths: Iterable[Path]) -> dict[int, list[Path]]:
    """Clips by the digit that they are of; those of a folder where one is given."""
    found: dict[int, list[Path]] = {}
    for path in paths:
        inside = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        for each in inside:
            found.setdefault(digit_of(each), []).append(each)
    return found


def joined(clips: Sequence[Samples]) -> Samples:
    """Clips at 16 kHz as one recording, with pauses in a quiet room between them and around."""
    generator = np.random.default_rng(0)
    level = 1e-3 * max((float(np.abs(each).max(initial=0.0)) for each in clips), default=0.0)
    quiet = (level * generator.standard_normal(round(BETWEEN_S * RATE))).astype(np.float32)
    return np.concatenate([quiet, *[part for each in clips for part in (each.astype(np.float32), quiet)]])


def _with_pauses(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Stretches of speech with a pause between them: a shorter one is within a word, as in six."""
    found: list[Stretch] = []
    for each in stretches:
        if found and each.start - found[-1].end < PAUSE_S:
            found[-1] = Stretch(found[-1].start, each.end)
        else:
            found.append(each)
    return found


def _words_so_far(probabilities: Sequence[float], step: float = 0.032) -> tuple[int, float]:
    """How many words were said, and how long it has been silent."""
    said, silence = 0, np.inf
    for each in probabilities:
        if each >= 0.5:
            said += silence >= PAUSE_S
            silence = 0.0
        else:
            silence += step
    return said, silence


def _unit(vectors: Reals) -> Reals:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: Reals = vectors / np.maximum(lengths, 1e-12)
    return found
