"""Which words, and when? The terms on which models of sentences are asked.

What is public of an utterance is its length in steps: it is padded to a multiple of `STEP` frames.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

from ppspeech.audio import MfccConfig
from ppspeech.bundle import to_plain
from ppspeech.errors import BundleError, RangeError
from ppspeech.network.channel import canonical
from ppspeech.protocols.sentences import SentenceShape, fits_garbled
from ppspeech.service.offer import MOST_BYTES, TASKS, check_front_end

STEP = 32
"""Utterances are padded to a multiple of so many frames, and that multiple is public."""
LONGEST_SECONDS = 10.0  # of a sentence, unless whoever serves says otherwise
WORD_FRAMES = 8  # of a word or pause, on average: more of them in an utterance are an error

Mode = Literal["frames", "garbled"]
"""Ways to run: a step a frame on shares, or a garbled circuit for links where a round trip is dear."""


MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class SentenceDeployment:
    """What whoever serves a model of sentences chooses; all of it is public.

    Attributes:
        frames: of the longest utterance, rounded up to steps of 32; by default those of ten seconds.
        bits: of the shares; by default as many as its scores need for certain. Fewer are refused.
    """

    frames: int | None = None
    bits: int | None = None

    def frames_of(self, mfcc: MfccConfig) -> int:
        """Of the longest utterance, in whole steps."""
        wanted = LONGEST_SECONDS / mfcc.hop_s if self.frames is None else self.frames
        return math.ceil(wanted / STEP) * STEP


@TASKS.register("sentences")
@dataclass(frozen=True, slots=True)
class Sentences:
    """One model of sentences. The words that may be heard are told, and the graph without its weights.

    Attributes:
        shape: of the longest utterance.
        step: frames that utterances are padded to a multiple of.
        streams: whether the server listens while somebody speaks.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "sentences"

    type: str
    shape: SentenceShape
    mfcc: MfccConfig
    step: int
    modes: tuple[Mode, ...]
    streams: bool = False

    def __post_init__(self) -> None:
        if not self.modes or len(set(self.modes)) < len(self.modes) or "frames" not in self.modes:
            raise BundleError(f"modes are distinct and have frames among them, got {self.modes}")
        if self.step < 1 or self.shape.frames % self.step:
            raise BundleError(f"utterances have whole steps, got one of {self.step} in {self.shape.frames} frames")
        if self.shape.most_words != most_words(self.shape.frames):
            raise BundleError(f"in {self.shape.frames} frames are {most_words(self.shape.frames)} words at the most")
        if self.shape.dimensions != self.mfcc.features:
            raise BundleError(
                f"the model takes {self.shape.dimensions} numbers, the front end gives {self.mfcc.features}"
            )
        check_front_end(self.mfcc)

    @property
    def steps(self) -> range:
        """The lengths that may be asked for."""
        return range(-(-self.shape.shortest // self.step), self.shape.frames // self.step + 1)

    def steps_of(self, frames: int) -> int:
        """What an utterance of so many frames is padded to. Raises RangeError if it is too short or too long."""
        shape = self.shape
        if not shape.shortest <= frames <= shape.frames:
            raise RangeError(
                f"a sentence lasts {self.seconds(shape.shortest):.2f} to {self.seconds(shape.frames):.1f} s here "
                f"({shape.shortest} to {shape.frames} frames), got {self.seconds(frames):.2f} s: "
                + (
                    "record more"
                    if frames < shape.shortest
                    else "cut it at a pause, or have it served with more --frames"
                )
            )
        return -(-frames // self.step)

    def seconds(self, frames: int) -> float:
        """What so many frames last."""
        return self.mfcc.window_s + (frames - 1) * self.mfcc.hop_s

    def shape_of(self, steps: int) -> SentenceShape:
        """The shape of utterances of so many steps, which must be among them."""
        return shape_at_length(self.shape, steps * self.step)

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "transcribe {} clip.wav"

    @property
    def takes(self) -> str:
        """How long utterances may be."""
        return f"utterances of up to {self.seconds(self.shape.frames):.1f} s ({self.shape.frames} frames)"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this model, in this shape and way."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}


def modes_of(shape: SentenceShape) -> tuple[Mode, ...]:
    """The ways that the longest utterance fits: a circuit's tables, which a client holds while it waits for the voice,
    are no more than it is ready to exchange.
    """
    return MODES if fits_garbled(shape, MOST_BYTES) else ("frames",)


def most_words(frames: int) -> int:
    """Words and pauses of an utterance that a client may be told."""
    return 2 + -(-frames // WORD_FRAMES)


@lru_cache(maxsize=256)
def shape_at_length(shape: SentenceShape, frames: int) -> SentenceShape:
    """The same for utterances of up to so many frames, not more than those it was made for. What follows from it is
    kept with it. Raises RangeError for more, or fewer than the shortest has.
    """
    if not shape.shortest <= frames <= shape.frames:
        raise RangeError(f"utterances have {shape.shortest} to {shape.frames} frames here, got {frames}")
    network = shape.network and replace(shape.network, frames=frames + shape.network.span[0] - 1)
    return replace(shape, frames=frames, most_words=most_words(frames), network=network)
