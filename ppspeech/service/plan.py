"""Before a model is served: what it will cost, what will leak, how exact it is. `ppspeech encrypt-plan` prints it."""

from dataclasses import asdict, dataclass
from typing import Any

from ppspeech.bundle import Bundle
from ppspeech.protocols import PROTOCOLS, RegisteredProtocol
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.trellis import can_scan
from ppspeech.protocols.words import model_bytes
from ppspeech.service.error_budget import ErrorBudget, error_budget
from ppspeech.service.estimate import Estimate, estimate, estimate_stream, planned_job
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.requests import ORDERS

ROUND_TRIPS = (0.0, 0.010, 0.040)
"""Seconds: loopback, a city, a continent."""

MEETING_BYTES = 49_329
"""Payload of a meeting, once a session: the client's public key and 512 base transfers."""


@dataclass(frozen=True, slots=True)
class ModePlan:
    """One way to run.

    Attributes:
        mode: which.
        cost: of one utterance.
        seconds: from the voice (streaming: from its last frame) to the word, at each of `ROUND_TRIPS`; estimates.
        statement: what is computed, what leaks, under which assumptions.
    """

    mode: str
    cost: Estimate
    seconds: tuple[float, ...]
    statement: RegisteredProtocol

    @staticmethod
    def of(mode: str, cost: Estimate, protocol: str) -> "ModePlan":
        """A way to run that a registered protocol describes."""
        seconds = tuple(cost.online_over(trip) if trip else cost.online_seconds for trip in ROUND_TRIPS)
        return ModePlan(mode, cost, seconds, PROTOCOLS[protocol])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **asdict(self.cost),
            "seconds": list(self.seconds),
            "computes": self.statement.functionality,
            "leaks": self.statement.leakage,
            "assumes": self.statement.assumptions,
        }


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What whoever serves a model should know before.

    Attributes:
        task: of the model.
        type: of the model.
        guarantee: what is promised to the people it was trained on.
        shape: what every client will know of it.
        modes: the ways to run.
        model_bytes: that a streaming client takes once a session; 0 without streaming.
        errors: of scores, and the range of the shares.
        packing: how the product is cut into polynomials, in words.
    """

    task: str
    type: str
    guarantee: str
    shape: WordShape
    modes: tuple[ModePlan, ...]
    model_bytes: int
    errors: ErrorBudget
    packing: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be looked at before serving."""
        found = []
        if self.errors.range_bits.typical > self.errors.bits:
            found.append(
                f"scores are expected to need {self.errors.range_bits.typical:g} bits where shares have "
                f"{self.errors.bits}: words would be wrong; raise bits or serve shorter utterances"
            )
        elif self.errors.range_bits.certain > self.errors.bits:
            found.append(
                f"only voices far from any model's training could need {self.errors.range_bits.certain:g} bits where "
                f"shares have {self.errors.bits}: the word would be wrong then, and nothing else would happen"
            )
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "task": self.task,
            "type": self.type,
            "guarantee": self.guarantee,
            "shape": self.shape.to_params(),
            "packing": self.packing,
            "meeting_bytes": MEETING_BYTES,
            "model_bytes": self.model_bytes,
            "round_trips": list(ROUND_TRIPS),
            "modes": {each.mode: each.to_json() for each in self.modes},
            "errors": asdict(self.errors),
            "warnings": list(self.warnings),
        }


def plan_service(bundle: Bundle, deployment: Deployment | None = None) -> ServicePlan:
    """What serving a released model will cost and leak; nothing is encrypted for it.

    Raises:
        ModelError: if the model cannot be served.
    """
    models = export_words(bundle.config.type, bundle.model, bundle.labels, deployment)
    shape = models.shape
    modes = [
        ModePlan.of(order, estimate(planned_job(shape, 1, order)), "keyword")
        for order in ORDERS
        if order == "frames" or (can_scan(shape) and shape.frames > 1)
    ]
    streams = shape.frames > 1
    if streams:
        modes.append(ModePlan.of("stream", estimate_stream(shape), "keyword_stream"))
    return ServicePlan(
        task=bundle.config.task,
        type=bundle.config.type,
        guarantee=str(bundle.statement.guarantee),
        shape=shape,
        modes=tuple(modes),
        model_bytes=model_bytes(shape) if streams else 0,
        errors=error_budget(models),
        packing=_packing(shape),
    )


def _packing(shape: WordShape) -> str:
    plan, precision = planned_job(shape).plan, shape.precision
    job = plan.job
    return (
        f"{shape.monomials} monomials a frame ({shape.terms}), blocks of {plan.block_rows} frames x "
        f"{plan.block_inner} monomials x {plan.block_columns} scores in polynomials of "
        f"{precision.parameters.degree} coefficients mod a {precision.parameters.prime_bits}-bit prime; "
        f"{job.groups * job.terms} up, {job.groups * job.outputs} down; weights with {precision.weights.fraction} bits "
        f"after the point, shares of {shape.bits} bits with {shape.fraction}"
    )
