"""Template matching where the server never sees a template: the gallery is encrypted under an enrollment key.

    keeper    holds the enrollment key and the templates it enrolls; sets the threshold
    store     the server: keeps the encrypted gallery and passes it on; holds no key and sees ciphertexts only
    prober    holds the probe and the claim; multiplies the probe into the ciphertexts

    1. keeper -> store    once an enrollment: public key and encrypted templates
    2. store -> prober    once a gallery: the same
    3. prober -> keeper   a probe: all scores, re-randomized and masked: a share each, the keeper's less the threshold
    4. prober, keeper     the claimed template's score, chosen by the prober's index; [score >= 0] on shares
    5. the named party gets the bit

A score exists as two shares only, of which each is uniform. The lattice kernel's roles are turned round (`streaming`):
one short message a probe, however large the gallery. Empty places score below everybody, so that the store and the
prober know how many places there are and not how many are taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import (
    Evaluator,
    FrameSender,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    Precision,
    ciphertext_length,
    plan_stream,
    publish_model,
    receive_scores,
)
from ppspeech.crypto.shares import Cost, ShareEngine, check_index, choose, choose_cost, open_bits_to, open_cost
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.linear import SCORE_BITS, SLACK, WEIGHT_BITS
from ppspeech.protocols.speakers.decision import accept, accept_cost

MOST_PLACES = LatticeParameters().degree
"""Templates of one gallery, so that a probe's answer is one polynomial; more are several galleries."""

matching = register_protocol(
    "template_matching",
    functionality="whether the prober's embedding matches the template it claims, to the keeper or the prober; "
    "templates stay with the keeper, encrypted at the store",
    leakage="how many places the gallery has and when it changes",
    assumptions="all follow the protocol, the store colludes with nobody who holds the key; ring learning with errors, "
    "Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


@dataclass(frozen=True)
class GalleryPlan:
    """What all know of a gallery.

    Attributes:
        features: numbers of a template.
        places: templates there is room for.
        recipient: who learns whether a probe matches.
        norm: public bound on the lengths of templates and probes; their products stay within ±norm^2.
    """

    features: int
    places: int
    recipient: Literal["keeper", "prober"] = "prober"
    norm: float = 1.0

    def __post_init__(self) -> None:
        if self.features < 1 or not 1 <= self.places <= MOST_PLACES:
            raise ModelError(f"a gallery has features and 1 to {MOST_PLACES} places, got {self}")
        if self.recipient not in ("keeper", "prober"):
            raise ModelError(f"the decision goes to the keeper or the prober, got {self.recipient!r}")
        if not 0 < self.norm <= 1024:
            raise RangeError(f"lengths are bounded by up to 1024, got {self.norm}")

    @property
    def reach(self) -> int:
        """Scores less a threshold stay within ±2^reach."""
        return 1 + int(np.ceil(np.log2(self.norm**2)))

    @property
    def scale(self) -> Scale:
        """Of the shared scores."""
        return Scale(SCORE_BITS, SCORE_BITS - 2 - self.reach)

    @property
    def ring(self) -> Ring:
        """Of the shared scores."""
        return self.scale.ring

    @cached_property
    def product(self) -> MatrixPlan:
        """How a probe is multiplied into the encrypted templates."""
        weights = Scale(bits=30, fraction=WEIGHT_BITS)
        return plan_stream(
            self.features, self.places, precision=Precision(LatticeParameters(), self.norm, weights, self.scale)
        )

    @property
    def receiver(self) -> Side:
        """The recipient in the share engine: the prober, who knows the index, is its second party."""
        return Side.FIRST if self.recipient == "keeper" else Side.SECOND

    @property
    def cost(self) -> Cost:
        """What is computed on shares, a probe; the answer to it takes `product.job.reply_bytes` more."""
        return choose_cost(self.ring, 1, self.places) + accept_cost(self.ring) + open_cost(self.receiver, Ring(1), 1)

    def check(self, vectors: Reals, what: str) -> Reals:
        """Vectors `(count, features)`, none longer than the bound.

        Raises:
            RangeError: for other shapes, numbers that are not finite, and longer ones.
        """
        given = np.asarray(vectors, np.float64)
        if given.ndim != 2 or given.shape[1] != self.features:
            raise RangeError(f"{what} have {self.features} numbers each, got shape {given.shape}")
        length = float(np.linalg.norm(given, axis=1).max(initial=0.0))
        if not length <= self.norm * SLACK:
            raise RangeError(f"{what} are no longer than {self.norm}, got {length}: normalize them first")
        return given.clip(-self.norm, self.norm)


@dataclass(frozen=True, eq=False)
class EncryptedGallery:
    """What the store keeps, and gives to whoever probes.

    Attributes:
        plan: of the gallery.
        public_key: of the keeper.
        templates: encrypted, `plan.product.job.query_bytes` of them.
    """

    plan: GalleryPlan
    public_key: bytes
    templates: bytes

    def send(self, channel: Channel) -> None:
        """Give it to the other party, which calls `receive`."""
        channel.send(Kind.LATTICE_KEY, self.public_key)
        channel.send(Kind.GALLERY, self.templates)

    @staticmethod
    def receive(channel: Channel, plan: GalleryPlan) -> "EncryptedGallery":
        """Take one, of exactly the plan's size; what is in it is checked by who uses it."""
        key = channel.receive(Kind.LATTICE_KEY, ciphertext_length(plan.product.precision.parameters))
        return EncryptedGallery(plan, key, channel.receive(Kind.GALLERY, plan.product.job.query_bytes))


class Keeper:
    """The party with the enrollment key.

    Args:
        plan: of the gallery.
        templates: enrolled voices, `(enrolled, features)`, none longer than `plan.norm`.
        threshold: a probe matches at or above it.
        key: the enrollment key; a new one without.

    Raises:
        RangeError: for templates that cannot be, or a threshold out of their products' reach.
        ModelError: for more templates than places.
    """

    def __init__(self, plan: GalleryPlan, templates: Reals, threshold: float, key: KeyHolder | None = None) -> None:
        if not 1 <= len(templates) <= plan.places:
            raise ModelError(f"a gallery of {plan.places} places cannot hold {len(templates)} templates")
        if not abs(threshold) < plan.norm**2:
            raise RangeError(f"products lie within ±{plan.norm**2}, the threshold too, got {threshold}")
        self.plan = plan
        self._key = key or KeyHolder()
        self._templates = np.zeros((plan.places, plan.features))
        self._templates[: len(templates)] = plan.check(templates, "templates")
        offsets = np.full(plan.places, -(2.0**plan.reach))
        offsets[: len(templates)] = -threshold
        self._offsets = plan.ring.from_signed(plan.scale.encode(offsets))

    def publish(self) -> EncryptedGallery:
        """The gallery for the store, freshly encrypted: after each enrollment."""
        sent = publish_model(self._key, self.plan.product, self._templates.T)
        return EncryptedGallery(self.plan, self._key.public_key, sent)

    def answer(self, channel: Channel, setup: PairSetup) -> bool | None:
        """One probe: the decision, or None where it is the prober's.

        Args:
            channel: to the prober.
            setup: transfers with it, of `Side.FIRST`.
        """
        plan = self.plan
        with setup.session(channel):
            engine = ShareEngine(channel, setup, plan.cost)
            reply = channel.receive(Kind.REPLY, plan.product.job.reply_bytes)
            scores = plan.ring.reduce(receive_scores(self._key, plan.product, reply)[0] + self._offsets)
            return _decide(engine, plan, scores, None)


class Prober:
    """The party with probes, and a gallery to multiply them into.

    Raises:
        BadCiphertextError: if the gallery is malformed.
        WrongKeyError: if its parts are under different keys.
    """

    def __init__(self, gallery: EncryptedGallery) -> None:
        self.plan = gallery.plan
        self._sender = FrameSender(Evaluator(gallery.public_key), self.plan.product, gallery.templates)

    def ask(self, channel: Channel, setup: PairSetup, probe: Reals, claimed: int) -> bool | None:
        """One probe `(features,)`: the decision, or None where it is the keeper's.

        Args:
            channel: to the keeper.
            setup: transfers with it, of `Side.SECOND`.
            probe: the embedding, no longer than `plan.norm`.
            claimed: the place of the template it claims to match.

        Raises:
            RangeError: for a probe or a place that cannot be; nothing is sent then.
        """
        row = self.plan.check(np.asarray(probe, np.float64)[None, :], "probes")
        check_index(claimed, self.plan.places)
        with setup.session(channel):
            self._sender.prepare(1)
            engine = ShareEngine(channel, setup, self.plan.cost)
            reply, scores = self._sender.send(row)
            channel.send(Kind.REPLY, reply)
            return _decide(engine, self.plan, scores[0], claimed)


def _decide(engine: ShareEngine, plan: GalleryPlan, scores: Residues, claimed: int | None) -> bool | None:
    """Steps 4 and 5."""
    bit = accept(engine, choose(engine, scores[None, :], claimed, plan.ring), plan.ring)
    opened = open_bits_to(engine, plan.receiver, bit)
    return None if opened is None else bool(opened[0])


@matching.party("keeper")
def keeper(channels: Mapping[str, Channel], templates: list[list[float]], threshold: float, /, **public: Any) -> str:
    """Enroll templates at the store, and answer one probe; `features`, `places`, and the rest of `GalleryPlan`."""
    own = Keeper(_plan(public), np.asarray(templates, np.float64), threshold)
    own.publish().send(channels["store"])
    setup = PairSetup.agree(channels["prober"], Side.FIRST)
    return _say(own.answer(channels["prober"], setup))


@matching.party("store")
def store(channels: Mapping[str, Channel], /, **public: Any) -> str:
    """Keep a gallery and pass it on."""
    gallery = EncryptedGallery.receive(channels["keeper"], _plan(public))
    gallery.send(channels["prober"])
    return f"kept {len(gallery.templates):,} bytes of encrypted templates"


@matching.party("prober")
def prober(channels: Mapping[str, Channel], probe: list[float], claimed: int, /, **public: Any) -> str:
    """Get the gallery, and probe once."""
    own = Prober(EncryptedGallery.receive(channels["store"], _plan(public)))
    setup = PairSetup.agree(channels["keeper"], Side.SECOND)
    return _say(own.ask(channels["keeper"], setup, np.asarray(probe, np.float64), claimed))


def _plan(public: dict[str, Any]) -> GalleryPlan:
    try:
        return GalleryPlan(**public)
    except TypeError as error:
        raise ModelError(f"template matching takes the fields of GalleryPlan: {error}") from None


def _say(decision: bool | None) -> str:
    return {None: "the other party knows", True: "match", False: "no match"}[decision]
