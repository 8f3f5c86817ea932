"""Which words, by a network that is read greedily? The terms on which it is asked.

What is public of an utterance is its length in steps: it is padded to a multiple of `step` frames.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.bundle import to_plain
from ppspeech.errors import BundleError, RangeError
from ppspeech.network.channel import canonical
from ppspeech.protocols.networks import NetworkShape
from ppspeech.service.offer import TASKS, check_front_end


@TASKS.register("network_sentences")
@dataclass(frozen=True, slots=True)
class NetworkSentences:
    """One network that is read greedily. Its layers' sizes are told, and powers of two that hold their values; no word
    is. What is public of an utterance is its length in steps.

    Attributes:
        shape: of the longest utterance, with the zeros on both sides of it.
        step: frames that utterances are padded to a multiple of.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "network_sentences"

    type: str
    shape: NetworkShape
    mfcc: MfccConfig
    step: int

    def __post_init__(self) -> None:
        check_front_end(self.mfcc)
        if self.shape.output != "labels":
            raise BundleError(f"labels of frames are told of a sentence, got {self.shape.output}")
        if self.shape.dimensions != self.mfcc.features:
            raise BundleError(
                f"the network takes {self.shape.dimensions} numbers, the front end gives {self.mfcc.features}"
            )
        span, stride = self.shape.span
        if span < stride or self.step < 1 or self.step % stride or self.frames < 1 or self.frames % self.step:
            raise BundleError(
                f"utterances have whole steps, and steps whole strides, got a step of {self.step} and strides of "
                f"{stride} in {self.frames} frames"
            )

    @property
    def frames(self) -> int:
        """Of the longest utterance."""
        span, stride = self.shape.span
        return self.shape.frames - (span - stride)

    @property
    def steps(self) -> range:
        """The lengths that may be asked for."""
        return range(1, self.frames // self.step + 1)

    def steps_of(self, frames: int) -> int:
        """What an utterance of so many frames is padded to. Raises RangeError if it is empty or too long."""
        if not 1 <= frames <= self.frames:
            raise RangeError(
                f"a sentence lasts up to {self.seconds(self.frames):.1f} s here ({self.frames} frames), got "
                f"{self.seconds(frames):.2f} s: cut it at a pause, or have it served with more --frames"
            )
        return -(-frames // self.step)

    def seconds(self, frames: int) -> float:
        """What so many frames last."""
        return self.mfcc.window_s + (frames - 1) * self.mfcc.hop_s

    def shape_of(self, steps: int) -> NetworkShape:
        """The shape of utterances of so many steps, which must be among them."""
        span, stride = self.shape.span
        return _at_length(self.shape, steps * self.step + span - stride)

    def with_zeros(self, frames: Reals) -> Reals:
        """An utterance `(frames, features)` after the zeros that come before it; those after it are the shape's."""
        span, stride = self.shape.span
        return np.concatenate((np.zeros(((span - stride) // 2, frames.shape[1])), frames))

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "transcribe {} clip.wav"

    @property
    def takes(self) -> str:
        """How long utterances may be."""
        return f"utterances of up to {self.seconds(self.frames):.1f} s ({self.frames} frames)"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this network, in this shape and these steps."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}


@lru_cache(maxsize=256)
def _at_length(shape: NetworkShape, frames: int) -> NetworkShape:
    """What follows from it is kept with it."""
    return replace(shape, frames=frames)
