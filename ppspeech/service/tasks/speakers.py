"""Who speaks? The terms on which a background model and the speakers enrolled from it are asked.

A gallery's templates are with the server in the clear (`Speakers`), or with a keeper while a server holds ciphertexts
(`Galleries`).
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.bundle import to_plain
from ppspeech.errors import BundleError, ModelError, RangeError
from ppspeech.network.channel import canonical
from ppspeech.protocols.scores import LinearPlan, MixturePlan
from ppspeech.protocols.speakers import (
    MOST_PLACES,
    MOST_SLOTS,
    CrowdTerms,
    GalleryPlan,
    HardenedTerms,
    Identification,
    Verification,
    claim_cost,
    name_cost,
)
from ppspeech.service.offer import TASKS
from ppspeech.service.requests import LONGEST_NAME

Scoring = Literal["linear", "gmm", "hardened", "crowd"]
"""Cosines of supervectors; likelihood ratios of mixtures; agreement of codes, which an active client cannot bend;
cosines among up to a million people.
"""
Side = Literal["client", "server"]

Job = Verification | Identification  # what may be asked on shares

REACH, NORMED_REACH = 3, 7
"""Cosines less a threshold, and what stands for an empty place, stay within ±8; normed ones within ±128."""
MOST_SPEAKERS = 10_000  # enrolled with one model, unless it is a crowd
MOST_CROWD = MOST_SLOTS - 1
MOST_FEATURES = 20_000
MOST_FRAMES = 4096
MOST_COHORT = 64


@TASKS.register("speakers")
@dataclass(frozen=True, slots=True)
class Speakers:
    """One background model, with speakers enrolled from it; clients compute templates with the same bundle.

    Attributes:
        places: enrolled speakers, and empty places that look the same.
        normed: whether scores are normed by a cohort.
        cohort: how many members T-norm compares with; 0 without.
        mixture: sizes and scales, for `gmm`.
        frames: as many of a trial are used for a direction, where thresholds are for so much speech; 0 for all.
        decision: who learns whether a claim is accepted.
        names: who learns whose voice it is.
        stores: whether galleries encrypted under other people's keys are kept, and given to whoever asks.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "speakers"

    features: int
    places: int
    scoring: Scoring
    normed: bool
    cohort: int
    mixture: MixturePlan | None
    frames: int
    decision: Side
    names: Side
    enrolls: bool
    stores: bool

    def __post_init__(self) -> None:
        most = MOST_CROWD if self.scoring == "crowd" else MOST_SPEAKERS
        if not 1 <= self.features <= MOST_FEATURES or not 1 <= self.places <= most:
            raise BundleError(f"an offer of {self.places} places and {self.features} numbers cannot be used")
        if not 0 <= self.frames <= MOST_FRAMES:
            raise BundleError(f"trials have up to {MOST_FRAMES} frames, got {self.frames}")
        if not 0 <= self.cohort <= MOST_COHORT or (self.cohort and not self.normed):
            raise BundleError(f"a cohort has up to {MOST_COHORT} members and norms the scores, got {self.cohort}")
        if self.stores and self.places > MOST_PLACES:
            raise BundleError(f"encrypted galleries have up to {MOST_PLACES} places, got {self.places}")
        if (self.mixture is not None) != (self.scoring == "gmm"):
            raise BundleError("sizes of mixtures are told where mixtures are scored, and nowhere else")
        plan = self.mixture
        if plan is not None and plan.dimensions * plan.components != self.features:
            raise BundleError(f"{plan.components} means of {plan.dimensions} numbers are not {self.features} numbers")
        sizes = self.places, self.cohort
        if plan is not None and ((plan.models, plan.cohort) != sizes or plan.frames > MOST_FRAMES):
            raise BundleError(f"mixtures of {plan} are not those of {self.places} places and a cohort of {self.cohort}")
        if self.scoring == "crowd":
            if self.normed or self.stores:
                raise BundleError("a crowd has no norm, and keeps no galleries of others: leave out cohort or store")
            try:
                self.crowd  # noqa: B018 - refuses sizes that cannot be
            except ModelError as refused:
                raise BundleError(str(refused)) from None
        if self.scoring == "hardened" and (self.normed or self.decision != "server"):
            raise BundleError(
                "a hardened verification has no norm, and its decision is the server's: leave out the threshold, so "
                "that the cohort gives everybody's, or take scoring=linear if clients follow the protocol"
            )

    @property
    def identifies(self) -> bool:
        """Whether it can be asked for a name: not where claims must withstand an active client, who could bend the
        name, nor with normed mixtures, for which there is no protocol.
        """
        return self.scoring in ("linear", "crowd") or (self.scoring == "gmm" and not self.normed)

    @property
    def plan(self) -> LinearPlan:
        """Sizes and scales of both linear protocols."""
        return LinearPlan(self.features, self.places, self.cohort, reach=NORMED_REACH if self.normed else REACH)

    @property
    def crowd(self) -> CrowdTerms:
        """Sizes of both protocols of a crowd."""
        return CrowdTerms(self.features, self.places, self.names, LONGEST_NAME)

    @property
    def hardened(self) -> HardenedTerms:
        """Sizes of the hardened verification."""
        return HardenedTerms.usual(self.features, self.places)

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
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "verify BUNDLE clip.wav --claim PLACE --server {}"

    @property
    def takes(self) -> str:
        """What may be claimed."""
        return "voices, for a claimed place"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this model, scored in this way."""
        plain = to_plain(self) | {"fingerprint": fingerprint}
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(plain)).hexdigest()}


@TASKS.register("gallery")
@dataclass(frozen=True, slots=True)
class Galleries:
    """One gallery whose key a keeper holds and whose ciphertexts a store keeps.

    `decision`: who learns of a match. `frames`: as many of a trial are used, 0 for all.

    `digest`: SHA-256 of key and ciphertexts, in hexadecimal digits: what the store gives must be what was published.
    Raises BundleError for sizes or a digest that cannot be; RangeError for a name that cannot be.
    """

    TASK: ClassVar[str] = "gallery"

    gallery: str
    features: int
    places: int
    decision: Literal["keeper", "prober"]
    digest: str
    frames: int

    def __post_init__(self) -> None:
        check_speaker(self.gallery)
        if not 0 <= self.frames <= MOST_FRAMES:
            raise BundleError(f"trials have up to {MOST_FRAMES} frames, got {self.frames}")
        if not re.fullmatch("[0-9a-f]{64}", self.digest):
            raise BundleError("a digest is 64 hexadecimal digits")
        self.plan  # noqa: B018 - refuses sizes that cannot be

    @property
    def plan(self) -> GalleryPlan:
        """Sizes and recipient."""
        return GalleryPlan(self.features, self.places, self.decision)

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "verify BUNDLE clip.wav --claim PLACE --server {}"

    @property
    def takes(self) -> str:
        """What may be claimed."""
        return ""

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session."""
        return to_plain(self) | {"fingerprint": fingerprint}


def check_speaker(name: str) -> str:
    """Refuse, with a RangeError, a speaker's or gallery's name that is not printable or not of 1 to 21 bytes."""
    if not name.strip() or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        raise RangeError(f"a name is printable and has 1 to {LONGEST_NAME} bytes, got {name!r:.40}")
    return name


def claim_bytes(terms: Speakers) -> int:
    """Payload of one claim, offline and online, both ways; 0 where it is hardened, whose terms bound it."""
    if terms.scoring == "crowd":
        return terms.crowd.product_bytes + claim_cost(terms.crowd, terms.decision).total_bytes
    return 0 if terms.scoring == "hardened" else job_bytes(terms.verification)


def name_bytes(terms: Speakers) -> int:
    """Payload of one question for a name."""
    if terms.scoring == "crowd":
        return terms.crowd.product_bytes + name_cost(terms.crowd).total_bytes
    return job_bytes(terms.identification)


def job_bytes(job: Job) -> int:
    """Payload of one question, offline and online, both ways."""
    return job.plan.product.total_bytes + job.cost.total_bytes


def trial_frames(plan: MixturePlan, frames: Reals) -> Reals:
    """A trial as the plan takes it: evenly spread frames of a longer one, each no longer than the public bound."""
    if len(frames) > plan.frames:
        frames = frames[np.linspace(0, len(frames) - 1, plan.frames).round().astype(int)]
    lengths = np.linalg.norm(frames, axis=1, keepdims=True)
    bounded: Reals = frames * np.minimum(1.0, plan.norm * (1 - 1e-9) / np.maximum(lengths, 1e-9))
    return bounded
