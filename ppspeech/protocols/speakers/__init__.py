"""Who speaks."""

from ppspeech.protocols.speakers import speaker_mixture_verification, speaker_verification
from ppspeech.protocols.speakers.hardened import HardenedPlan, HardenedScorer, judge_as_server, prove_as_client
from ppspeech.protocols.speakers.names import Answer
from ppspeech.protocols.speakers.speaker_identification import (
    Enrolled,
    Identification,
    identify_as_client,
    identify_as_server,
    name_best,
)
from ppspeech.protocols.speakers.speaker_mixture_identification import (
    UNLIKELY,
    EnrolledMixtures,
    MixtureIdentification,
    identify_mixture_as_client,
    identify_mixture_as_server,
)
from ppspeech.protocols.speakers.speaker_mixture_verification import (
    MixtureVerification,
    ratios,
    ratios_cost,
    verify_mixture_as_client,
    verify_mixture_as_server,
)
from ppspeech.protocols.speakers.speaker_verification import (
    Verification,
    server_scores,
    verify_as_client,
    verify_as_server,
)
from ppspeech.protocols.speakers.templates import MOST_PLACES, EncryptedGallery, GalleryPlan, Keeper, Prober

__all__ = [
    "MOST_PLACES",
    "UNLIKELY",
    "Answer",
    "EncryptedGallery",
    "Enrolled",
    "EnrolledMixtures",
    "GalleryPlan",
    "HardenedPlan",
    "HardenedScorer",
    "Identification",
    "Keeper",
    "MixtureIdentification",
    "MixtureVerification",
    "Prober",
    "Verification",
    "identify_as_client",
    "identify_as_server",
    "identify_mixture_as_client",
    "identify_mixture_as_server",
    "judge_as_server",
    "name_best",
    "prove_as_client",
    "ratios",
    "ratios_cost",
    "server_scores",
    "speaker_mixture_verification",
    "speaker_verification",
    "verify_as_client",
    "verify_as_server",
    "verify_mixture_as_client",
    "verify_mixture_as_server",
]
