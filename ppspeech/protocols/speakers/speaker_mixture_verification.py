"""Speaker verification with mixtures: the claimed model hides among all, and its frames' scores stay shared.

    1. client, server the encrypted monomials times all components of background, models and cohort
    2. client, server for every frame and component, the claimed model's log-density, chosen by the client's index:
                      only then are components joined, so that the cost of joining does not grow with the models
    3. client, server components joined by log-add or max, a tree; less the background's; summed over frames
    4. client, server the decision on shares; the named party gets the bit

The sums over frames are T times the averages that thresholds are about; as they are zero on padding and compared with
zero, or with each other in T-norm, the true T never enters.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    Cost,
    ShareEngine,
    check_index,
    choose,
    choose_cost,
    extend,
    extend_cost,
    open_bits_to,
    open_cost,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers.decision import accept, accept_cost
from ppspeech.protocols.speakers.norm import accept_normed, accept_normed_cost

mixture_verification = register_protocol(
    "speaker_verification_mixture",
    functionality="whether the client's frames are accepted as the enrolled speaker it claims to be, under Gaussian "
    "mixtures against a background model, to one party",
    leakage="the padded number of frames, and how many components, models and cohort members there are; the server "
    "learns that some enrolled speaker was claimed",
    assumptions="both follow the protocol (an active client can shift its share of the score); ring learning with "
    "errors, Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


@dataclass(frozen=True)
class MixtureVerification:
    """One verification, as both parties know it.

    Attributes:
        plan: sizes and scales.
        recipient: who learns the decision.
    """

    plan: MixturePlan
    recipient: Literal["client", "server"] = "server"

    def __post_init__(self) -> None:
        if self.recipient not in ("client", "server"):
            raise ModelError(f"the decision goes to the client or the server, got {self.recipient!r}")

    @property
    def receiver(self) -> Side:
        """The recipient in the share engine."""
        return Side.SECOND if self.recipient == "client" else Side.FIRST

    @property
    def cost(self) -> Cost:
        """What is computed on shares; the product's bytes are `plan.product.total_bytes`."""
        plan = self.plan
        decision = accept_normed_cost(plan) if plan.cohort else accept_cost(plan.total_ring)
        return ratios_cost(plan) + decision + open_cost(self.receiver, Ring(1), 1)


def verify_mixture_as_client(met: MetClient, job: MixtureVerification, frames: Reals, claimed: int) -> bool | None:
    """The client's program: the decision, or None where it is the server's.

    Args:
        met: after the meeting.
        job: what is asked.
        frames: `(at most plan.frames, dimensions)`.
        claimed: the number of the model it claims to match.

    Raises:
        RangeError: for frames or a number that cannot be; nothing is sent then.
    """
    monomials = job.plan.expand(frames)
    check_index(claimed, job.plan.models)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, met.multiply(job.plan.product, monomials), claimed, None)


def verify_mixture_as_server(met: MetServer, job: MixtureVerification, scorer: MixtureScorer) -> bool | None:
    """The server's program: the decision, or None where it is the client's."""
    if scorer.plan != job.plan:
        raise ModelError(f"the scorer was made for {scorer.plan}, the job is {job.plan}")
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, met.multiply(job.plan.product, scorer.weights), None, scorer)


def decide(
    engine: ShareEngine,
    job: MixtureVerification,
    densities: Residues,
    claimed: int | None,
    scorer: MixtureScorer | None,
) -> bool | None:
    """Steps 2 to 4, of either party, from its shares of all log-densities; the claim is the client's."""
    plan = job.plan
    totals = ratios(engine, plan, densities, claimed)
    if plan.cohort:
        bit = accept_normed(engine, plan, totals, claimed, scorer)
    else:
        bit = accept(engine, totals, plan.total_ring)
    opened = open_bits_to(engine, job.receiver, bit)
    return None if opened is None else bool(opened[0])


def ratios(engine: ShareEngine, plan: MixturePlan, densities: Residues, claimed: int | None) -> Residues:
    """Shares of log-likelihood ratios summed over frames: of the claimed model and the cohort, `(1 + cohort,)`.

    Args:
        engine: this party's.
        plan: sizes and scales.
        densities: our shares, `(frames, mixtures * components)`.
        claimed: the client's; None for the server.
    """
    frames, parts = plan.frames, plan.components
    every = densities.reshape(frames, plan.mixtures, parts)
    models = every[:, 1 : 1 + plan.models].transpose(0, 2, 1).reshape(frames * parts, plan.models)
    chosen = choose(engine, models, claimed, plan.ring).reshape(frames, 1, parts)
    return totals_of(engine, plan, np.concatenate([every[:, :1], chosen, every[:, 1 + plan.models :]], axis=1))


def ratios_cost(plan: MixturePlan) -> Cost:
    """`ratios`."""
    return choose_cost(plan.ring, plan.frames * plan.components, plan.models) + totals_cost(plan, 2 + plan.cohort)


def totals_of(engine: ShareEngine, plan: MixturePlan, scored: Residues) -> Residues:
    """Shares of log-likelihood ratios summed over frames, mod 2^k of `plan.total_ring`.

    Args:
        engine: this party's.
        plan: sizes and scales.
        scored: our shares of log-densities, `(frames, mixtures, components)`, the background's first.

    Returns:
        `(mixtures - 1,)`.
    """
    joined = plan.combine.reduce(engine, scored)
    against = plan.ring.reduce(joined[:, 1:] - joined[:, :1])
    wide = extend(engine, against.reshape(-1), plan.ring, plan.total_ring).reshape(against.shape)
    return plan.total_ring.reduce(wide.sum(axis=0, dtype=np.uint64))


def totals_cost(plan: MixturePlan, mixtures: int) -> Cost:
    """`totals_of` so many mixtures, the background counted."""
    joined = plan.combine.reduce_cost(plan.frames * mixtures, plan.components)
    return joined + extend_cost(plan.ring, plan.total_ring, plan.frames * (mixtures - 1))


@mixture_verification.party("client")
def client(channel: Channel, frames: list[list[float]], claimed: int, /, **public: Any) -> str:
    """Meet, and verify once; the fields of `MixturePlan` and `recipient` as parameters."""
    job = _job(public)
    return _say(verify_mixture_as_client(meet_as_client(channel), job, np.asarray(frames, np.float64), claimed))


@mixture_verification.party("server")
def server(
    channel: Channel,
    background: dict[str, Any],
    speakers: dict[str, Any],
    threshold: float,
    cohort: dict[str, Any] | None = None,
    /,
    **public: Any,
) -> str:
    """Meet, and verify once against mixtures, each with `log_weights`, `means` and `covariances`."""
    job = _job(public)
    others = None if cohort is None else Mixtures.parse(cohort)
    scorer = MixtureScorer.of(job.plan, Mixtures.parse(background), Mixtures.parse(speakers), threshold, cohort=others)
    return _say(verify_mixture_as_server(meet_as_server(channel), job, scorer))


def _job(public: dict[str, Any]) -> MixtureVerification:
    recipient = public.pop("recipient", "server")
    try:
        return MixtureVerification(MixturePlan(**public), recipient)
    except TypeError as error:
        raise ModelError(f"verification takes the fields of MixturePlan and a recipient: {error}") from None


def _say(decision: bool | None) -> str:
    return {None: "the other party knows", True: "accepted", False: "rejected"}[decision]
