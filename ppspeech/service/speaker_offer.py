"""What a server tells of a speaker service, and what both parties derive from it."""

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from ppspeech.bundle import check_text, to_plain
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.scores import LinearPlan, MixturePlan
from ppspeech.protocols.speakers import (
    MOST_PLACES,
    GalleryPlan,
    HardenedTerms,
    Identification,
    Verification,
)
from ppspeech.service.names import LONGEST_NAME, MOST_SPEAKERS, check_name

Scoring = Literal["linear", "gmm", "hardened"]
"""Cosines of supervectors; likelihood ratios of mixtures; cosines that an active client cannot bend."""
Side = Literal["client", "server"]

Job = Verification | Identification
"""What may be asked on shares."""

REACH, NORMED_REACH = 3, 7
"""Cosines less a threshold, and what stands for an empty place, stay within ±8; normed ones within ±128."""
MOST_FEATURES = 20_000
MOST_FRAMES = 4096
MOST_COHORT = 64
MOST_TABLE_BYTES = 48 * 2**20
"""Of a hardened verification: one message, and what a client is ready to take for one bit."""
CLIPPED = 8.0
"""Numbers of a unit vector are clipped to so many times their average size in a hardened verification."""


@dataclass(frozen=True, slots=True)
class SpeakerOffer:
    """One background model, with speakers enrolled from it.

    Attributes:
        name: of its service.
        task: in one sentence.
        fingerprint: of the bundle; clients compute templates with the same.
        privacy: what is promised to the people it was trained on, in words.
        features: numbers of a template.
        places: enrolled speakers, and empty places that look the same.
        scoring: how a voice is compared.
        normed: whether scores are normed by a cohort.
        cohort: how many members T-norm compares with; 0 without.
        mixture: sizes and scales, for `gmm`.
        decision: who learns whether a claim is accepted.
        names: who learns whose voice it is.
        enrolls: whether speakers may be enrolled.
        stores: whether galleries encrypted under other people's keys are kept, and given to whoever asks.
        queries_left: of this client; None where they are not counted.

    Raises:
        BundleError: for parts that do not fit each other, or more than a client is ready to compute.
    """

    name: str
    task: str
    fingerprint: str
    privacy: str
    features: int
    places: int
    scoring: Scoring
    normed: bool
    cohort: int
    mixture: MixturePlan | None
    decision: Side
    names: Side
    enrolls: bool
    stores: bool
    queries_left: int | None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("task", self.task)
        check_text("privacy", self.privacy)
        if not re.fullmatch("[0-9a-f]{64}", self.fingerprint):
            raise BundleError("a fingerprint is 64 hexadecimal digits")
        if not 1 <= self.features <= MOST_FEATURES or not 1 <= self.places <= MOST_SPEAKERS:
            raise BundleError(f"an offer of {self.places} places and {self.features} numbers cannot be used")
        if not 0 <= self.cohort <= MOST_COHORT or (self.cohort and not self.normed):
            raise BundleError(f"a cohort has up to {MOST_COHORT} members and norms the scores, got {self.cohort}")
        if self.queries_left is not None and self.queries_left < 0:
            raise BundleError(f"queries left are not negative, got {self.queries_left}")
        if self.stores and self.places > MOST_PLACES:
            raise BundleError(f"encrypted galleries have up to {MOST_PLACES} places, got {self.places}")
        if (self.mixture is not None) != (self.scoring == "gmm"):
            raise BundleError("sizes of mixtures are told where mixtures are scored, and nowhere else")
        if self.mixture is not None:
            self._check_mixture(self.mixture)
        if self.scoring == "hardened":
            if self.normed or self.decision != "server":
                raise BundleError("a hardened verification has no norm, and its decision is the server's")
            if self.hardened.bytes_down > MOST_TABLE_BYTES:
                raise BundleError(
                    f"a hardened verification among {self.places} places would send "
                    f"{self.hardened.bytes_down / 2**20:.0f} MiB, more than {MOST_TABLE_BYTES >> 20}: use fewer places"
                )

    def _check_mixture(self, plan: MixturePlan) -> None:
        if plan.dimensions * plan.components != self.features:
            raise BundleError(f"{plan.components} means of {plan.dimensions} numbers are not {self.features} numbers")
        if (plan.models, plan.cohort) != (self.places, self.cohort) or plan.frames > MOST_FRAMES:
            raise BundleError(f"mixtures of {plan} are not those of {self.places} places and a cohort of {self.cohort}")

    @property
    def identifies(self) -> bool:
        """Whether it can be asked for a name: not where claims must withstand an active client, who could bend the
        name, nor with normed mixtures, for which there is no protocol.
        """
        return self.scoring == "linear" or (self.scoring == "gmm" and not self.normed)

    @property
    def plan(self) -> LinearPlan:
        """Sizes and scales of both linear protocols."""
        return LinearPlan(self.features, self.places, self.cohort, reach=NORMED_REACH if self.normed else REACH)

    @property
    def hardened(self) -> HardenedTerms:
        """Sizes and levels of the hardened verification."""
        limit = min(1.0, CLIPPED / math.sqrt(self.features))
        reach = math.ceil(math.log2(limit * math.sqrt(self.features) + 2))  # any levels, less any threshold
        return HardenedTerms(self.features, self.places, limit, level_bits=5, score_bits=16, reach=reach)

    @property
    def verification(self) -> Verification:
        """Is it the speaker of a place?"""
        return Verification(self.mixture or self.plan, self.decision)

    @property
    def identification(self) -> Identification:
        """Who is it?"""
        return Identification(self.mixture or self.plan, self.names, LONGEST_NAME)

    @property
    def gallery(self) -> GalleryPlan:
        """Sizes of an encrypted gallery, as the server that keeps it knows them."""
        return GalleryPlan(self.features, self.places)

    @property
    def agreement(self) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this model, scored in this way."""
        plain = to_plain(self)
        for said in ("name", "task", "privacy", "queries_left"):
            del plain[said]
        return {"model": self.fingerprint, "terms": hashlib.sha256(canonical(plain)).hexdigest()}


def job_bytes(job: Job) -> int:
    """Payload of one question, offline and online, both ways."""
    return job.plan.product.total_bytes + job.cost.total_bytes
