"""Who of the enrolled speakers is this, if anyone? The answer is a name; how many are enrolled stays with the server.

    1. offline        the server puts its models, and dummies that score below all, in a random order; both prepare
                      transfers
    2. client, server the encrypted voice times all models and cohort: shares of all scores
    3. client, server a tournament: shares of the best score and its name
    4. client, server the decision on the best score (`norm`); a rejected name becomes nobody's
    5. the named party gets the name: client, server, or a third that gets one share from each

To the server a name is a number, of the place where it has put it: of what the client sends, no more bits than that has
are of anything it has decrypted, whatever the server does (Theorem 2.32 in docs/theory/asking.md).

Linear scorers are arranged anew for every query. Mixtures, a hundred times dearer because the components of all places
are joined, are arranged once: places are never opened, only names are, so that a new order would hide nothing more.
T-norm moves and scales all scores of a trial alike, so that it does not change who is best: it enters in step 4 only.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, pack_numbers, packed_bytes, uniform_residues, unpack_numbers
from ppspeech.crypto.shares import (
    TEXT_RING,
    Cost,
    Shared,
    ShareEngine,
    blank,
    concatenate,
    knock_out,
    read_text,
    record,
    text_residues,
    text_size,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers.norm import Scorer, accept
from ppspeech.protocols.speakers.verify import ASSUMPTIONS, check_scorer, plan_of

Recipient = Literal["client", "server", "third"]

UNLIKELY = 64.0  # nats a frame by which a dummy mixture is below the background

LEAKAGE = "the number of places, models and dummies together, the cohort's size and the longest name there may be"
FOLLOWED = (
    "both follow the protocol (an active client can shift its share of a score: it bends the name, and reads the names "
    f"of all who are enrolled in about as many questions); {ASSUMPTIONS}"
)
TOLD = (
    f"{FOLLOWED}; a server that is told the name learns of voice and key no more than ⌈log2(places + 1)⌉ bits a "
    "question, whatever it does"
)

identification = register_protocol(
    "speaker_identification",
    functionality="the name of the enrolled speaker whose model scores best, or nobody's if it is below the threshold, "
    "to the client or the server",
    leakage=LEAKAGE,
    assumptions=TOLD,
    terms=LinearPlan,
)
to_third = register_protocol(
    "speaker_identification_for_third",
    functionality="the name of the best enrolled speaker, or nobody's, to a third party and to nobody else",
    leakage=LEAKAGE,
    assumptions=f"{FOLLOWED}; the third party colludes with neither",
    terms=LinearPlan,
)
mixture_identification = register_protocol(
    "speaker_identification_mixture",
    functionality="the name of the enrolled speaker whose mixture fits the client's frames best, or nobody's if it is "
    "below the threshold, to the client or the server",
    leakage="the padded number of frames, components, places (models and dummies together) and the longest name",
    assumptions=TOLD,
    terms=MixturePlan,
)


@dataclass(frozen=True)
class Identification:
    """One identification, as both parties know it: `plan.models` are the places, dummies included."""

    plan: LinearPlan | MixturePlan
    recipient: Recipient = "client"
    longest_name: int = 21

    def __post_init__(self) -> None:
        if self.recipient not in ("client", "server", "third"):
            raise ModelError(f"the name goes to the client, the server or a third party, got {self.recipient!r}")
        if not 1 <= self.longest_name <= 256:
            raise ModelError(f"names have up to 1 to 256 bytes, got {self.longest_name}")
        if isinstance(self.plan, MixturePlan) and self.plan.cohort:
            raise ModelError("identification with mixtures has no T-norm: use supervectors with a linear scorer")

    @property
    def names(self) -> tuple[int, int]:
        """The shape of all places' names: `(places, residues)`."""
        return self.plan.models, text_size(self.longest_name)

    @property
    def told(self) -> int:
        """Bits that the server is told: of a place, or nobody's; 0 where the name is another's."""
        return self.plan.models.bit_length() if self.recipient == "server" else 0

    @property
    def cost(self) -> Cost:
        """What is computed on shares; the product's bytes are `plan.product.total_bytes`."""
        return _cost(self)


@lru_cache(maxsize=64)
def _cost(job: Identification) -> Cost:
    product = job.plan.product
    return record(lambda engine: name_best(engine, job, blank(product.rows, product.columns)))


@dataclass(frozen=True)
class Identity:
    """What the recipient learns: a name, or None where nobody was accepted."""

    name: str | None


@dataclass(frozen=True, eq=False)
class Arranged:
    """Speakers and dummies at random places; names are residues `(places, residues)`, zero for dummies."""

    scorer: Scorer
    names: Residues


def arrange_columns(
    job: Identification, columns: LinearColumns, names: list[str], threshold: float, workers: int = 1
) -> Arranged:
    """Linear models in a new random order, encoded: offline work of one query.

    Raises ModelError if there are more speakers than places, names that do not fit, or not one for each; RangeError if
    a score could leave the plan's range.
    """
    plan, speakers = job.plan, columns.models.shape[1]
    assert isinstance(plan, LinearPlan)
    places, spelled = _places(job, speakers, names)
    own_weights, own_offsets = columns.folded(replace(plan, models=speakers), threshold)
    weights, offsets = np.zeros((plan.features, plan.columns)), np.zeros(plan.columns)
    used = np.concatenate([places, np.arange(plan.models, plan.columns)])
    weights[:, used], offsets[used] = own_weights, own_offsets
    scorer = LinearScorer.of_folded(plan, weights, offsets, threshold < 0, workers)
    shifted = scorer.offsets.copy()
    dummies = np.setdiff1d(np.arange(plan.models), places)
    shifted[dummies] = plan.ring.from_signed(plan.scale.encode(np.array([-(2.0**plan.reach)])))
    return Arranged(replace(scorer, offsets=shifted), spelled)


def arrange_mixtures(
    job: Identification, background: Mixtures, speakers: Mixtures, names: list[str], threshold: float
) -> Arranged:
    """Mixtures among dummies, which are the background made e^64 times less likely, encoded.

    The threshold is of the average log-likelihood ratio, above -64. Raises ModelError for more speakers than places, or
    names that do not fit, or not one for each; RangeError if a log-density could leave the plan's range.
    """
    plan = job.plan
    assert isinstance(plan, MixturePlan)
    if not threshold > -UNLIKELY:
        raise ModelError(f"the threshold must be above {-UNLIKELY}, where dummies are, got {threshold}")
    places, spelled = _places(job, len(speakers.means), names)
    dummies = (background.log_weights - UNLIKELY, background.means, background.covariances)
    filled = [np.repeat(each, plan.models, axis=0) for each in dummies]
    for field, given in zip(filled, vars(speakers).values(), strict=True):
        field[places] = given
    return Arranged(MixtureScorer.of(plan, background, Mixtures(*filled), threshold), spelled)


def _places(job: Identification, speakers: int, names: list[str]) -> tuple[NDArray[np.int64], Residues]:
    """A random place for each speaker, and all places' names."""
    if not 1 <= speakers <= job.plan.models:
        raise ModelError(f"{speakers} speakers do not fit the {job.plan.models} places of the plan")
    if len(names) != speakers:
        raise ModelError(f"{speakers} models need as many names, got {len(names)}")
    places = np.argsort(uniform_residues(job.plan.models))[:speakers].astype(np.int64)
    spelled = np.zeros(job.names, np.uint64)
    spelled[places] = text_residues(names, job.longest_name)
    return places, spelled


def identify_as_client(
    met: Meeting, job: Identification, voice: Reals, third: Channel | None = None
) -> Identity | None:
    """The client's program: the answer, or None where it is another's. The voice is what `job.plan.rows` takes.

    `third` leads to the third party, if it is the recipient. A voice that cannot be is a RangeError before any sending.
    """
    rows = job.plan.rows(voice)
    _check_third(job, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return name_best(engine, job, met.multiply(job.plan.product, rows), third=third)


def identify_as_server(
    met: Meeting, job: Identification, arranged: Arranged, third: Channel | None = None
) -> Identity | None:
    """The server's program: the answer, or None where it is another's. An arrangement of columns is used once."""
    check_scorer(job.plan, arranged.scorer)
    _check_third(job, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return name_best(engine, job, arranged.scorer.multiply(met), arranged, third)


def name_best(
    engine: ShareEngine,
    job: Identification,
    shares: Residues,
    arranged: Arranged | None = None,
    third: Channel | None = None,
) -> Identity | None:
    """Steps 3 to 5, of either party, from our shares `(rows, columns)`: the answer, or None where it is another's."""
    plan = job.plan
    scores = plan.all_scores(engine, shares)
    places, residues = job.names
    names = np.zeros((places, 1 if job.told else residues), np.uint64)
    if arranged is not None:
        names = 1 + np.arange(places, dtype=np.uint64)[:, None] if job.told else arranged.names
    with engine.in_flights():
        best, name = knock_out(scores[: plan.models], Shared(engine, names, TEXT_RING))
    tried = concatenate([best, scores[plan.models :]])
    accepted = accept(plan, tried, scorer=None if arranged is None else arranged.scorer)
    masked = accepted * name
    if third is not None:
        third.send(Kind.NAME_SHARE, pack_numbers(masked.residues, TEXT_RING.bits))
    if job.recipient == "third":
        return None
    if job.recipient == "client":
        opened = masked.open_to(Side.SECOND)
        return None if opened is None else Identity(read_text(opened))
    opened = masked.in_ring(Ring(job.told)).open_to(Side.FIRST)
    if opened is None:
        return None
    assert arranged is not None
    at = int(opened[0])
    return Identity(read_text(arranged.names[at - 1]) if 0 < at <= places else None)


def learn_name(client: Channel, server: Channel, job: Identification) -> Identity:
    """The third party's program: a share from each, and their sum."""
    _, residues = job.names
    size = packed_bytes(residues, TEXT_RING.bits)
    data = [channel.receive(Kind.NAME_SHARE, size) for channel in (client, server)]
    shares = [unpack_numbers(each, residues, TEXT_RING.bits).astype(np.uint64) for each in data]
    return Identity(read_text(TEXT_RING.join(*shares)))


def _check_third(job: Identification, third: Channel | None) -> None:
    """Refuse a channel to a third party that gets nothing, and a third party without one."""
    if (job.recipient == "third") != (third is not None):
        raise ModelError("a channel to the third party is given if, and only if, it is the recipient")


@identification.party("client")
@to_third.party("client")
@mixture_identification.party("client")
def client(
    party: Party, voice: list[Any], /, *, recipient: Recipient = "client", longest_name: int = 21, **terms: Any
) -> str:
    """Meet, and ask once with an embedding, or with frames where mixtures are; a third party is the recipient."""
    third = party.channels.get("third")
    job = Identification(plan_of(terms), "third" if third else recipient, longest_name)
    return say(identify_as_client(meet_as_client(party.channels["server"]), job, np.asarray(voice), third))


@identification.party("server")
@to_third.party("server")
def server(
    party: Party,
    models: list[list[float]],
    names: list[str],
    threshold: float,
    /,
    *,
    recipient: Recipient = "client",
    longest_name: int = 21,
    **terms: Any,
) -> str:
    """Meet, and answer once for models, one row a speaker; a third party is the recipient."""
    third = party.channels.get("third")
    job = Identification(plan_of(terms), "third" if third else recipient, longest_name)
    arranged = arrange_columns(job, LinearColumns.of(np.asarray(models).T), names, threshold)
    return say(identify_as_server(meet_as_server(party.channels["client"]), job, arranged, third))


@mixture_identification.party("server")
def mixture_server(
    party: Party,
    background: dict[str, Any],
    speakers: dict[str, Any],
    names: list[str],
    threshold: float,
    /,
    *,
    recipient: Recipient = "client",
    longest_name: int = 21,
    **terms: Any,
) -> str:
    """Meet, and answer once for mixtures, each with `log_weights`, `means` and `covariances`."""
    job = Identification(plan_of(terms), recipient, longest_name)
    arranged = arrange_mixtures(job, Mixtures.parse(background), Mixtures.parse(speakers), names, threshold)
    return say(identify_as_server(meet_as_server(party.channel), job, arranged))


@to_third.party("third")
def third(party: Party, /, *, longest_name: int = 21, **terms: Any) -> str:
    """Learn the name."""
    job = Identification(plan_of(terms), "third", longest_name)
    return say(learn_name(party.channels["client"], party.channels["server"], job))


def say(found: Identity | None) -> str:
    """The answer for people; None is that of a party who is not the recipient."""
    return "the other party knows" if found is None else found.name or "nobody"
