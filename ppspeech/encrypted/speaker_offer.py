"""What a server tells of a speaker service, and what both parties derive from it."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from ppspeech.bundle.strict_json import check_text
from ppspeech.encrypted.gallery import LONGEST_NAME
from ppspeech.encrypted.service_names import check_name
from ppspeech.errors import BundleError
from ppspeech.protocols.speaker_identification import Identification
from ppspeech.protocols.speaker_linear import LinearPlan
from ppspeech.protocols.speaker_verification import Verification

REACH = 3
"""Cosines less a threshold, and what stands for an empty place, stay within ±8."""
MOST_FEATURES = 20_000


@dataclass(frozen=True, slots=True)
class SpeakerOffer:
    """One background model, with speakers enrolled from it.

    Attributes:
        name: of its service.
        task: in one sentence.
        fingerprint: of the bundle; clients compute embeddings with the same.
        privacy: what is promised to the people it was trained on, in words.
        features: numbers of an embedding.
        places: enrolled speakers, and empty places that look the same.
        decision: who learns whether a claim is accepted.
        enrols: whether speakers may be enrolled.
        queries_left: of this client; None where they are not counted.
    """

    name: str
    task: str
    fingerprint: str
    privacy: str
    features: int
    places: int
    decision: Literal["client", "server"]
    enrols: bool
    queries_left: int | None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("task", self.task)
        check_text("privacy", self.privacy)
        if not re.fullmatch("[0-9a-f]{64}", self.fingerprint):
            raise BundleError("a fingerprint is 64 hexadecimal digits")
        if not 1 <= self.features <= MOST_FEATURES or not 1 <= self.places <= 10_000:
            raise BundleError(f"an offer of {self.places} places and {self.features} numbers cannot be used")
        if self.queries_left is not None and self.queries_left < 0:
            raise BundleError(f"queries left are not negative, got {self.queries_left}")

    @property
    def plan(self) -> LinearPlan:
        """Sizes and scales of both protocols."""
        return LinearPlan(self.features, self.places, reach=REACH)

    @property
    def verification(self) -> Verification:
        """Is it the speaker of a place?"""
        return Verification(self.plan, self.decision)

    @property
    def identification(self) -> Identification:
        """Who is it? The name goes to the client."""
        return Identification(self.plan, "client", LONGEST_NAME)

    @property
    def agreement(self) -> dict[str, Any]:
        """Public parameters of a session."""
        return {
            "model": self.fingerprint,
            "features": self.features,
            "places": self.places,
            "decision": self.decision,
        }
