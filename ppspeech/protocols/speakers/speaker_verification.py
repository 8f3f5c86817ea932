"""Is this the speaker it claims to be? All enrolled models are scored; which one was claimed stays with the client.

    1. offline        both prepare transfers, the server encryptions of zero
    2. client, server the encrypted embedding times all models and cohort: shares of all scores
    3. client, server the claimed model's score, chosen by the client's index: a share each
    4. client, server the decision on shares, with T-norm if there is a cohort
    5. the named party gets the other's share of this one bit

A client that does not follow the protocol can shift its own share before step 4 and be accepted as anybody;
`speaker_hardened` is for those who must withstand that.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import Cost, ShareEngine, check_index, choose, choose_cost, open_bits_to, open_cost
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer
from ppspeech.protocols.speakers.decision import accept, accept_against, accept_against_cost, accept_cost

Recipient = Literal["client", "server"]

verification = register_protocol(
    "speaker_verification",
    functionality="whether the client's embedding is accepted as the enrolled speaker it claims to be, to one party",
    leakage="how many models and cohort members there are; the server learns that some enrolled speaker was claimed",
    assumptions="both follow the protocol (an active client can shift its share of the score: see speaker_hardened); "
    "ring learning with errors, Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


@dataclass(frozen=True)
class Verification:
    """One verification, as both parties know it.

    Attributes:
        plan: sizes and scales.
        recipient: who learns the decision.
    """

    plan: LinearPlan
    recipient: Recipient = "server"

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
        decision = accept_against_cost(plan.ring, plan.cohort) if plan.cohort else accept_cost(plan.ring)
        chosen = choose_cost(plan.ring, 1, plan.models)
        return chosen + decision + open_cost(self.receiver, Ring(1), 1)


def verify_as_client(met: MetClient, job: Verification, embedding: Reals, claimed: int) -> bool | None:
    """The client's program: the decision, or None where it is the server's.

    Args:
        met: after the meeting.
        job: what is asked.
        embedding: φ, `(features,)`, no longer than `plan.norm`.
        claimed: the number of the model it claims to match.

    Raises:
        RangeError: for an embedding or a number that cannot be; nothing is sent then.
    """
    row = job.plan.check_embedding(embedding)
    check_index(claimed, job.plan.models)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, met.multiply(job.plan.product, row)[0], claimed)


def verify_as_server(met: MetServer, job: Verification, scorer: LinearScorer) -> bool | None:
    """The server's program: the decision, or None where it is the client's."""
    check_scorer(job.plan, scorer)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, server_scores(met, scorer), None, turn=scorer.turn)


def server_scores(met: MetServer, scorer: LinearScorer) -> Residues:
    """The server's shares of all columns' scores, `(columns,)`; the client's are `met.multiply(plan.product, φ)`."""
    shares = met.multiply(scorer.plan.product, scorer.weights)[0]
    return scorer.plan.ring.reduce(shares + scorer.offsets)


def decide(
    engine: ShareEngine, job: Verification, scores: Residues, claimed: int | None, *, turn: bool = False
) -> bool | None:
    """Steps 3 to 5, of either party.

    Args:
        engine: with the correlations of `job.cost`.
        job: what is asked.
        scores: our shares, `(columns,)`.
        claimed: the client's; None for the server.
        turn: the server's `LinearScorer.turn`; False for the client.
    """
    plan = job.plan
    score = choose(engine, scores[None, : plan.models], claimed, plan.ring)
    if plan.cohort:
        bit = accept_against(engine, score, scores[plan.models :], plan.ring, turn=turn)
    else:
        bit = accept(engine, score, plan.ring)
    opened = open_bits_to(engine, job.receiver, bit)
    return None if opened is None else bool(opened[0])


def check_scorer(plan: LinearPlan, scorer: LinearScorer) -> None:
    """Refuse a scorer of another plan.

    Raises:
        ModelError: if the plans differ.
    """
    if scorer.plan != plan:
        raise ModelError(f"the scorer was made for {scorer.plan}, the job is {plan}")


@verification.party("client")
def client(channel: Channel, embedding: list[float], claimed: int, /, **public: Any) -> str:
    """Meet, and verify once: `features`, `models`, and optionally the rest of `LinearPlan` and `recipient`."""
    job = _job(public)
    return _say(verify_as_client(meet_as_client(channel), job, np.asarray(embedding, np.float64), claimed))


@verification.party("server")
def server(
    channel: Channel,
    models: list[list[float]],
    threshold: float,
    cohort: list[list[float]] | None = None,
    /,
    **public: Any,
) -> str:
    """Meet, and verify once against models, one row a speaker, and a cohort for T-norm."""
    job = _job(public)
    others = None if cohort is None else np.asarray(cohort, np.float64).T
    columns = LinearColumns.of(np.asarray(models, np.float64).T, others)
    scorer = LinearScorer.of(job.plan, columns, threshold)
    return _say(verify_as_server(meet_as_server(channel), job, scorer))


def _job(public: dict[str, Any]) -> Verification:
    recipient = public.pop("recipient", "server")
    try:
        return Verification(LinearPlan(**public), recipient)
    except TypeError as error:
        raise ModelError(
            f"verification takes the fields of LinearPlan and a recipient as parameters: {error}"
        ) from None


def _say(decision: bool | None) -> str:
    return {None: "the other party knows", True: "accepted", False: "rejected"}[decision]
