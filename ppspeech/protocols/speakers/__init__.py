"""Who speaks: verified or identified, by linear scores or mixtures; against cheats; sealed galleries; log-in."""

from ppspeech.protocols.speakers.codes import cosines_of, voice_codes
from ppspeech.protocols.speakers.gallery import MOST_PLACES, PROBES_A_KEY, EncryptedGallery, GalleryPlan, Keeper, Prober
from ppspeech.protocols.speakers.hardened import (
    MOST_BITS,
    HardenedScorer,
    HardenedTerms,
    judge_as_server,
    prove_as_client,
)
from ppspeech.protocols.speakers.identify import (
    UNLIKELY,
    Arranged,
    Identification,
    Identity,
    arrange_columns,
    arrange_mixtures,
    identify_as_client,
    identify_as_server,
    name_best,
)
from ppspeech.protocols.speakers.login import (
    SECONDS,
    TEN,
    LoginPerson,
    LoginTerms,
    log_in_as_client,
    log_in_as_server,
)
from ppspeech.protocols.speakers.verify import Verification, decide, verify_as_client, verify_as_server

__all__ = [
    "MOST_BITS",
    "MOST_PLACES",
    "PROBES_A_KEY",
    "SECONDS",
    "TEN",
    "UNLIKELY",
    "Arranged",
    "EncryptedGallery",
    "GalleryPlan",
    "HardenedScorer",
    "HardenedTerms",
    "Identification",
    "Identity",
    "Keeper",
    "LoginPerson",
    "LoginTerms",
    "Prober",
    "Verification",
    "arrange_columns",
    "arrange_mixtures",
    "cosines_of",
    "decide",
    "identify_as_client",
    "identify_as_server",
    "judge_as_server",
    "log_in_as_client",
    "log_in_as_server",
    "name_best",
    "prove_as_client",
    "verify_as_client",
    "verify_as_server",
    "voice_codes",
]
