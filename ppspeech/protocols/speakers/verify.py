"""Is this the speaker it claims to be? All enrolled models are scored; which one was claimed stays with the client.

    1. offline        both prepare transfers, the server encryptions of zero
    2. client, server the encrypted voice times all models and cohort: shares
    3. client, server the claimed model's score and the cohort's, chosen by the client's index: a share each
    4. client, server the decision on shares, with T-norm if there is a cohort (`norm`)
    5. the named party gets the other's share of this one bit

A voice is an embedding, scored linearly, or frames, scored by mixtures (`scores`). A client that does not follow the
protocol can shift its own share before step 4, or encrypt a vector that is too long, and be accepted as anybody;
`hardened` is for those who must withstand that.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.shares import Cost, ShareEngine, blank, check_index, record
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers.norm import Scorer, accept

Recipient = Literal["client", "server"]

ASSUMPTIONS = "ring learning with errors, Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle"

verification = register_protocol(
    "speaker_verification",
    functionality="whether the client's embedding is accepted as the enrolled speaker it claims to be, to one party",
    leakage="how many models and cohort members there are; the server learns that some enrolled speaker was claimed",
    assumptions="both follow the protocol (an active client can shift its share of the score, or send a longer vector, "
    f"and is accepted: see speaker_verification_hardened); {ASSUMPTIONS}",
    terms=LinearPlan,
)
mixture_verification = register_protocol(
    "speaker_verification_mixture",
    functionality="whether the client's frames are accepted as the enrolled speaker it claims to be, under Gaussian "
    "mixtures against a background model, to one party",
    leakage="the padded number of frames, and how many components, models and cohort members there are; the server "
    "learns that some enrolled speaker was claimed",
    assumptions="both follow the protocol (an active client can shift its share of the score, and is accepted); "
    f"{ASSUMPTIONS}",
    terms=MixturePlan,
)


@dataclass(frozen=True)
class Verification:
    """One verification, as both parties know it; the recipient learns the decision."""

    plan: LinearPlan | MixturePlan
    recipient: Recipient = "server"

    def __post_init__(self) -> None:
        if self.recipient not in ("client", "server"):
            raise ModelError(f"the decision goes to the client or the server, got {self.recipient!r}")

    @property
    def cost(self) -> Cost:
        """What is computed on shares; the product's bytes are `plan.product.total_bytes`."""
        return _cost(self)


@lru_cache(maxsize=64)
def _cost(job: Verification) -> Cost:
    plan, product = job.plan, job.plan.product
    # Of all models only the claimed one's shares are read: what is computed on must be few enough, not all columns.
    blank(product.rows, product.columns * (2 + plan.cohort) // (1 + plan.models + plan.cohort))
    shares = np.broadcast_to(blank(), (product.rows, product.columns))
    return record(lambda engine: decide(engine, job, shares, claimed=0))


def verify_as_client(met: Meeting, job: Verification, voice: Reals, claimed: int) -> bool | None:
    """The client's program: the decision, or None where it is the server's. The voice is what `job.plan.rows` takes.

    Raises RangeError for a voice or a number of a model that cannot be; nothing is sent then.
    """
    rows = job.plan.rows(voice)
    check_index(claimed, job.plan.models)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, met.multiply(job.plan.product, rows), claimed)


def verify_as_server(met: Meeting, job: Verification, scorer: Scorer) -> bool | None:
    """The server's program: the decision, or None where it is the client's. A scorer of another plan is refused."""
    check_scorer(job.plan, scorer)
    with met.session():
        engine = met.prepare(job.plan.product, job.cost)
        return decide(engine, job, scorer.multiply(met), scorer=scorer)


def decide(
    engine: ShareEngine, job: Verification, shares: Residues, claimed: int | None = None, scorer: Scorer | None = None
) -> bool | None:
    """Steps 3 to 5 on shares `(rows, columns)`, with the client's claim or the server's scorer: the bit or None."""
    scores = job.plan.claimed_scores(engine, shares, claimed)
    decision = accept(job.plan, scores, claimed, scorer)
    opened = decision.open_to(Side.SECOND if job.recipient == "client" else Side.FIRST)
    return None if opened is None else bool(opened[0])


def check_scorer(plan: LinearPlan | MixturePlan, scorer: Scorer) -> None:
    """Refuse a scorer of another plan with a ModelError."""
    if scorer.plan != plan:
        raise ModelError(f"the scorer was made for {scorer.plan}, the job is {plan}")


@verification.party("client")
@mixture_verification.party("client")
def client(party: Party, voice: list[Any], claimed: int, /, *, recipient: Recipient = "server", **terms: Any) -> str:
    """Meet, and verify once an embedding, or frames where mixtures are."""
    job = Verification(plan_of(terms), recipient)
    return say(verify_as_client(meet_as_client(party.channel), job, np.asarray(voice), claimed))


@verification.party("server")
def server(
    party: Party,
    models: list[list[float]],
    threshold: float,
    cohort: list[list[float]] | None = None,
    /,
    *,
    recipient: Recipient = "server",
    **terms: Any,
) -> str:
    """Meet, and verify once against models, one row a speaker, and a cohort for T-norm."""
    job = Verification(plan := plan_of(terms), recipient)
    columns = LinearColumns.of(np.asarray(models).T, None if cohort is None else np.asarray(cohort).T)
    return say(verify_as_server(meet_as_server(party.channel), job, LinearScorer.of(plan, columns, threshold)))


@mixture_verification.party("server")
def mixture_server(
    party: Party,
    background: dict[str, Any],
    speakers: dict[str, Any],
    threshold: float,
    cohort: dict[str, Any] | None = None,
    /,
    *,
    recipient: Recipient = "server",
    **terms: Any,
) -> str:
    """Meet, and verify once against mixtures, each with `log_weights`, `means` and `covariances`."""
    job = Verification(plan := plan_of(terms), recipient)
    others = None if cohort is None else Mixtures.parse(cohort)
    scorer = MixtureScorer.of(plan, Mixtures.parse(background), Mixtures.parse(speakers), threshold, cohort=others)
    return say(verify_as_server(meet_as_server(party.channel), job, scorer))


def plan_of(terms: dict[str, Any]) -> Any:
    """A plan of mixtures where terms have components, else of linear scores. Raises ModelError for other terms."""
    kind = MixturePlan if "components" in terms else LinearPlan
    try:
        return kind(**terms)
    except TypeError as error:
        raise ModelError(f"the public terms are those of {kind.__name__}: {error}") from None


def say(decision: bool | None) -> str:
    """A decision for people; None is that of a party who does not learn it."""
    return {None: "the other party knows", True: "accepted", False: "rejected"}[decision]
