"""Which word is it? The terms on which models of words, or of classes of whole utterances, are asked."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ppspeech.audio import MfccConfig
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.words import looks_ahead, why_not_garbled
from ppspeech.service.offer import TASKS, check_front_end

LARGEST_BATCH = 256
MOST_BATCHES = 16

Mode = Literal["frames", "ahead", "garbled", "stream"]
"""Ways to run: on shares, a step a frame or for several, a garbled circuit for slow links, or while the user speaks."""


@dataclass(frozen=True, slots=True)
class StatisticsScale:
    """How a client turns utterance statistics into a classifier's input.

    By mean and standard deviation (> 0) over public speech; vectors are clipped to the Euclidean norm `radius`, if any.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    radius: float | None

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.std or min(self.std) <= 0:
            raise BundleError("statistics need as many deviations as means, all > 0")
        if self.radius is not None and not self.radius > 0:
            raise BundleError(f"a radius is > 0, got {self.radius}")


@TASKS.register("words")
@dataclass(frozen=True, slots=True)
class Words:
    """One model of words. The labels are not told: the client learns the one of its word, and no other.

    Attributes:
        statistics: where the model takes one vector an utterance; None where it takes frames.
        batches: how many utterances may run in lock step, ascending; one may always run alone.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "words"

    type: str
    shape: WordShape
    mfcc: MfccConfig
    statistics: StatisticsScale | None
    modes: tuple[Mode, ...]
    batches: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.modes or len(set(self.modes)) < len(self.modes) or "frames" not in self.modes:
            raise BundleError(f"modes are distinct and have frames among them, got {self.modes}")
        if "ahead" in self.modes and not looks_ahead(self.shape):
            raise BundleError(f"words that turn back, by moves {self.shape.moves}, are not heard several frames a step")
        why = why_not_garbled(self.shape)
        if "garbled" in self.modes and why is not None:
            raise BundleError(why)
        if self.batches[:1] != (1,) or sorted(set(self.batches)) != list(self.batches):
            raise BundleError(f"batches are ascending and begin with 1, got {self.batches}")
        if self.batches[-1] > LARGEST_BATCH or len(self.batches) > MOST_BATCHES:
            raise BundleError(f"there are at most {MOST_BATCHES} batches of up to {LARGEST_BATCH} utterances")
        check_front_end(self.mfcc)
        expected = self.mfcc.features if self.statistics is None else 4 * self.mfcc.features
        given = self.shape.dimensions if self.statistics is None else len(self.statistics.mean)
        if self.shape.dimensions != expected or given != expected:
            raise BundleError(f"the model takes {self.shape.dimensions} numbers, the front end gives {expected}")
        if self.statistics is not None and self.shape.frames != 1:
            raise BundleError("a model of whole utterances takes one vector each")

    @property
    def front_end(self) -> MfccConfig:
        """What a client computes."""
        return self.mfcc

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "recognize {} clip.wav"

    @property
    def takes(self) -> str:
        """How long utterances may be."""
        longest = self.mfcc.window_s + (self.shape.frames - 1) * self.mfcc.hop_s
        return f"utterances of up to {longest:.1f} s ({self.shape.frames} frames)" if self.shape.frames > 1 else ""

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this model in this shape."""
        shape = hashlib.sha256(canonical(self.shape.to_params())).hexdigest()
        return {"model": fingerprint, "shape": shape}
