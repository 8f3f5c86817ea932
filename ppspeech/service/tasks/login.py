"""Who is there? The terms on which people log in by voice and by digits that are asked for."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from ppspeech.bundle import to_plain
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.speakers import LoginTerms
from ppspeech.service.login.ear import NUMBERS, SPEECH, VOICE, LoginSpace
from ppspeech.service.offer import TASKS

LONGEST_SECONDS = 50.0  # a message is waited for a minute


@TASKS.register("login")
@dataclass(frozen=True, slots=True)
class Login:
    """A server that people log in to. Their templates are sealed under their own keys, which open them for a check.

    Attributes:
        plan: sizes of the protocol.
        voice: the hash of the weights of the public network of voices.
        speech: that of the network of speech.
        space: where voices and digits are compared, as `LoginSpace` writes it.
        seconds: from the question to the answer.
        tries: failures in a row until a name is locked.
        enrolls: whether clients may enroll.

    Raises BundleError for networks that this version does not have, or parts that do not fit each other.
    """

    TASK: ClassVar[str] = "login"

    plan: LoginTerms
    voice: str
    speech: str
    space: tuple[float, ...]
    seconds: float
    tries: int
    enrolls: bool

    def __post_init__(self) -> None:
        if (self.voice, self.speech) != (VOICE.weights, SPEECH.weights):
            raise BundleError("the server hears through networks of other weights: use the version it was made with")
        if (self.plan.voice, self.plan.digit) != (VOICE.size, NUMBERS):
            raise BundleError(f"voices have {VOICE.size} numbers and digits {NUMBERS}, got {self.plan}")
        if not 1 <= self.seconds <= LONGEST_SECONDS or self.tries < 1:
            raise BundleError(
                f"an answer has 1 to {LONGEST_SECONDS:g} s, a name a try, got {self.seconds}, {self.tries}"
            )
        LoginSpace.load(self.space)

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "login check {} NAME --key FILE"

    @property
    def takes(self) -> str:
        """What may be said."""
        return f"{self.plan.digits} digits that it asks for, within {self.seconds:g} s"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this cohort, on these terms."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}
