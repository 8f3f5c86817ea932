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

import hashlib
import multiprocessing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import (
    COIN_BYTES,
    Evaluator,
    FrameSender,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    Precision,
    key_length,
    plan_stream,
    publish_model,
    receive_scores,
)
from ppspeech.crypto.shares import Cost, ShareEngine, check_index
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import ModelError, PpspeechError, RangeError, WrongSessionError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.linear import WEIGHT_BITS, LinearPlan, check_vectors
from ppspeech.protocols.speakers.verify import ASSUMPTIONS, Verification, decide

MOST_PLACES = LatticeParameters().degree
"""Templates of one gallery, so that a probe's answer is one polynomial; more are several galleries."""


@dataclass(frozen=True)
class GalleryPlan:
    """What all know of a gallery: `places` for templates of so many `features`, and who learns whether a probe matches.

    `norm` is the public bound on the lengths of templates and probes; their products stay within ±norm^2.
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
        if not 1 / 32 <= self.norm <= 512:
            raise RangeError(f"lengths are bounded by 1/32 to 512, got {self.norm}")

    @property
    def reach(self) -> int:
        """Scores less a threshold stay within ±2^reach."""
        return 1 + int(np.ceil(np.log2(self.norm**2)))

    @property
    def verification(self) -> Verification:
        """A probe, once its scores are shared: the prober, who knows the index, is the client."""
        scores = LinearPlan(self.features, self.places, norm=self.norm, reach=self.reach)
        return Verification(scores, "server" if self.recipient == "keeper" else "client")

    @cached_property
    def product(self) -> MatrixPlan:
        """How a probe is multiplied into the encrypted templates."""
        weights = Scale(bits=30, fraction=WEIGHT_BITS)
        precision = Precision(LatticeParameters(), self.norm, weights, self.verification.plan.scale)
        return plan_stream(self.features, self.places, precision=precision)

    @property
    def cost(self) -> Cost:
        """What is computed on shares, a probe; the answer to it takes `product.job.reply_bytes` more."""
        return self.verification.cost


matching = register_protocol(
    "template_matching",
    functionality="whether the prober's embedding matches the template it claims, to the keeper or the prober; "
    "templates stay with the keeper, encrypted at the store",
    leakage="how many places the gallery has and when it changes",
    assumptions=f"all follow the protocol, the store colludes with nobody who holds the key; {ASSUMPTIONS}",
    terms=GalleryPlan,
)


@dataclass(frozen=True, eq=False)
class EncryptedGallery:
    """What the store keeps and gives to whoever probes: the keeper's key, with its coins, and templates encrypted
    under it.
    """

    plan: GalleryPlan
    public_key: bytes
    templates: bytes

    @property
    def digest(self) -> bytes:
        """By which the keeper names it to probers: a store that moves or mixes templates is found out."""
        return hashlib.sha256(self.public_key + self.templates).digest()

    def send(self, channel: Channel) -> None:
        """Give it to the other party, which calls `receive`."""
        channel.send(Kind.LATTICE_KEY, self.public_key)
        channel.send(Kind.GALLERY, self.templates)

    @staticmethod
    def receive(channel: Channel, plan: GalleryPlan) -> "EncryptedGallery":
        """Take one, of exactly the plan's size; what is in it is checked by who uses it."""
        key = channel.receive(Kind.LATTICE_KEY, COIN_BYTES + key_length(plan.product.precision.parameters))
        return EncryptedGallery(plan, key, channel.receive(Kind.GALLERY, plan.product.job.query_bytes))


PROBES_A_KEY = LatticeParameters().leakable_bits
"""A prober that sends something else than a probe makes its bit depend on the key: so many probes, of all probers
together, and a keeper needs a new key.
"""


class KeySpentError(PpspeechError):
    """The keeper's key has answered as many probes as are safe: it publishes under a new one."""


class Keeper:
    """The party with the enrollment key, which answers `PROBES_A_KEY` probes in all processes that inherit it.

    Templates are `(enrolled, features)`, none longer than `plan.norm`, at `places` of their own, or the first ones; a
    probe matches at or above the threshold, which is one for all or each template's own.

    Raises RangeError for templates that cannot be, or a threshold out of their products' reach; ModelError for more
    templates than places.
    """

    def __init__(
        self,
        plan: GalleryPlan,
        templates: Reals,
        threshold: float | Reals,
        key: KeyHolder | None = None,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        if not 1 <= len(templates) <= plan.places:
            raise ModelError(f"a gallery of {plan.places} places cannot hold {len(templates)} templates")
        if not (np.abs(threshold) < plan.norm**2).all():
            raise RangeError(f"products lie within ±{plan.norm**2}, the threshold too, got {threshold}")
        self.plan = plan
        self._key = key or KeyHolder()
        self._left = multiprocessing.Value("Q", PROBES_A_KEY)
        self._templates = np.zeros((plan.places, plan.features))
        used = np.arange(len(templates)) if places is None else places
        self._templates[used] = check_vectors(templates, plan.features, plan.norm, "templates")
        offsets = np.full(plan.places, -(2.0**plan.reach))
        offsets[used] = np.negative(threshold)
        scores = plan.verification.plan
        self._offsets = scores.ring.from_signed(scores.scale.encode(offsets))

    @property
    def is_spent(self) -> bool:
        """Whether its key answers no more."""
        return bool(self._left.value == 0)

    def publish(self) -> EncryptedGallery:
        """The gallery for the store, freshly encrypted: after each enrollment."""
        sent = publish_model(self._key, self.plan.product, self._templates.T)
        return EncryptedGallery(self.plan, self._key.coins + self._key.public_key, sent)

    def answer(self, channel: Channel, setup: PairSetup) -> bool | None:
        """One probe: the decision, or None where it is the prober's. `setup` is of `Side.FIRST`. Raises KeySpentError,
        before anything is decrypted, if the key has answered enough.
        """
        plan = self.plan
        with self._left.get_lock():
            if self.is_spent:
                raise KeySpentError(f"this key has answered {PROBES_A_KEY} probes: publish under a new one")
            self._left.value -= 1
        with setup.session(channel):
            engine = ShareEngine(channel, setup, plan.cost)
            reply = channel.receive(Kind.REPLY, plan.product.job.reply_bytes)
            job = plan.verification
            shares = job.plan.ring.reduce(receive_scores(self._key, plan.product, reply) + self._offsets)
            return decide(engine, job, shares)


class Prober:
    """The party with probes, and a gallery to multiply them into.

    Raises BadCiphertextError if the gallery is malformed; WrongKeyError if its parts are under different keys.
    """

    def __init__(self, gallery: EncryptedGallery) -> None:
        self.plan = gallery.plan
        coins, key = gallery.public_key[:COIN_BYTES], gallery.public_key[COIN_BYTES:]
        self._sender = FrameSender(Evaluator(key, coins), self.plan.product, gallery.templates)

    def ask(self, channel: Channel, setup: PairSetup, probe: Reals, claimed: int) -> bool | None:
        """One probe `(features,)`, claimed to match a place: the decision, or None where it is the keeper's.

        `setup` is of `Side.SECOND`. Raises RangeError for a probe or a place that cannot be; nothing is sent then.
        """
        row = check_vectors(np.asarray(probe, np.float64)[None], self.plan.features, self.plan.norm, "probes")
        check_index(claimed, self.plan.places)
        with setup.session(channel):
            self._sender.prepare(1)
            engine = ShareEngine(channel, setup, self.plan.cost)
            reply, shares = self._sender.send(row)
            channel.send(Kind.REPLY, reply)
            return decide(engine, self.plan.verification, shares, claimed)


@matching.party("keeper")
def keeper(party: Party, templates: list[list[float]], threshold: float, /, **terms: Any) -> str:
    """Enroll templates at the store, and answer one probe."""
    own = Keeper(GalleryPlan(**terms), np.asarray(templates, np.float64), threshold)
    gallery, channel = own.publish(), party.channels["prober"]
    gallery.send(party.channels["store"])
    channel.send(Kind.GALLERY_DIGEST, gallery.digest)
    return _say(own.answer(channel, PairSetup.agree(channel, Side.FIRST)))


@matching.party("store")
def store(party: Party, /, **terms: Any) -> str:
    """Keep a gallery and pass it on."""
    gallery = EncryptedGallery.receive(party.channels["keeper"], GalleryPlan(**terms))
    gallery.send(party.channels["prober"])
    return f"kept {len(gallery.templates):,} bytes of encrypted templates"


@matching.party("prober")
def prober(party: Party, probe: list[float], claimed: int, /, **terms: Any) -> str:
    """Get the gallery, and probe once."""
    gallery, channel = EncryptedGallery.receive(party.channels["store"], GalleryPlan(**terms)), party.channels["keeper"]
    if channel.receive(Kind.GALLERY_DIGEST, len(gallery.digest)) != gallery.digest:
        raise WrongSessionError("the gallery at the store is not the one that the keeper has published")
    own = Prober(gallery)
    return _say(own.ask(channel, PairSetup.agree(channel, Side.SECOND), np.asarray(probe), claimed))


def _say(decision: bool | None) -> str:
    return {None: "the other party knows", True: "match", False: "no match"}[decision]
