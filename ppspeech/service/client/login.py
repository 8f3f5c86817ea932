"""The client of a log-in: the voice stays here, and so does the key until somebody logs in."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import ModelError, PpspeechError, WrongSessionError
from ppspeech.protocols import Kind
from ppspeech.protocols.speakers import log_in_as_client
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.login.ear import RATE, LoginEar, LoginSpace
from ppspeech.service.login.seal import Template, seal
from ppspeech.service.requests import Ask, Request, receive_ready, send_name
from ppspeech.service.store import KEY_BYTES
from ppspeech.service.tasks.login import Login
from ppspeech.service.tasks.speakers import check_speaker


class NameLockedError(PpspeechError):
    """The server lets nobody in by this name for a while: it has failed too often."""


@QUESTIONS.register("login")
class AskLogin:
    """What may be asked of a server that people log in to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Login = client.offer.terms

    @cached_property
    def _space(self) -> LoginSpace:
        return LoginSpace.load(self._terms.space)

    @cached_property
    def ear(self) -> LoginEar:
        """What hears, loaded at first use; a program that logs several people in may put its own here."""
        return LoginEar(self._space)

    def join(self, name: str, key: bytes, clips: Mapping[int, Sequence[Sound]], rate: int | None = None) -> None:
        """Enroll by clips of every digit; the server gets a template that it cannot open."""
        if not self._terms.enrolls:
            raise ModelError(f"{self._client.offer.name} enrolls nobody: its server was started with --no-enroll")
        check_speaker(name)
        sealed = seal(_checked(key), name, self._space.digest, Template(*self.ear.template(clips, rate)))
        with self._client.session(_meet).asking(Request(Ask.ENROLL)) as record:
            send_name(record, name)
            record.send(Kind.GALLERY, sealed)
            done, _ = receive_ready(record)
        if not done:
            raise PpspeechError(f"{name!r} was not enrolled: the name is taken, or there is no room")

    def log_in(self, name: str, key: bytes, say: Callable[[tuple[int, ...]], Samples]) -> Answer[bool]:
        """Log in: `say` is called with the digits, and gives what was said, at 16 kHz."""
        check_speaker(name)
        self.ear.warm()
        session, clock = self._client.session(_meet), Clock()

        def answer(asked: tuple[int, ...]) -> tuple[Reals, Reals]:
            clock.is_prepared()
            said = say(asked)
            clock.is_asked()
            return self.ear.answer(said, RATE, self._terms.plan.digits)

        with session.asking(Request(Ask.LOGIN)) as record:
            send_name(record, name)
            record.send(Kind.SEAL_KEY, _checked(key))
            free, seconds = receive_ready(record)
            if free:
                log_in_as_client(record, session.met, self._terms.plan, answer)
                accepted, _ = receive_ready(record)
        if not free:
            if seconds is None:
                raise WrongSessionError("the server locks a name and does not say for how long")
            raise NameLockedError(
                f"{name} has failed {self._terms.tries} times or more in a row: the server lets nobody in by this name "
                f"for {seconds} s"
            )
        return clock.answers([accepted], record)[0]


def _meet(channel: Channel) -> PairSetup:
    return PairSetup.agree(channel, Side.SECOND)


def _checked(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise ModelError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
    return key
