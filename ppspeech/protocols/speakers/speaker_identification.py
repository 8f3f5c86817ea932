"""Who of the enrolled speakers is this, if anyone? The answer is a name; how many are enrolled stays with the server.

    1. offline        the server puts its models, and dummies that score below all, in a new random order and encodes
                      them; both prepare transfers
    2. client, server the encrypted embedding times all columns: shares of all scores
    3. client, server a tournament: shares of the best score and its name
    4. client, server the decision on the best score (`speaker_decision`); a rejected name becomes nobody's
    5. the named party gets the name: client, server, or a third that gets one share from each

T-norm moves and scales all scores of a trial alike, so that it does not change who is best: it enters in step 4 only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_residues
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer
from ppspeech.protocols.speakers.decision import accept, accept_against, accept_against_cost, accept_cost
from ppspeech.protocols.speakers.names import (
    Answer,
    Recipient,
    best_name,
    best_name_cost,
    check_recipient,
    check_third,
    give_name,
    give_name_cost,
    learn_name,
    name_residues,
    say_name,
    words_of,
)
from ppspeech.protocols.speakers.speaker_verification import check_scorer, server_scores

_LEAKAGE = "the number of places, models and dummies together, the cohort's size and the longest name there may be"
_ASSUMPTIONS = (
    "both follow the protocol; ring learning with errors, Diffie-Hellman on ed25519, AES a random permutation, "
    "SHA-256 an oracle"
)

identification = register_protocol(
    "speaker_identification",
    functionality="the name of the enrolled speaker whose model scores best, or nobody's if it is below the threshold, "
    "to the client or the server",
    leakage=_LEAKAGE,
    assumptions=_ASSUMPTIONS,
)
to_third = register_protocol(
    "speaker_identification_for_third",
    functionality="the name of the best enrolled speaker, or nobody's, to a third party and to nobody else",
    leakage=_LEAKAGE,
    assumptions=f"{_ASSUMPTIONS}; the third party colludes with neither",
)


@dataclass(frozen=True)
class Identification:
    """One identification, as both parties know it.

    Attributes:
        plan: sizes and scales; its `models` are the places, dummies included.
        recipient: who learns the name.
        longest_name: bytes of UTF-8.
    """

    plan: LinearPlan
    recipient: Recipient = "client"
    longest_name: int = 21

    def __post_init__(self) -> None:
        check_recipient(self.recipient, self.longest_name)

    @property
    def residues(self) -> int:
        """Of a name."""
        return words_of(self.longest_name)

    @property
    def cost(self) -> Cost:
        """What is computed on shares; the product's bytes are `plan.product.total_bytes`."""
        plan = self.plan
        decision = accept_against_cost(plan.ring, plan.cohort) if plan.cohort else accept_cost(plan.ring)
        found = best_name_cost(plan.ring, plan.models, self.residues) + decision
        return found + give_name_cost(self.recipient, self.residues)


@dataclass(frozen=True, eq=False)
class Arranged:
    """Models and dummies in one query's order: an encoded scorer and the names in its order, `(places, residues)`."""

    scorer: LinearScorer
    names: Residues


@dataclass(frozen=True, eq=False)
class Enrolled:
    """The server's speakers; `of` makes it, `arrange` puts them in a new order for each query.

    Attributes:
        job: what the client knows.
        weights: with threshold and T-norm folded in, `(features, speakers + cohort)`.
        offsets: constants, `(speakers + cohort,)`.
        names: residues, `(speakers, residues)`.
        turn: whether the threshold is negative where there is T-norm.
    """

    job: Identification
    weights: Reals
    offsets: Reals
    names: Residues
    turn: bool

    @staticmethod
    def of(job: Identification, columns: LinearColumns, names: list[str], threshold: float) -> "Enrolled":
        """From models in the clear.

        Raises:
            ModelError: if there are more speakers than places, names that do not fit, or not one for each.
        """
        speakers = columns.models.shape[1]
        if not 1 <= speakers <= job.plan.models:
            raise ModelError(f"{speakers} speakers do not fit the {job.plan.models} places of the plan")
        if len(names) != speakers:
            raise ModelError(f"{speakers} models need as many names, got {len(names)}")
        own = replace(job.plan, models=speakers)
        weights, offsets = columns.folded(own, threshold)
        return Enrolled(job, weights, offsets, name_residues(names, job.longest_name), threshold < 0)

    def arrange(self, workers: int = 1) -> Arranged:
        """A new random order of models and dummies, encoded: offline work of one query.

        Raises:
            RangeError: if a score could leave the plan's range.
        """
        plan, speakers = self.job.plan, len(self.names)
        places = np.argsort(uniform_residues(plan.models))[:speakers]
        weights = np.zeros((plan.features, plan.columns))
        offsets = np.zeros(plan.columns)
        names = np.zeros((plan.models, self.job.residues), np.uint64)
        columns = np.concatenate([places, np.arange(plan.models, plan.columns)])
        weights[:, columns], offsets[columns], names[places] = self.weights, self.offsets, self.names
        scorer = LinearScorer.of_folded(plan, weights, offsets, self.turn, workers)
        dummies = np.setdiff1d(np.arange(plan.models), places)
        shifted = scorer.offsets.copy()
        shifted[dummies] = plan.ring.from_signed(plan.scale.encode(np.array([-(2.0**plan.reach)])))
        return Arranged(replace(scorer, offsets=shifted), names)


def identify_as_client(
    met: MetClient, job: Identification, embedding: Reals, third: Channel | None = None
) -> Answer | None:
    """The client's program: the answer, or None where it is another's.

    Args:
        met: after the meeting.
        job: what is asked.
        embedding: φ, `(features,)`, no longer than `plan.norm`.
        third: channel to the third party, where that is the recipient.

    Raises:
        RangeError: for an embedding that cannot be; nothing is sent then.
    """
    row = job.plan.check_embedding(embedding)
    check_third(job.recipient, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        scores = met.multiply(job.plan.product, row)[0]
        return name_best(engine, job, scores, np.zeros((job.plan.models, job.residues), np.uint64), third)


def identify_as_server(
    met: MetServer, job: Identification, enrolled: Enrolled | Arranged, third: Channel | None = None
) -> Answer | None:
    """The server's program: the answer, or None where it is another's.

    Args:
        met: after the meeting.
        job: what is asked.
        enrolled: the speakers, or their arrangement for this query, made ahead of time and used once.
        third: channel to the third party, where that is the recipient.
    """
    arranged = enrolled.arrange() if isinstance(enrolled, Enrolled) else enrolled
    check_scorer(job.plan, arranged.scorer)
    check_third(job.recipient, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        scores = server_scores(met, arranged.scorer)
        return name_best(engine, job, scores, arranged.names, third, turn=arranged.scorer.turn)


def name_best(
    engine: ShareEngine,
    job: Identification,
    scores: Residues,
    names: Residues,
    third: Channel | None = None,
    *,
    turn: bool = False,
) -> Answer | None:
    """Steps 3 to 5, of either party, from its shares of scores `(columns,)` and names `(places, residues)`."""
    plan = job.plan
    best, name = best_name(engine, scores[: plan.models], names, plan.ring)
    if plan.cohort:
        bit = accept_against(engine, best, scores[plan.models :], plan.ring, turn=turn)
    else:
        bit = accept(engine, best, plan.ring)
    return give_name(engine, job.recipient, bit, name, third)


@identification.party("client")
def client(channel: Channel, embedding: list[float], /, **public: Any) -> str:
    """Meet, and ask once; `features`, `models`, and optionally the rest of `LinearPlan` and `Identification`."""
    job = _job(public)
    return say_name(identify_as_client(meet_as_client(channel), job, np.asarray(embedding, np.float64)))


@identification.party("server")
def server(channel: Channel, models: list[list[float]], names: list[str], threshold: float, /, **public: Any) -> str:
    """Meet, and answer once for models, one row a speaker."""
    job = _job(public)
    enrolled = Enrolled.of(job, LinearColumns.of(np.asarray(models, np.float64).T), names, threshold)
    return say_name(identify_as_server(meet_as_server(channel), job, enrolled))


@to_third.party("client")
def client_for_third(channels: Mapping[str, Channel], embedding: list[float], /, **public: Any) -> str:
    """As `client`; the name goes to the party "third"."""
    job = _job({**public, "recipient": "third"})
    met = meet_as_client(channels["server"])
    return say_name(identify_as_client(met, job, np.asarray(embedding, np.float64), channels["third"]))


@to_third.party("server")
def server_for_third(
    channels: Mapping[str, Channel], models: list[list[float]], names: list[str], threshold: float, /, **public: Any
) -> str:
    """As `server`; the name goes to the party "third"."""
    job = _job({**public, "recipient": "third"})
    enrolled = Enrolled.of(job, LinearColumns.of(np.asarray(models, np.float64).T), names, threshold)
    return say_name(identify_as_server(meet_as_server(channels["client"]), job, enrolled, channels["third"]))


@to_third.party("third")
def third(channels: Mapping[str, Channel], /, **public: Any) -> str:
    """Learn the name."""
    job = _job({**public, "recipient": "third"})
    return say_name(learn_name(channels["client"], channels["server"], job.residues))


def _job(public: dict[str, Any]) -> Identification:
    own = {name: public.pop(name) for name in ("recipient", "longest_name") if name in public}
    try:
        return Identification(LinearPlan(**public), **own)
    except TypeError as error:
        raise ModelError(f"identification takes the fields of LinearPlan and Identification: {error}") from None
