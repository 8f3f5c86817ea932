"""The server's side of log-ins: it asks for digits, opens one sealed template for one check, and forgets it."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppspeech.bundle import FALSE_ACCEPT, Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import BundleError
from ppspeech.protocols import Kind
from ppspeech.protocols.speakers import SECONDS, TEN, LoginPerson, LoginTerms, log_in_as_server
from ppspeech.service.login.accounts import ACCOUNTS, LOCKED_SECONDS, TRIES, Accounts
from ppspeech.service.login.digits import kept_digits, space_of
from ppspeech.service.login.ear import NUMBERS, SPEECH, VOICE, LoginSpace
from ppspeech.service.login.seal import Template, open_sealed, seal, sealed_bytes
from ppspeech.service.login.thresholds import VoiceThresholds
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request, receive_name, send_ready
from ppspeech.service.server.book import FIELDS, Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.server.stores import note
from ppspeech.service.store import KEY_BYTES, PostgresStore
from ppspeech.service.tasks.login import Login

logger = logging.getLogger(__name__)

DIGIT_COSINE = 0.6
"""That a digit must have with how the person said it at enrollment: between right and wrong digits of the people of
FSDD, about as many of which are on the wrong side of it.
"""
USUAL_LOGINS = 10_000  # of one client, with right keys and wrong ones


@dataclass(frozen=True, slots=True)
class LoginDeployment:
    """What whoever serves log-ins chooses; all of it is public but the thresholds.

    Attributes:
        false_accept: voices of strangers who say the digits pass at this rate (`VoiceThresholds`), among the cohort of
            the bundle; they must also have said the right digits.
        digits: how many are asked for.
        seconds: from the question to the answer.
        tries: failures in a row until a name is locked.
        locked_seconds: for how long.
        enrolls: whether clients may enroll; whoever is let in may then do so.
    """

    false_accept: float = FALSE_ACCEPT
    digits: int = 4
    seconds: float = SECONDS
    tries: int = TRIES
    locked_seconds: float = LOCKED_SECONDS
    enrolls: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.false_accept < 1:
            raise BundleError(f"a false-accept rate is within 0 and 1, got {self.false_accept}")


@dataclass(frozen=True, eq=False)
class ServedLogin:
    """Everything a session needs; made before the server forks, and shared by all sessions."""

    offer: Offer[Login]
    space: str
    accounts: Accounts
    rule: VoiceThresholds
    seconds: float
    noted: Path
    unknown: bytes

    @classmethod
    def of(
        cls,
        name: str,
        bundle: Bundle,
        folder: Path,
        deployment: LoginDeployment | None = None,
        space: LoginSpace | None = None,
        store: PostgresStore | None = None,
    ) -> "ServedLogin":
        """Serve log-ins among the cohort of a bundle, with accounts in a folder, or in a database that servers share.
        `space`: instead of the folder's.

        Raises BundleError for a bundle of another kind or without a cohort, or choices that cannot be.
        """
        chosen = deployment or LoginDeployment()
        usual, voices, owners = space_of(
            bundle, kept_digits(folder, store) if space is None else (space.mean, space.projection)
        )
        plan = LoginTerms(VOICE.size, NUMBERS, chosen.digits)
        terms = Login(plan, VOICE.weights, SPEECH.weights, usual.dump(), chosen.seconds, chosen.tries, chosen.enrolls)
        offer = Offer(
            name,
            "Lets people in by their voice and by digits that it asks for. The name that is claimed is told to it; the "
            "template is sealed under the person's own key, which opens it for one check. Strangers like its cohort "
            f"who say the digits pass the voice's part at a rate of {chosen.false_accept:g}.",
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=terms,
        )
        accounts = Accounts(store or folder / ACCOUNTS, usual.digest, chosen.tries, chosen.locked_seconds)
        rule = VoiceThresholds.among(voices, owners, chosen.false_accept)
        nobody = Template(np.eye(VOICE.size)[0], np.eye(TEN, NUMBERS) + np.eye(TEN, NUMBERS, -9))
        unknown = seal(os.urandom(KEY_BYTES), "", usual.digest, nobody)
        return cls(offer, usual.digest, accounts, rule, chosen.seconds, folder / "logins.jsonl", unknown)

    @property
    def usual_budget(self) -> int:
        """Attempts of one client."""
        return USUAL_LOGINS

    def person(self, template: Template) -> LoginPerson:
        """What is checked for somebody whose template was opened."""
        least = [self.rule.least(template.voice), *[DIGIT_COSINE] * TEN]
        return LoginPerson.of(self.offer.terms.plan, template.voice, template.digits, least)

    def meet(self, channel: Channel, visitor: Visitor) -> Mapping[Ask, Handler]:
        """Agree on transfers with one client; it may log in, and enroll where that is offered."""
        setup = PairSetup.agree(channel, Side.FIRST)
        handlers = {Ask.LOGIN: Handler(lambda record, _: self._log_in(record, setup, visitor))}
        if self.offer.terms.enrolls:
            handlers[Ask.ENROLL] = Handler(self._enroll, is_query=False)
        return handlers

    def _enroll(self, channel: Channel, _: Request) -> None:
        """Keep what cannot be opened here."""
        name = receive_name(channel)
        sealed = channel.receive(Kind.GALLERY, sealed_bytes(self.offer.terms.plan))
        send_ready(channel, self.accounts.enroll(name, sealed), None)

    def _log_in(self, channel: Channel, setup: PairSetup, visitor: Visitor) -> None:
        """Ask and check. Whoever has no account, or not its key, is asked and refused like anybody: only who has the
        key is told that the name is locked.
        """
        name = receive_name(channel)
        key = channel.receive(Kind.SEAL_KEY, KEY_BYTES)
        sealed, plan = self.accounts.sealed(name), self.offer.terms.plan
        template = open_sealed(key, name, self.space, self.unknown if sealed is None else sealed, plan)
        locked = 0 if template is None else self.accounts.begin(name)
        send_ready(channel, not locked, locked)
        if locked:
            logger.info("a locked name", extra={FIELDS: {"session": visitor.session}})
            return
        person = LoginPerson.nobody(plan) if template is None else self.person(template)
        accepted = log_in_as_server(channel, setup, person, self.seconds)
        if template is not None:
            if accepted:
                self.accounts.succeeded(name)
            note(self.noted, {"session": visitor.session, "name": name, "accepted": accepted})  # not in the log
        logger.info("log-in decided", extra={FIELDS: {"session": visitor.session, "accepted": accepted}})
        send_ready(channel, accepted, None)
