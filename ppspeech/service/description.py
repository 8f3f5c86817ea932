"""What a server tells a client first: which models it has, how speech must be prepared, and what is promised.

Everything here is public. The labels are not told: the client learns the one of its word, and no other.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from ppspeech.audio import MfccConfig
from ppspeech.bundle import check_text, from_plain, read_json, to_plain, write_json
from ppspeech.errors import BundleError, WrongSessionError
from ppspeech.network.channel import canonical
from ppspeech.protocols.scores import WordShape
from ppspeech.service.names import check_name
from ppspeech.service.speaker_offer import SpeakerOffer

FORMAT = 1
LONGEST = 1 << 20
"""Bytes of a description."""
MOST_OFFERS = 64
LARGEST_BATCH = 256
MOST_BATCHES = 16
LARGEST_TRANSFORM, MOST_FILTERS = 1 << 16, 512
"""Of a front end: what a client is ready to compute."""

Mode = Literal["frames", "scan", "stream"]
"""Ways to run: a step a frame, a prefix scan for slow links, or while the user speaks."""


@dataclass(frozen=True, slots=True)
class StatisticsScale:
    """How a client turns utterance statistics into a classifier's input.

    Attributes:
        mean: of the statistics over public speech.
        std: their standard deviation, > 0.
        radius: vectors are clipped to this Euclidean norm; None leaves them.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    radius: float | None

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.std or min(self.std) <= 0:
            raise BundleError("statistics need as many deviations as means, all > 0")
        if self.radius is not None and not self.radius > 0:
            raise BundleError(f"a radius is > 0, got {self.radius}")


@dataclass(frozen=True, slots=True)
class WordOffer:
    """One model that is served.

    Attributes:
        name: of its service.
        task: in one sentence.
        type: of the model.
        shape: public sizes and structure.
        mfcc: the front end.
        statistics: where the model takes one vector an utterance; None where it takes frames.
        fingerprint: of the bundle.
        privacy: what is promised to the people it was trained on, in words.
        modes: ways to run.
        batches: how many utterances may run in lock step, ascending; one may always run alone.
        queries_left: of this client; None where they are not counted.

    Raises:
        BundleError: for parts that do not fit each other, or more than a client is ready to compute.
    """

    name: str
    task: str
    type: str
    shape: WordShape
    mfcc: MfccConfig
    statistics: StatisticsScale | None
    fingerprint: str
    privacy: str
    modes: tuple[Mode, ...]
    batches: tuple[int, ...]
    queries_left: int | None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("task", self.task)
        check_text("privacy", self.privacy)
        if not re.fullmatch("[0-9a-f]{64}", self.fingerprint):
            raise BundleError("a fingerprint is 64 hexadecimal digits")
        if not self.modes or len(set(self.modes)) < len(self.modes) or "frames" not in self.modes:
            raise BundleError(f"modes are distinct and have frames among them, got {self.modes}")
        if self.batches[:1] != (1,) or sorted(set(self.batches)) != list(self.batches):
            raise BundleError(f"batches are ascending and begin with 1, got {self.batches}")
        if self.batches[-1] > LARGEST_BATCH or len(self.batches) > MOST_BATCHES:
            raise BundleError(f"there are at most {MOST_BATCHES} batches of up to {LARGEST_BATCH} utterances")
        if self.queries_left is not None and self.queries_left < 0:
            raise BundleError(f"queries left are not negative, got {self.queries_left}")
        if self.mfcc.fft_length > LARGEST_TRANSFORM or self.mfcc.mel_filters > MOST_FILTERS:
            raise BundleError(f"a front end of {self.mfcc.fft_length} points is more than this client computes")
        expected = self.mfcc.features if self.statistics is None else 4 * self.mfcc.features
        given = self.shape.dimensions if self.statistics is None else len(self.statistics.mean)
        if self.shape.dimensions != expected or given != expected:
            raise BundleError(f"the model takes {self.shape.dimensions} numbers, the front end gives {expected}")
        if self.statistics is not None and self.shape.frames != 1:
            raise BundleError("a model of whole utterances takes one vector each")

    @property
    def agreement(self) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this model in this shape."""
        shape = hashlib.sha256(canonical(self.shape.to_params())).hexdigest()
        return {"model": self.fingerprint, "shape": shape}


@dataclass(frozen=True, slots=True)
class Description:
    """All that a server offers.

    Attributes:
        words: models that recognize words, or classes of whole utterances.
        speakers: models that tell speakers.
    """

    words: tuple[WordOffer, ...] = ()
    speakers: tuple[SpeakerOffer, ...] = ()

    def __post_init__(self) -> None:
        names = [offer.name for offer in self.words] + [offer.name for offer in self.speakers]
        if not 1 <= len(names) <= MOST_OFFERS or len(set(names)) < len(names):
            raise BundleError(f"there are 1 to {MOST_OFFERS} offers of different names, got {len(names)}")


def describe(offered: Description) -> bytes:
    """The description as JSON."""
    return write_json({"format": FORMAT, **to_plain(offered)})


def read_description(data: bytes) -> Description:
    """What a server sent, checked to the last field.

    Raises:
        WrongSessionError: for anything that `describe` does not write.
    """
    try:
        plain = read_json(data, "the description")
        if plain.pop("format", None) is not FORMAT:
            raise BundleError(f"its format is not {FORMAT}")
        return from_plain(Description, plain, "the description")
    except BundleError as refused:
        raise WrongSessionError(f"the server's description cannot be used: {refused}") from None
