"""Before a model is served: what it will cost, what will leak, how exact it is. `ppspeech encrypt-plan` prints it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ppspeech.bundle import Bundle, CtcNetworkSettings
from ppspeech.crypto.lattice import LatticeParameters, key_length
from ppspeech.crypto.shares import Cost
from ppspeech.crypto.transfer import SETUP_BYTES_FIRST, SETUP_BYTES_SECOND
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols import PROTOCOLS, RegisteredProtocol
from ppspeech.protocols.networks import network_cost, product_bytes
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.sentences import held_bytes, total_bytes
from ppspeech.protocols.speakers import MOST_PLACES, CrowdTerms, GalleryPlan, HardenedTerms, claim_cost, name_cost
from ppspeech.protocols.words import Questions, looks_ahead, model_bytes, why_not_garbled
from ppspeech.service.estimate import (
    MESSAGE_SECONDS,
    Estimate,
    Knowledge,
    estimate,
    estimate_network,
    estimate_product,
    estimate_shared,
    estimate_stream,
    planned_job,
)
from ppspeech.service.estimate_sentences import estimate_sentence
from ppspeech.service.exactness import error_budget
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.export_networks import export_ctc, export_network
from ppspeech.service.export_sentences import export_bundle
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.server.sentences import sentence_knowledge
from ppspeech.service.server.speakers import SpeakerDeployment
from ppspeech.service.tasks.sentences import STEP, Mode, SentenceDeployment, Sentences, modes_of
from ppspeech.service.tasks.speakers import Job, Speakers

TRANSFER_SECONDS = 1e-6  # of one extended transfer, both parties together
HIDDEN_SECONDS = 3e-9  # of one byte of a hardened verification's records and table, both parties together
CLEAR_SECONDS = 0.2e-9  # of one number of a crowd, multiplied in the clear
ROUND_TRIPS = (0.0, 0.010, 0.040, 0.100)  # seconds: loopback, a city, a continent, an ocean
MEETING_BYTES = key_length(LatticeParameters()) + SETUP_BYTES_FIRST + SETUP_BYTES_SECOND
"""Payload of a meeting, once a session: transfers, and the client's public key."""


@dataclass(frozen=True, slots=True)
class WayToRun:
    """One way to run, with the protocol's statement of what is computed and leaks.

    `seconds` are from the voice (streaming: from its last frame) to the word, at each of `ROUND_TRIPS`; estimates.
    """

    mode: str
    cost: Estimate
    seconds: tuple[float, ...]
    statement: RegisteredProtocol

    @staticmethod
    def of(mode: str, cost: Estimate, protocol: str) -> "WayToRun":
        """A way to run that a registered protocol describes."""
        seconds = tuple(cost.online_over(trip) if trip else cost.online_seconds for trip in ROUND_TRIPS)
        return WayToRun(mode, cost, seconds, PROTOCOLS[protocol])

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
        guarantee: what is promised to the people it was trained on.
        modes: the ways to run, or what may be asked by each scoring.
        warnings: what should be looked at before serving, or cannot be had, and why.
        details: further facts of the model, as plain values. Of words: `type`; `shape`, what every client will know;
            `packing` of the product into polynomials, in words; `model_bytes` that a streaming client takes once a
            session, 0 without streaming; `errors` of scores, and their range, which the shares hold; `knowledge`, the
            bits that an answer tells, the queries until the model could be known, and the usual budget. Of sentences:
            `shape`, with its graph counted; `step` that they are padded to; `bytes_a_second` and `rounds_a_second` of
            the longest; `held_bytes` of a circuit's tables, which its client holds until the voice is there, 0 where
            it would be too many; `most_apart`, nats that two scores can differ by, whatever is said, and the `bound` of
            the shares, which is above; `knowledge`. Of networks: `shape`; `rings`, bits of each layer's shares;
            `lines_error`, how far activations by lines are off; `knowledge`. Of speakers: `features` of a template;
            `places`; `gallery_bytes` of an encrypted gallery, which a prober takes once, 0 where there can be none.
    """

    task: str
    guarantee: str
    modes: tuple[WayToRun, ...]
    warnings: tuple[str, ...]
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "task": self.task,
            "guarantee": self.guarantee,
            **self.details,
            "meeting_bytes": MEETING_BYTES,
            "round_trips": list(ROUND_TRIPS),
            "modes": {each.mode: each.to_json() for each in self.modes},
            "warnings": list(self.warnings),
        }


def plan_words(bundle: Bundle, deployment: Deployment | None = None) -> ServicePlan:
    """What serving words will cost and leak; nothing is encrypted. Raises ModelError if the model cannot be served."""
    models = export_words(bundle.config.type, bundle.model, bundle.labels, deployment, bundle.config.mfcc)
    shape, errors = models.shape, error_budget(models)
    job, why, warnings = planned_job(shape), why_not_garbled(shape), []
    told = "client" if deployment is None else deployment.outcome
    modes = [WayToRun.of("frames", estimate(job), "keyword")] if told == "client" else []
    if bundle.config.embedding is not None:
        questions = Questions(shape, told)
        cost = estimate_shared(questions.plan, questions.step_cost, questions.rounds)
        modes.append(WayToRun.of("watch", cost, "keyword_watch" if told == "client" else "keyword_outcome"))
    if looks_ahead(shape):
        modes.append(WayToRun.of("ahead", estimate(job, "ahead"), "keyword"))
    if why is None and told == "client":
        modes.append(WayToRun.of("garbled", estimate(job, "garbled"), "keyword_garbled"))
    else:
        reason = why or "it tells the client, and here the server is told"
        warnings.append(f"no garbled circuit for slow links: {reason}")
    if streams := shape.frames > 1:
        modes.append(WayToRun.of("stream", estimate_stream(shape), "keyword_stream"))
    details = {
        "type": bundle.config.type,
        "shape": shape.to_params(),
        "packing": _packing(shape),
        "model_bytes": model_bytes(shape) if streams else 0,
        "errors": asdict(errors),
        "knowledge": asdict(Knowledge.of(shape)),
    }
    guarantee = str(bundle.statement.guarantee)
    return ServicePlan(bundle.config.task, guarantee, tuple(modes), tuple(warnings), details)


def plan_sentences(bundle: Bundle, deployment: SentenceDeployment | None = None) -> ServicePlan:
    """What serving sentences will cost and leak, of the longest and shortest; nothing is encrypted. Raises ModelError
    if the model cannot be served.
    """
    longest = export_bundle(bundle, deployment)
    shape, hop = longest.shape, bundle.mfcc.hop_s
    terms = Sentences(bundle.config.type, shape, bundle.mfcc, STEP, modes_of(shape))
    modes = []
    protocols: dict[Mode, str] = {"frames": "sentence", "garbled": "sentence_garbled"}
    for steps in dict.fromkeys((terms.steps[-1], terms.steps[0])):
        for mode in terms.modes:
            cost = estimate_sentence(terms.shape_of(steps), mode)
            modes.append(WayToRun.of(f"{steps * STEP * hop:.1f} s, {mode}", cost, protocols[mode]))
    known, warnings = sentence_knowledge(shape), []
    if known.queries <= known.budget:
        warnings.append(
            f"a client that cheats could know the model within the usual budget, after {known.queries:,} queries: "
            "serve with a smaller --budget, or shorter sentences (--frames)"
        )
    if total_bytes(shape) > MOST_BYTES:
        warnings.append(f"clients refuse to exchange {total_bytes(shape) / 1e6:.0f} MB: serve with fewer --frames")
    if "garbled" not in terms.modes and shape.network is None:
        warnings.append(
            f"tables of a garbled circuit would take more than {MOST_BYTES / 1e6:.0f} MB: over slow links every frame "
            "waits for its round trips; serve with fewer --frames, or fewer words, to have it"
        )
    public = shape.to_params()
    details = {
        "type": bundle.config.type,
        "shape": public | {name: len(public[name]) for name in ("columns", "arcs", "starts")},
        "step": STEP,
        "bytes_a_second": round(total_bytes(shape) / (shape.frames * hop)),
        "rounds_a_second": round(modes[0].cost.rounds / (shape.frames * hop), 1),
        "held_bytes": held_bytes(shape) if "garbled" in terms.modes else 0,
        "most_apart": longest.most_apart,
        "bound": shape.scale.bound,
        "knowledge": asdict(known),
    }
    guarantee = str(bundle.statement.guarantee)
    return ServicePlan(bundle.config.task, guarantee, tuple(modes), tuple(warnings), details)


def plan_network(bundle: Bundle, deployment: SentenceDeployment | None = None) -> ServicePlan:
    """What serving a network will cost and leak, of the longest utterance; nothing is encrypted. `deployment`: of one
    that writes down sentences. Raises ModelError if it cannot be served.
    """
    if isinstance(bundle.config.settings, CtcNetworkSettings):
        network = export_ctc(bundle, deployment)
    else:
        network = export_network(bundle.model, bundle.labels)
    shape = network.shape
    known = Knowledge.about(shape.weights, shape.answer_bits)
    size, warnings = product_bytes(shape) + network_cost(shape).total_bytes, []
    if size > MOST_BYTES:
        warnings.append(f"clients refuse to exchange {size / 1e6:.0f} MB: take fewer frames or smaller layers")
    details = {
        "type": bundle.config.type,
        "shape": shape.to_params(),
        "rings": [shape.rings.results[number] for number in range(len(shape.layers))],
        "lines_error": max((layer.lines.error for layer in shape.layers if layer.lines), default=0.0),
        "knowledge": asdict(known),
    }
    modes = (WayToRun.of("layers", estimate_network(shape), "network"),)
    return ServicePlan(bundle.config.task, str(bundle.statement.guarantee), modes, tuple(warnings), details)


def plan_speakers(bundle: Bundle, deployment: SpeakerDeployment | None = None, members: int = 0) -> ServicePlan:
    """What each scoring would cost and leak, whichever the deployment has chosen; nothing is encrypted for it.

    `members` are the cohort's. Raises ModelError if the bundle holds no background model; BundleError for sizes that no
    scoring could have.
    """
    chosen = deployment or SpeakerDeployment()
    if chosen.how == "crowd":
        return _plan_crowd(bundle, chosen)
    linear = replace(chosen, scoring="linear", stores=False).terms(bundle, members)
    modes, warnings = _shared_modes(linear, "linear", ""), []
    if bundle.verifier.impostors is None and chosen.threshold is None and not members:
        warnings.append(
            "the bundle has no cohort: to decide, serve needs clips of other people recorded alike (--speakers "
            "cohort=FOLDER), or a threshold"
        )
    try:
        mixtures = replace(chosen, scoring="gmm", stores=False).terms(bundle, members)
        modes += _shared_modes(mixtures, "gmm", "_mixture")
        if not mixtures.identifies:
            warnings.append("mixtures have no names with a cohort: identification with them is not normed")
    except (RangeError, ModelError) as refused:
        warnings.append(f"gmm: {refused}")
    modes.append(WayToRun.of("hardened verify", _hardened(linear.hardened), "speaker_verification_hardened"))
    gallery = None if chosen.places > MOST_PLACES else linear.gallery
    if gallery is None:
        warnings.append(f"private galleries have up to {MOST_PLACES} places, got {chosen.places}")
    else:
        modes.append(WayToRun.of("private verify", _probe(gallery), "template_matching"))
    for each in modes:
        size = each.cost.bytes_up + each.cost.bytes_down
        if size > MOST_BYTES:
            warnings.append(f"{each.mode}: clients refuse to exchange {size / 1e6:.0f} MB: use fewer places or frames")
    sizes = {
        "features": linear.features,
        "places": chosen.places,
        "gallery_bytes": 0 if gallery is None else gallery.product.job.query_bytes,
    }
    guarantee = str(bundle.statement.guarantee)
    return ServicePlan(bundle.config.task, guarantee, tuple(modes), tuple(warnings), sizes)


def _plan_crowd(bundle: Bundle, chosen: SpeakerDeployment) -> ServicePlan:
    """Names and claims among up to a million people."""
    terms = replace(chosen, stores=False).terms(bundle, 0)
    plan, name = terms.crowd, "speaker_identification_crowd"
    ways = [("crowd verify", claim_cost(plan, terms.decision)), ("crowd identify", name_cost(plan))]
    modes = tuple(WayToRun.of(mode, _crowd(plan, cost), name) for mode, cost in ways)
    sizes = {
        "features": plan.features,
        "places": plan.places,
        "gallery_bytes": plan.blocks * plan.product.columns * plan.features * (8 + 2),
    }
    return ServicePlan(bundle.config.task, str(bundle.statement.guarantee), modes, (), sizes)


def _crowd(plan: CrowdTerms, cost: Cost) -> Estimate:
    """The masked product of every block is made offline; online it is one in the clear."""
    rounds = ("sr" + cost.directions).count("sr")
    one, shares = estimate_product(plan.product), estimate_shared(plan.product, cost, rounds)
    numbers = plan.features * plan.slots
    return Estimate(
        bytes_up=shares.bytes_up + plan.shift_bytes,
        bytes_down=shares.bytes_down + (plan.blocks - 1) * plan.product.job.reply_bytes,
        online_bytes=cost.online_bytes + plan.shift_bytes,
        rounds=rounds,
        offline_seconds=shares.offline_seconds + plan.blocks * (one.offline_seconds + one.online_seconds),
        online_seconds=shares.online_seconds - one.online_seconds + CLEAR_SECONDS * numbers,
    )


def _shared_modes(terms: Speakers, scoring: str, suffix: str) -> list[WayToRun]:
    modes = [WayToRun.of(f"{scoring} verify", _shared(terms.verification), f"speaker_verification{suffix}")]
    if terms.identifies:
        found = _shared(terms.identification)
        modes.append(WayToRun.of(f"{scoring} identify", found, f"speaker_identification{suffix}"))
    return modes


def _shared(job: Job) -> Estimate:
    """The client asks, is answered, and goes on with the work on shares."""
    return estimate_shared(job.plan.product, job.cost, ("sr" + job.cost.directions).count("sr"))


def _hardened(plan: HardenedTerms) -> Estimate:
    """No work on shares: transfers beforehand; then records for a claim, and a table for a code."""
    offline = MESSAGE_SECONDS + TRANSFER_SECONDS * (plan.claim_bits + plan.bits)
    online = 6 * MESSAGE_SECONDS + HIDDEN_SECONDS * plan.bytes_down
    size = plan.bytes_up - plan.offline_bytes + plan.bytes_down
    return Estimate(plan.bytes_up, plan.bytes_down, size, 2, offline, online)


def _probe(plan: GalleryPlan) -> Estimate:
    """The prober sends the one product itself; the gallery came before."""
    found = estimate_shared(plan.product, plan.cost, ("s" + plan.cost.directions).count("sr"))
    sent, asked = plan.product.job.reply_bytes, plan.product.job.query_bytes
    return replace(
        found,
        bytes_up=found.bytes_up - asked + sent,
        bytes_down=found.bytes_down - sent,
        online_bytes=found.online_bytes - asked,
    )


def _packing(shape: WordShape) -> str:
    plan, precision = planned_job(shape).plan, shape.precision
    job = plan.job
    return (
        f"{shape.monomials} monomials a frame ({shape.terms}), blocks of {plan.block_rows} frames x "
        f"{plan.block_inner} monomials x {plan.block_columns} scores in polynomials of "
        f"{precision.parameters.degree} coefficients mod a {precision.parameters.prime_bits}-bit prime; "
        f"{job.groups * job.terms} up, {job.groups * job.outputs} down; weights with {precision.weights.fraction} bits "
        f"after the point, shares of {shape.bits} bits with {shape.fraction}; {_floor(shape)}"
    )


def _floor(shape: WordShape) -> str:
    if shape.reach is None:
        return "no frame within the limit and radius can score so low that a floor is needed"
    return f"what a frame scores more than {shape.floor} nats below the highest counts as that, on shares"
