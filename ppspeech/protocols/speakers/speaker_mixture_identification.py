"""Identification with mixtures: the name of the speaker whose mixture fits best, or nobody's.

All models' components are joined here, so that the cost grows with the number of places; a linear scorer
(`speaker_identification`) is a hundred times cheaper. Dummies are the background model made e^64 times less likely.
Places are drawn at random when speakers are enrolled and are never opened, only names are: a new order for each query,
which would mean encoding all mixtures anew, would hide nothing more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_residues
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers.decision import accept, accept_cost
from ppspeech.protocols.speakers.names import (
    Answer,
    Recipient,
    best_name,
    best_name_cost,
    check_recipient,
    check_third,
    give_name,
    give_name_cost,
    name_residues,
    say_name,
    words_of,
)
from ppspeech.protocols.speakers.speaker_mixture_verification import totals_cost, totals_of

UNLIKELY = 64.0
"""Nats a frame by which a dummy is below the background."""

mixture_identification = register_protocol(
    "speaker_identification_mixture",
    functionality="the name of the enrolled speaker whose mixture fits the client's frames best, or nobody's if it is "
    "below the threshold, to the client or the server",
    leakage="the padded number of frames, components, places (models and dummies together) and the longest name",
    assumptions="both follow the protocol; ring learning with errors, Diffie-Hellman on ed25519, AES a random "
    "permutation, SHA-256 an oracle",
)


@dataclass(frozen=True)
class MixtureIdentification:
    """One identification, as both parties know it.

    Attributes:
        plan: sizes and scales; its `models` are the places, dummies included, and it has no cohort.
        recipient: who learns the name.
        longest_name: bytes of UTF-8.
    """

    plan: MixturePlan
    recipient: Recipient = "client"
    longest_name: int = 21

    def __post_init__(self) -> None:
        check_recipient(self.recipient, self.longest_name)
        if self.plan.cohort:
            raise ModelError("identification with mixtures has no T-norm: use supervectors with a linear scorer")

    @property
    def residues(self) -> int:
        """Of a name."""
        return words_of(self.longest_name)

    @property
    def cost(self) -> Cost:
        """What is computed on shares; the product's bytes are `plan.product.total_bytes`."""
        plan = self.plan
        found = totals_cost(plan, plan.mixtures) + best_name_cost(plan.total_ring, plan.models, self.residues)
        return found + accept_cost(plan.total_ring) + give_name_cost(self.recipient, self.residues)


@dataclass(frozen=True, eq=False)
class EnrolledMixtures:
    """The server's speakers among dummies; `of` makes it.

    Attributes:
        scorer: of all places.
        names: residues, `(places, residues)`; zero for dummies.
    """

    scorer: MixtureScorer
    names: Residues

    @staticmethod
    def of(
        job: MixtureIdentification, background: Mixtures, speakers: Mixtures, names: list[str], threshold: float
    ) -> "EnrolledMixtures":
        """Put speakers and dummies at random places and encode them.

        Args:
            job: what the client knows.
            background: one mixture.
            speakers: up to `plan.models` of them.
            names: theirs.
            threshold: of the average log-likelihood ratio, above -64.

        Raises:
            ModelError: if there are more speakers than places, names that do not fit, or not one for each.
            RangeError: if a log-density could leave the plan's range.
        """
        plan, count = job.plan, len(speakers.means)
        if not 1 <= count <= plan.models or len(names) != count:
            raise ModelError(
                f"{count} speakers need a name each and one of {plan.models} places, got {len(names)} names"
            )
        if not threshold > -UNLIKELY:
            raise ModelError(f"the threshold must be above {-UNLIKELY}, where dummies are, got {threshold}")
        places = np.argsort(uniform_residues(plan.models))[:count]
        spelled = np.zeros((plan.models, job.residues), np.uint64)
        spelled[places] = name_residues(names, job.longest_name)
        dummies = (background.log_weights - UNLIKELY, background.means, background.covariances)
        filled = [np.repeat(each, plan.models, axis=0) for each in dummies]
        for field, given in zip(filled, vars(speakers).values(), strict=True):
            field[places] = given
        return EnrolledMixtures(MixtureScorer.of(plan, background, Mixtures(*filled), threshold), spelled)


def identify_mixture_as_client(
    met: MetClient, job: MixtureIdentification, frames: Reals, third: Channel | None = None
) -> Answer | None:
    """The client's program: the answer, or None where it is another's.

    Args:
        met: after the meeting.
        job: what is asked.
        frames: `(at most plan.frames, dimensions)`.
        third: channel to the third party, where that is the recipient.

    Raises:
        RangeError: for frames that cannot be; nothing is sent then.
    """
    monomials = job.plan.expand(frames)
    check_third(job.recipient, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        densities = met.multiply(job.plan.product, monomials)
        return _name_best(engine, job, densities, np.zeros((job.plan.models, job.residues), np.uint64), third)


def identify_mixture_as_server(
    met: MetServer, job: MixtureIdentification, enrolled: EnrolledMixtures, third: Channel | None = None
) -> Answer | None:
    """The server's program: the answer, or None where it is another's."""
    if enrolled.scorer.plan != job.plan:
        raise ModelError(f"the speakers were enrolled for {enrolled.scorer.plan}, the job is {job.plan}")
    check_third(job.recipient, third)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        densities = met.multiply(job.plan.product, enrolled.scorer.weights)
        return _name_best(engine, job, densities, enrolled.names, third)


def _name_best(
    engine: ShareEngine, job: MixtureIdentification, densities: Residues, names: Residues, third: Channel | None
) -> Answer | None:
    plan = job.plan
    totals = totals_of(engine, plan, densities.reshape(plan.frames, plan.mixtures, plan.components))
    best, name = best_name(engine, totals, names, plan.total_ring)
    return give_name(engine, job.recipient, accept(engine, best, plan.total_ring), name, third)


@mixture_identification.party("client")
def client(channel: Channel, frames: list[list[float]], /, **public: Any) -> str:
    """Meet, and ask once; the fields of `MixturePlan` and `MixtureIdentification` as parameters."""
    return say_name(identify_mixture_as_client(meet_as_client(channel), _job(public), np.asarray(frames, np.float64)))


@mixture_identification.party("server")
def server(
    channel: Channel,
    background: dict[str, Any],
    speakers: dict[str, Any],
    names: list[str],
    threshold: float,
    /,
    **public: Any,
) -> str:
    """Meet, and answer once for mixtures with `log_weights`, `means` and `covariances`."""
    job = _job(public)
    enrolled = EnrolledMixtures.of(job, Mixtures.parse(background), Mixtures.parse(speakers), names, threshold)
    return say_name(identify_mixture_as_server(meet_as_server(channel), job, enrolled))


def _job(public: dict[str, Any]) -> MixtureIdentification:
    own = {name: public.pop(name) for name in ("recipient", "longest_name") if name in public}
    try:
        return MixtureIdentification(MixturePlan(**public), **own)
    except TypeError as error:
        raise ModelError(f"identification takes the fields of MixturePlan and MixtureIdentification: {error}") from None
