"""Before speakers are served: what each way to compare voices will cost and leak. `ppspeech encrypt-plan` prints it."""

from dataclasses import dataclass, replace
from typing import Any

from ppspeech.bundle import Bundle
from ppspeech.errors import BundleError, RangeError
from ppspeech.protocols.speakers import MOST_PLACES, GalleryPlan, HardenedTerms
from ppspeech.service.client.connect import MOST_BYTES
from ppspeech.service.estimate import Estimate, estimate_shared
from ppspeech.service.plan import MEETING_BYTES, ROUND_TRIPS, ModePlan
from ppspeech.service.server.speakers import SpeakerDeployment
from ppspeech.service.speaker_offer import Job, SpeakerOffer

TRANSFER_SECONDS = 3e-4
"""Of one transfer by Diffie-Hellman, both parties together."""
ROW_SECONDS = 2e-6
"""Of one row of a hardened decision table."""


@dataclass(frozen=True, slots=True)
class SpeakerPlan:
    """What whoever serves speakers should know before.

    Attributes:
        task: of the model.
        guarantee: what is promised to the people it was trained on.
        features: numbers of a template.
        places: speakers there is room for.
        modes: what may be asked, by each scoring.
        gallery_bytes: of an encrypted gallery, which a prober takes once; 0 where there can be none.
        warnings: what cannot be had with these choices, and why.
    """

    task: str
    guarantee: str
    features: int
    places: int
    modes: tuple[ModePlan, ...]
    gallery_bytes: int
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain = {name: getattr(self, name) for name in ("task", "guarantee", "features", "places", "gallery_bytes")}
        return {
            **plain,
            "meeting_bytes": MEETING_BYTES,
            "round_trips": list(ROUND_TRIPS),
            "modes": {each.mode: each.to_json() for each in self.modes},
            "warnings": list(self.warnings),
        }


def plan_speakers(bundle: Bundle, deployment: SpeakerDeployment | None = None, members: int = 0) -> SpeakerPlan:
    """What each scoring would cost and leak, whichever the deployment has chosen; nothing is encrypted for it.

    Args:
        bundle: a background model.
        deployment: sizes and recipients.
        members: of the cohort; 0 without.

    Raises:
        ModelError: if the bundle holds no background model.
        BundleError: for sizes that no scoring could have.
    """
    chosen = deployment or SpeakerDeployment()
    linear = replace(chosen, scoring="linear", stores=False).offer("plan", bundle, members)
    modes, warnings = _shared_modes(linear, "linear", ""), []
    try:
        mixtures = replace(chosen, scoring="gmm", stores=False).offer("plan", bundle, members)
        modes += _shared_modes(mixtures, "gmm", "_mixture")
        if not mixtures.identifies:
            warnings.append("mixtures have no names with a cohort: identification with them is not normed")
    except RangeError as refused:
        warnings.append(f"gmm: {refused}")
    try:
        hard = replace(chosen, scoring="hardened", decision="server", stores=False).offer("plan", bundle, 0)
        modes.append(ModePlan.of("hardened verify", _hardened(hard.hardened), "speaker_verification_hardened"))
    except BundleError as refused:
        warnings.append(f"hardened: {refused}")
    gallery = None if chosen.places > MOST_PLACES else linear.gallery
    if gallery is None:
        warnings.append(f"private galleries have up to {MOST_PLACES} places, got {chosen.places}")
    else:
        modes.append(ModePlan.of("private verify", _probe(gallery), "template_matching"))
    for each in modes:
        size = each.cost.bytes_up + each.cost.bytes_down
        if size > MOST_BYTES:
            warnings.append(f"{each.mode}: clients refuse to exchange {size / 1e6:.0f} MB: use fewer places or frames")
    return SpeakerPlan(
        task=bundle.config.task,
        guarantee=str(bundle.statement.guarantee),
        features=linear.features,
        places=chosen.places,
        modes=tuple(modes),
        gallery_bytes=0 if gallery is None else gallery.product.job.query_bytes,
        warnings=tuple(warnings),
    )


def _shared_modes(offer: SpeakerOffer, scoring: str, suffix: str) -> list[ModePlan]:
    modes = [ModePlan.of(f"{scoring} verify", _shared(offer.verification), f"speaker_verification{suffix}")]
    if offer.identifies:
        found = _shared(offer.identification)
        modes.append(ModePlan.of(f"{scoring} identify", found, f"speaker_identification{suffix}"))
    return modes


def _shared(job: Job) -> Estimate:
    """The client asks, is answered, and goes on with the work on shares."""
    return estimate_shared(job.plan.product, job.cost, ("sr" + job.cost.directions).count("sr"))


def _hardened(plan: HardenedTerms) -> Estimate:
    """No work on shares and nothing beforehand: transfers, pads and tables; the server's point, then its tables."""
    seconds = TRANSFER_SECONDS * (plan.voice_bits + plan.claim_bits) + ROW_SECONDS * plan.models * 2**plan.score_bits
    size = plan.bytes_up + plan.bytes_down
    return Estimate(plan.bytes_up, plan.bytes_down, size, 2, 0.0, seconds)


def _probe(plan: GalleryPlan) -> Estimate:
    """The prober sends the one product itself; the gallery came before."""
    found = estimate_shared(plan.product, plan.cost, ("s" + plan.cost.directions).count("sr"))
    sent, asked = plan.product.job.reply_bytes, plan.product.job.query_bytes
    return replace(
        found,
        bytes_up=found.bytes_up - asked + sent,
        bytes_down=found.bytes_down - sent,
        online_bytes=found.online_bytes - asked,
    )
