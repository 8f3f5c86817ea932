"""Which word is it, by a network? The terms on which networks on frames are asked."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from ppspeech.audio import MfccConfig
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.networks import NetworkShape
from ppspeech.service.offer import TASKS, check_front_end


@TASKS.register("networks")
@dataclass(frozen=True, slots=True)
class Networks:
    """One network. Its layers' sizes are told, and powers of two that hold their values; no label is.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "networks"

    type: str
    shape: NetworkShape
    mfcc: MfccConfig

    def __post_init__(self) -> None:
        check_front_end(self.mfcc)
        if self.shape.output != "word":
            raise BundleError(f"one word is told of an utterance, got {self.shape.output}")
        if self.shape.dimensions != self.mfcc.features:
            raise BundleError(
                f"the network takes {self.shape.dimensions} numbers, the front end gives {self.mfcc.features}"
            )

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
        return f"utterances of up to {longest:.1f} s ({self.shape.frames} frames)"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this network in this shape."""
        shape = hashlib.sha256(canonical(self.shape.to_params())).hexdigest()
        return {"model": fingerprint, "shape": shape}
