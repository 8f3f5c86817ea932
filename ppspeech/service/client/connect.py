"""The client people call: `with connect("host:port", pin=…) as client: client.recognize("clip.wav").value`.

The voice is turned into features here, encrypted here, and the answer is opened here. The server sees ciphertexts,
blinded transfers and uniformly masked numbers, all of lengths that depend on public sizes alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from ppspeech.audio import Samples, Sound
from ppspeech.channel import Channel
from ppspeech.errors import ModelError, PpspeechError, WrongSessionError
from ppspeech.network import Address, ClientTls, Limits, StreamChannel
from ppspeech.network import connect as connect_channel
from ppspeech.protocols import Kind
from ppspeech.registry import Registry
from ppspeech.service.client.session import PINGS, Answer, ClientSession
from ppspeech.service.offer import DESCRIBE, HEALTH, LONGEST, NOT_NOW, Offer, choose_offer, offered_names, read_offers
from ppspeech.service.requests import NotNowError

if TYPE_CHECKING:
    from ppspeech.bundle import Bundle, Spoken
    from ppspeech.protocols.text import Tells
    from ppspeech.protocols.text import Way as TextWay
    from ppspeech.protocols.words import Told
    from ppspeech.service.client.heads import Watching
    from ppspeech.service.client.sentences import SentenceListening
    from ppspeech.service.client.spotting import Spotted
    from ppspeech.service.client.words import Listening
    from ppspeech.service.patches import PatchWord
    from ppspeech.service.requests import Way
    from ppspeech.service.seek import Keyword
    from ppspeech.service.songs import FindBy
    from ppspeech.service.tasks.sentences import Mode


OPEN = {
    "words": "words",
    "networks": "words",
    "heads": "words",
    "sentences": "sentences",
    "network_sentences": "sentences",
    "text": "text",
    "spotting": "spotting",
    "music": "music",
    "login": "login",
}
"""Tasks that are asked without a bundle, with a sound, a keyword or a pattern alone, by what is asked for."""
INSTEAD = {
    "words": "it recognizes single words, ask it with `ppspeech recognize` or `connect(…).recognize`",
    "sentences": "it writes down sentences, ask it with `ppspeech transcribe` or `connect(…).transcribe`",
    "text": "it searches a text, ask it with `ppspeech grep` or `connect(…).search`",
    "spotting": "it looks for keywords, ask it with `ppspeech spot` or `connect(…).spot`",
    "music": "it names songs, ask it with `ppspeech music find` or `connect(…).find`",
    "login": "it lets people in, ask it with `ppspeech login check` or `connect(…).log_in`",
}

QUESTIONS: Registry[Callable[["Client"], Any]] = Registry("task", "ppspeech.service.client")
"""What may be asked of a model of each task."""


@dataclass(frozen=True, slots=True)
class Door:
    """How to reach a server, and whom to trust: nobody (None) for plain TCP on a loopback address, if `insecure`."""

    address: Address
    tls: ClientTls | None
    insecure: bool = False
    limits: Limits | None = None

    def open(self, service: str, params: dict[str, Any]) -> StreamChannel:
        """Begin a session of a service."""
        return connect_channel(self.address, service, params, tls=self.tls, insecure=self.insecure, limits=self.limits)

    def hear(self, service: str) -> bytes:
        """What a service that only speaks has to say. Raises NotNowError while the server cannot count questions."""
        with self.open(service, {}) as channel:
            said = channel.receive(Kind.READY, at_most=LONGEST)
        if said == NOT_NOW:
            raise NotNowError
        return said


def open_door(
    address: str,
    *,
    pin: str | None = None,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
) -> Door:
    """A door from what people write, as `connect` explains. Raises PpspeechError for what does not fit together."""
    try:
        paths = [None if path is None else Path(path) for path in (ca, certificate, key)]
        tls = None if insecure else ClientTls(pin, *paths)
        where = Address.parse(address)
        where.check_security(tls is not None, insecure)
    except ValueError as error:
        raise PpspeechError(str(error)) from None
    return Door(where, tls, insecure, limits)


def connect(
    address: str,
    *,
    pin: str | None = None,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    insecure: bool = False,
    model: str | None = None,
    task: Literal["words", "sentences", "text", "spotting", "music", "login"] | None = None,
    fingerprint: str | None = None,
    bundle: "Bundle | str | Path | None" = None,
    keeper: str | None = None,
    keeper_pin: str | None = None,
    limits: Limits | None = None,
    keep_payloads: bool = False,
    outcome: "Told" = "client",
) -> "Client":
    """Ask a server what it offers, and be ready to use one of its models.

    Args:
        address: `host:port`.
        pin: SHA-256 fingerprint of the server's certificate, which `ppspeech serve` prints.
        ca: certificates of authorities instead, PEM.
        certificate: our own, PEM, with its private `key`, where the server asks for one.
        insecure: plain TCP, on a loopback address, to try out.
        model: which of its models; may be left out where it has one.
        task: words, sentences, text, spotting, music or login, where it has more than one of them.
        fingerprint: the bundle's, where only that very model will do.
        bundle: to ask about speakers: the background model, the same as the server's.
        keeper: `host:port` of an `enroll --private`, where the server keeps ciphertexts of its gallery.
        keeper_pin: fingerprint of the keeper's certificate; without one, `ca` is trusted.
        keep_payloads: keep the bytes of every message in the answers' transcripts.
        outcome: `server` where the server alone may learn the words, as its offer says; nothing is asked otherwise.

    Raises ProtocolError if there is nobody, or not the one we trust, or its description cannot be used; PpspeechError
    if it does not offer what is asked for.
    """
    own: dict[str, Any] = {"certificate": certificate, "key": key, "insecure": insecure, "limits": limits}
    door = open_door(address, pin=pin, ca=ca, **own)
    other = None
    if keeper is not None:
        other = open_door(keeper, pin=keeper_pin, ca=None if keeper_pin else ca, **own)
    chosen: dict[str, Any] = {"model": model, "task": task, "fingerprint": fingerprint, "outcome": outcome}
    return connect_through(door, **chosen, bundle=bundle, keeper=other, keep_payloads=keep_payloads)


def connect_through(
    door: Door,
    *,
    model: str | None = None,
    task: Literal["words", "sentences", "text", "spotting", "music", "login"] | None = None,
    fingerprint: str | None = None,
    bundle: "Bundle | str | Path | None" = None,
    keeper: Door | None = None,
    keep_payloads: bool = False,
    outcome: "Told" = "client",
) -> "Client":
    """As `connect`, through doors."""
    if bundle is None:
        if keeper is not None:
            raise PpspeechError("to probe a keeper's gallery, give the bundle that its templates were computed with")
        offer = _open_offer(door.hear(DESCRIBE), model, task)
        if fingerprint is not None and offer.fingerprint != fingerprint:
            raise WrongSessionError(f"{offer.name} is the bundle {offer.fingerprint}, not the one asked for")
        return Client(door, offer, keep_payloads=keep_payloads, outcome=outcome)
    from ppspeech.bundle import load_bundle

    loaded = load_bundle(bundle) if isinstance(bundle, str | Path) else bundle
    speakers = read_offers(door.hear(DESCRIBE), "speakers")
    if not speakers:
        raise PpspeechError("the server knows no speakers: it serves words only")
    offer = choose_offer(speakers, model)
    if loaded.fingerprint != offer.fingerprint or fingerprint not in (None, offer.fingerprint):
        ours = loaded.fingerprint if fingerprint is None else fingerprint
        raise WrongSessionError(f"{offer.name} is the bundle {offer.fingerprint}, ours is {ours}")
    store = Client(door, offer, bundle=loaded, keep_payloads=keep_payloads)
    if keeper is None:
        return store
    with store:  # nothing more is asked of it once it has given its ciphertexts
        return store.probing(keeper)


def _open_offer(said: bytes, model: str | None, task: str | None) -> Offer[Any]:
    """What is asked without a bundle, words, sentences, a text or music; no code of the others is loaded."""
    names = offered_names(said)
    known = {name: each for each in OPEN for name in names.get(each, ())}
    if not known:
        raise PpspeechError("the server recognizes no words: it serves speakers only, for whom a bundle is needed")
    fitting = [name for name, own in known.items() if task in (None, OPEN[own])]
    if not fitting:
        raise PpspeechError(f"the server does not offer {task}: {INSTEAD[OPEN[next(iter(known.values()))]]}")
    if model is None and len(fitting) > 1:
        raise PpspeechError(f"the server offers several models, choose one of {', '.join(fitting)}")
    if model is not None and model not in fitting:
        raise PpspeechError(
            f"the server does not offer {model!r}{f' for {task}' * bool(task)}, only {', '.join(fitting)}"
        )
    chosen = fitting[0] if model is None else model
    return choose_offer(read_offers(said, known[chosen]), chosen)


def server_health(door: Door) -> dict[str, Any]:
    """Status, version, and sums over all sessions. Raises ProtocolError if the server says anything else."""
    try:
        said = json.loads(door.hear(HEALTH))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise WrongSessionError("the server's health cannot be read")
    return said


class Client:
    """One model of one server. Use it as a context manager; it meets the server at the first question.

    Which questions there are depends on the model's task: words are recognized; sentences are transcribed; texts are
    searched; keywords are spotted; songs are found; people log in; speakers, with the background model's `bundle`, are
    enrolled, verified and identified; a gallery that its server cannot read is probed with `verify` by a `prober` that
    has its ciphertexts.

    Raises WrongSessionError for an offer that asks for more than a client is ready to exchange.
    """

    def __init__(
        self,
        door: Door,
        offer: Offer[Any],
        *,
        bundle: "Bundle | None" = None,
        prober: Any = None,
        keep_payloads: bool = False,
        outcome: "Told" = "client",
    ) -> None:
        self.offer = offer
        self.outcome = outcome
        self.bundle = bundle
        self.prober = prober
        self._door = door
        self._keep = keep_payloads
        self._session: ClientSession | None = None
        self._questions = QUESTIONS[offer.terms.TASK](self)

    def recognize(self, sound: Sound, rate: int | None = None) -> Answer[str | None]:
        """The word of one utterance: a waveform `(samples,)` with its rate in Hz, or a sound file.

        Raises AudioError for sound that cannot be used, RangeError for an utterance that is too short or too long
        (nothing is sent then); BudgetSpentError if the server answers no more; ProtocolError if it is gone or does not
        keep to the protocol.
        """
        return self.recognize_all([sound], rate)[0]

    def recognize_all(
        self, sounds: Sequence[Sound], rate: int | None = None, order: "Way | None" = None
    ) -> list[Answer[str | None]]:
        """The words of many utterances, in batches that share round trips; by default in the order that is sooner: on
        shares (`frames`), or in a garbled circuit (`garbled`) where a round trip is dear.
        """
        return cast("list[Answer[str | None]]", self._asked("recognize_all")(sounds, rate, order))

    def stream(self, rate: int | None = None) -> AbstractContextManager["Listening"]:
        """Recognize while the user speaks: `feed` sound, at the model's rate by default, `finish` for the word.

        `is_live` says whether frames are scored as they come. They are where the model's features do not wait for the
        end of the utterance and the server offers it; otherwise the sound is kept here until it ends.
        """
        return cast("AbstractContextManager[Listening]", self._asked("stream")(rate))

    def watch(self, rate: int | None = None) -> AbstractContextManager["Watching"]:
        """Listen to speech that goes on: `feed` sound, at the model's rate, for the word of every window, 80 ms after
        the one before. Each window is a query.

        Raises ModelError where the model hears whole utterances.
        """
        return cast("AbstractContextManager[Watching]", self._asked("watch")(rate))

    def transcribe(self, sound: Sound, rate: int | None = None) -> "Answer[list[Spoken]]":
        """The words of one recording, with their times; pauses are left out.

        Raises AudioError for sound that cannot be used, RangeError for a recording that is too short or too long
        (nothing is sent then), or in which more words are heard than the server tells; BudgetSpentError if it answers
        no more; ProtocolError if it is gone or does not keep to the protocol.
        """
        return self.transcribe_all([sound], rate)[0]

    def transcribe_all(
        self, sounds: Sequence[Sound], rate: int | None = None, mode: "Mode | None" = None
    ) -> "list[Answer[list[Spoken]]]":
        """The words of many recordings, each a question of its own; by default in the way that is sooner: on shares
        (`frames`), or in a garbled circuit (`garbled`) where a round trip is dear.
        """
        return cast("list[Answer[list[Spoken]]]", self._asked("transcribe_all")(sounds, rate, mode))

    def listen(self, rate: int | None = None) -> AbstractContextManager["SentenceListening"]:
        """Write down a sentence while it is spoken: `feed` sound, at the model's rate by default, `finish` for words.

        `is_live` says whether frames are scored as they come. They are where the model's features do not wait for the
        end of the sentence and the server offers it; otherwise the sound is kept here until it ends.
        """
        return cast("AbstractContextManager[SentenceListening]", self._asked("listen")(rate))

    def spot(
        self, keyword: "Keyword", rate: int | None = None, threshold: float | None = None, *, average: bool = False
    ) -> "Answer[list[Spotted]]":
        """Where our keyword is said in the server's recordings, all in one question: in which, and when; no scores.

        The keyword is an example or several takes (files, or waveforms of one rate), or names of units of the archive
        (`client.offer.terms.names`), such as `"s eh v ax n"`; with `...` between words anything may lie there.
        `threshold`: nats above everything else from which it counts as said, with `average` a frame.

        Raises AudioError or RangeError for an example that cannot be used, ModelError for an unknown name (nothing is
        sent then); BudgetSpentError if the server answers no more; ProtocolError if it is gone or does not keep to the
        protocol.
        """
        return cast("Answer[list[Spotted]]", self._asked("spot")(keyword, rate, threshold, average=average))

    def spot_patches(self, word: "PatchWord") -> "Answer[list[Spotted]]":
        """Where a word by patches of its spectrogram (`ppspeech patches`) is said in the server's recordings; each page
        of its archive is a query.

        Raises RangeError for a size of a word that the archive does not take, and as `spot` does.
        """
        return cast("Answer[list[Spotted]]", self._asked("spot_patches")(word))

    def spot_in(self, sounds: Sequence[Sound], rate: int | None = None) -> "Answer[list[Spotted]]":
        """Where the server's keywords are said in our recordings, all in one question, each recording a query.

        Raises as `spot` does.
        """
        return cast("Answer[list[Spotted]]", self._asked("spot_in")(sounds, rate))

    def find(self, sound: Sound, rate: int | None = None, by: "FindBy | None" = None) -> Answer[str | None]:
        """The name of the song that a clip is of, None where it is none of the server's; by fingerprints, landmarks or
        shapes, by default the first of these that is offered.

        Raises AudioError for a clip that is too short, silent, or cannot be used (nothing is sent then);
        BudgetSpentError if the server answers no more; ProtocolError if it is gone or does not keep to the protocol.
        """
        return self.find_all([sound], rate, by)[0]

    def find_all(
        self, sounds: Sequence[Sound], rate: int | None = None, by: "FindBy | None" = None
    ) -> list[Answer[str | None]]:
        """The songs of many clips, each a question of its own."""
        return cast("list[Answer[str | None]]", self._asked("find_all")(sounds, rate, by))

    def search(self, pattern: str, tells: "Tells | None" = None, way: "TextWay | None" = None) -> Answer[Any]:
        """Where a text matches a regular expression of ours: whether it does (`found`), on how many lines (`count`), on
        which (`lines`), or where matches begin (`places`), from 0; by default all that the server tells.

        Raises PpspeechError for a pattern that cannot be read or is too large, or an answer that is not offered
        (nothing is sent then); BudgetSpentError if the server answers no more; ProtocolError if it is gone.
        """
        return cast("Answer[Any]", self._asked("search")(pattern, tells, way))

    def enroll(self, name: str, sounds: Sequence[Sound], rate: int | None = None) -> int:
        """The place of a new speaker. The server gets the template, no sound; PpspeechError if it does not enroll."""
        return cast("int", self._asked("enroll")(name, sounds, rate))

    def verify(self, claimed: int, sounds: Sequence[Sound], rate: int | None = None) -> Answer[bool | None]:
        """Is this the speaker of a place? The server does not learn which was claimed, nor does a keeper.

        Raises RangeError for a place that is not there (nothing is sent then); BudgetSpentError if the server, or
        keeper, answers no more; ProtocolError if it is gone, or has another key than the gallery's.
        """
        return cast("Answer[bool | None]", self._asked("verify")(claimed, sounds, rate))

    def identify(self, sounds: Sequence[Sound], rate: int | None = None) -> Answer[str | None]:
        """Who of the enrolled speakers is this, if any? Raises ModelError if the server answers no such question."""
        return cast("Answer[str | None]", self._asked("identify")(sounds, rate))

    def join(self, name: str, key: bytes, clips: Mapping[int, Sequence[Sound]], rate: int | None = None) -> None:
        """Enroll for log-ins, with clips of every digit, under a key that stays here: the server gets a template that
        it cannot open. Raises AudioError for clips that cannot be used; PpspeechError if the server does not enroll.
        """
        self._asked("join")(name, key, clips, rate)

    def log_in(self, name: str, key: bytes, say: "Callable[[tuple[int, ...]], Samples]") -> Answer[bool]:
        """Log in by the digits that the server asks for: `say` is called with them and gives what was said, at 16 kHz,
        with pauses. Whether we are in; the server learns that and the name, and opens our template for this once.

        Raises AudioError if not as many words are heard; `NameLockedError` after too many failures; BudgetSpentError if
        the server answers no more; ProtocolError if it is gone or does not keep to the protocol.
        """
        return cast("Answer[bool]", self._asked("log_in")(name, key, say))

    def publish(self, gallery: str, sealed: Any) -> None:
        """Have the server keep an `EncryptedGallery`, in place of ours of that name; PpspeechError if it does not."""
        self._asked("publish")(gallery, sealed)

    def fetch(self, gallery: str) -> Any:
        """A gallery that someone has published, an `EncryptedGallery`. Raises PpspeechError if it is not kept here."""
        return self._asked("fetch")(gallery)

    def probing(self, keeper: Door) -> "Client":
        """The client of a gallery whose key someone else keeps and whose ciphertexts this server has.

        Raises ProtocolError if the keeper is not there or not trusted, or does not mean the same gallery; PpspeechError
        if the server has no such gallery.
        """
        return cast("Client", self._asked("probing")(keeper, self._keep))

    @property
    def queries_left(self) -> int | None:
        """Of this client's budget, as the server said last; None where it does not count."""
        return self.offer.queries_left if self._session is None else self._session.queries_left

    def session(self, meet: Callable[[Channel], Any], pings: int = PINGS, told: int = 0) -> ClientSession:
        """The session with the server, met as its task says; a new one where the last has ended.

        `told`: bits that the server will be told of what we decrypt, which may be bits of our key. One that cannot lose
        so many more is left with its session.
        """
        if told and self._session is not None:
            from ppspeech.crypto.lattice import LatticeParameters

            if self._session.told + told > LatticeParameters().leakable_bits:
                self.close()
        if self._session is None or not self._session.is_alive:
            self._session = ClientSession(
                self._door.open(self.offer.name, self.offer.agreement), meet, pings, self._keep
            )
        self._session.told += told
        return self._session

    def close(self) -> None:
        """Leave the server."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asked(self, question: str) -> Any:
        found = getattr(self._questions, question, None)
        if found is None:
            raise ModelError(f"{self.offer.name} does not {question}: it is offered for {self.offer.terms.TASK}")
        return found
