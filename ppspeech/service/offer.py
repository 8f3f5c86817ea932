"""What a server tells a client first: which models it has, what each is for, and on what terms it is asked.

Everything here is public. Offers are told by task; the terms of a task are known to its own module alone
(`ppspeech.service.tasks`), so that a client of words reads a server that also tells speakers without their code.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ppspeech.audio import MfccConfig
from ppspeech.bundle import check_text, from_plain, read_json, to_plain
from ppspeech.errors import BundleError, PpspeechError, WrongSessionError
from ppspeech.network.channel import NAME
from ppspeech.registry import Registry

FORMAT = 1
LONGEST = 1 << 20  # bytes of a description
MOST_OFFERS = 64
MOST_BYTES = 256 * 2**20  # what a client is ready to exchange for one question: an offer that asks for more is refused
LARGEST_TRANSFORM, MOST_FILTERS = 1 << 16, 512  # of a front end: what a client is ready to compute

DESCRIBE = "describe"  # the service that says what is offered, to whoever asks
NOT_NOW = b'{"not_now":true}'  # what is said instead, while the server cannot count questions
HEALTH = "health"  # the service that says whether the server is well, for whoever watches it


class Terms(Protocol):
    """What both parties must know of a model to run a task: a frozen dataclass of plain values that checks itself."""

    TASK: ClassVar[str]

    @property
    def asked(self) -> str:
        """How it is asked from the command line, after `ppspeech`; `{}` stands for the address."""
        ...

    @property
    def takes(self) -> str:
        """What may be asked about, in words; nothing where there is nothing to say."""
        ...

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this bundle, on these terms."""
        ...


TASKS: Registry[type[Terms]] = Registry("task", "ppspeech.service.tasks", error=BundleError)
"""The terms of each task, by its name in a description."""

OfTask = TypeVar("OfTask", bound=Terms, covariant=True)


@dataclass(frozen=True, slots=True)
class _Told:
    """What every offer says: its task in one sentence, and what is promised to the people it was trained on.

    `queries_left` are this client's; None where they are not counted.
    """

    name: str
    task: str
    fingerprint: str
    privacy: str
    queries_left: int | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("task", self.task)
        check_text("privacy", self.privacy)
        if not re.fullmatch("[0-9a-f]{64}", self.fingerprint):
            raise BundleError("a fingerprint is 64 hexadecimal digits")
        if self.queries_left is not None and self.queries_left < 0:
            raise BundleError(f"queries left are not negative, got {self.queries_left}")


@dataclass(frozen=True, slots=True)
class Offer(_Told, Generic[OfTask]):
    """One model that is served, on the terms of its task. Raises BundleError for parts that cannot be."""

    terms: OfTask

    @property
    def agreement(self) -> dict[str, Any]:
        """Public parameters of a session."""
        return self.terms.agreement(self.fingerprint)

    def left(self, queries: int | None) -> "Offer[OfTask]":
        """The same, for a client with so many queries left."""
        return replace(self, queries_left=queries)


_GENERAL = frozenset(_Told.__dataclass_fields__)


def describe(offers: Iterable[Offer[Any]]) -> bytes:
    """Offers as JSON, by task. Raises BundleError for no offer, too many, two of one name, or more than is read."""
    told: dict[str, list[dict[str, Any]]] = {}
    for offer in offers:
        plain = to_plain(offer)
        told.setdefault(offer.terms.TASK, []).append(plain | plain.pop("terms"))
    _check_names([plain["name"] for told_of in told.values() for plain in told_of])
    said = json.dumps({"format": FORMAT, **told}, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(said) > LONGEST:
        raise BundleError(
            f"a description has at most {LONGEST:,} bytes, got {len(said):,}: serve fewer, smaller models"
        )
    return said


def read_offers(data: bytes, task: str) -> tuple[Offer[Any], ...]:
    """A server's offers for one task, checked to the last field, and others' names. Raises WrongSessionError."""
    try:
        return tuple(_read(each, task) for each in _read_told(data).get(task, []))
    except BundleError as refused:
        raise WrongSessionError(f"the server's description cannot be used: {refused}") from None


def offered_names(data: bytes) -> dict[str, list[str]]:
    """The names of a server's offers by task, nothing else read. Raises WrongSessionError."""
    try:
        told = _read_told(data)
    except BundleError as refused:
        raise WrongSessionError(f"the server's description cannot be used: {refused}") from None
    return {task: [str(each["name"]) for each in offers] for task, offers in told.items()}


def choose_offer(offers: tuple[Offer[OfTask], ...], model: str | None) -> Offer[OfTask]:
    """The offer of this name, or the only one. Raises PpspeechError if there is none, or several and no name."""
    names = ", ".join(offer.name for offer in offers)
    if model is None and len(offers) > 1:
        raise PpspeechError(f"the server offers several models, choose one of {names}")
    for offer in offers:
        if model in (None, offer.name):
            return offer
    raise PpspeechError(f"the server does not offer {model!r}, only {names}")


def check_front_end(mfcc: MfccConfig) -> None:
    """Refuse, with a BundleError, a front end that is more than a client is ready to compute."""
    if mfcc.fft_length > LARGEST_TRANSFORM or mfcc.mel_filters > MOST_FILTERS:
        raise BundleError(f"a front end of {mfcc.fft_length} points is more than this client computes")


def check_name(name: str) -> str:
    """Refuse, with a BundleError, what is no name of a service: up to 64 lower-case letters, digits and `_.-`."""
    if not NAME.fullmatch(name):
        raise BundleError(f"a service is named by up to 64 of a-z, 0-9, '_', '.', '-', got {name!r:.80}")
    return name


def _read_told(data: bytes) -> dict[str, list[dict[str, Any]]]:
    plain = read_json(data, "the description")
    if plain.pop("format", None) is not FORMAT:
        raise BundleError(f"its format is not {FORMAT}")
    if not all(isinstance(told, list) and all(isinstance(each, dict) for each in told) for told in plain.values()):
        raise BundleError("offers are a list for each task")
    _check_names([each.get("name") for told in plain.values() for each in told])
    return plain


def _read(plain: dict[str, Any], task: str) -> Offer[Any]:
    general = {name: value for name, value in plain.items() if name in _GENERAL}
    terms = {name: value for name, value in plain.items() if name not in _GENERAL}
    told = from_plain(_Told, general, "an offer")
    return Offer(**asdict(told), terms=from_plain(TASKS[task], terms, "an offer"))


def _check_names(names: list[Any]) -> None:
    if not 1 <= len(names) <= MOST_OFFERS or len(set(map(str, names))) < len(names):
        raise BundleError(f"there are 1 to {MOST_OFFERS} offers of different names, got {len(names)}")
