"""Who of a million is this, if anyone? The voice meets the gallery in the clear, under a mask that was multiplied ahead.

    1. offline        client: r uniform, encrypted; server: W r under encryption, masked: a share each. Transfers.
    2. client         d = x - r, uniform                                                         features x 27 bits
    3. server         W d in the clear, a product of small whole numbers: with it, shares of W x
    4. client, server a sieve: shares of the best score and of its place, the last 64 compared whole
    5. client, server [best >= 0]; the place of a rejected one becomes 0, nobody's
    6. the named party gets the name: the client by a look-up at its share of the place, or the server the place

x and W are whole numbers, a cosine 1 being 2^24, in the ring of 27 bits where d and r add up to x and to nothing else;
so is every score exact but for the lattice's errors, far below a step of what is compared. r is used once: two voices
under one r would differ by what the server sees. Slots are places + 1; slot 0, and every empty one, scores below all
thresholds. Theorem 2.35 in docs/theory/asking.md.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring, Scale, pack_numbers, packed_bytes, uniform_residues, unpack_numbers
from ppspeech.crypto.lattice import Evaluator, KeyHolder, LatticeParameters, MatrixPlan, Precision, client_finish
from ppspeech.crypto.shares import (
    TEXT_RING,
    Cost,
    Shared,
    SharedBits,
    ShareEngine,
    blank,
    check_index,
    choose,
    is_negative,
    multiply_loaded,
    read_text,
    record,
    round_local,
    sieve,
    tell_texts,
    text_residues,
    text_size,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError, PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.linear import check_vectors
from ppspeech.protocols.speakers.crowd_shards import CrowdShard, OwnShards, Shards, Words
from ppspeech.protocols.speakers.identify import FOLLOWED, Identity, say

Recipient = Literal["client", "server"]

FRACTION = 12  # bits after the point of a voice's numbers, and of a template's
RANGE = Ring(27)  # of exact scores, steps of 2^-24: a range of ±4, where two scores differ by 3.5 at the most
KEPT = Ring(32)  # of a reply's shares: 5 bits more, in which the lattice's errors are
SCORES = Ring(20)  # of the scores that are carried along: steps of 2^-17
COARSE = 12  # bits that a sieve compares: steps of 2^-9
FINALISTS = 64
LEAST, MOST = 0.0, 1.5  # thresholds, so that cosines less them stay within the range
EMPTY = -1.0  # the score of an empty slot: below all thresholds
MOST_SLOTS = 1 << 20
MOST_NUMBERS = 1 << 28  # of a gallery: 8 bytes each, transformed

crowd = register_protocol(
    "speaker_identification_crowd",
    functionality="the name of the enrolled speaker, of up to a million, whose cosine is furthest above its own "
    "threshold, or nobody's if none is, to the client or the server",
    leakage="the number of places and of an embedding's numbers, and the longest name there may be; of speakers whose "
    "scores are less than 14/512 apart any may count as the best",
    assumptions=FOLLOWED,
)


@dataclass(frozen=True)
class CrowdPlan:
    """One question, as both parties know it: `places`, empty ones included, of templates of `features` numbers; who
    gets the name. Raises ModelError for sizes or a recipient that cannot be.
    """

    features: int
    places: int
    recipient: Recipient = "client"
    longest_name: int = 21

    def __post_init__(self) -> None:
        if self.features < 1 or not 1 <= self.places < MOST_SLOTS or self.features * self.places > MOST_NUMBERS:
            raise ModelError(
                f"a crowd has up to {MOST_SLOTS - 1:,} places and {MOST_NUMBERS:,} numbers, got {self.places:,} places "
                f"of {self.features}"
            )
        if self.recipient not in ("client", "server"):
            raise ModelError(f"the name goes to the client or the server, got {self.recipient!r}")
        if not 1 <= self.longest_name <= 256:
            raise ModelError(f"names have up to 1 to 256 bytes, got {self.longest_name}")

    @property
    def slots(self) -> int:
        """Places, and nobody's before them."""
        return 1 + self.places

    @property
    def names(self) -> tuple[int, int]:
        """The shape of all places' names: `(places, residues)`."""
        return self.places, text_size(self.longest_name)

    @cached_property
    def product(self) -> MatrixPlan:
        """How the mask r is multiplied into one block of slots."""
        weights = Scale(bits=16, fraction=0)
        result = Scale(KEPT.bits, KEPT.bits - RANGE.bits)
        precision = Precision(LatticeParameters(), limit=2.0 ** (RANGE.bits - 2), weights=weights, result=result)
        size = precision.parameters.degree
        return MatrixPlan(1, self.features, size, precision, block_rows=1, block_inner=1, block_columns=size)

    @property
    def blocks(self) -> int:
        """Of slots."""
        return -(-self.slots // self.product.columns)

    @property
    def shift_bytes(self) -> int:
        """What the client says of its voice."""
        return packed_bytes(self.features, RANGE.bits)

    @property
    def cost(self) -> Cost:
        """What is computed on shares."""
        return _cost(self)

    @property
    def claim_cost(self) -> Cost:
        """What is computed on shares for a claim."""
        return _claim_cost(self)

    @property
    def product_bytes(self) -> int:
        """Of the product, offline and online."""
        job = self.product.job
        return job.query_bytes + self.blocks * job.reply_bytes + self.shift_bytes

    def numbers(self, voice: Reals) -> Residues:
        """The client's embedding as residues. Raises RangeError for another size, or one longer than 1."""
        row = check_vectors(np.asarray(voice, np.float64)[None], self.features, 1.0, "embeddings")[0]
        return RANGE.from_signed(np.rint(row * 2.0**FRACTION).astype(np.int64))


@lru_cache(maxsize=64)
def _cost(plan: CrowdPlan) -> Cost:
    return record(lambda engine: name_of_best(engine, plan, blank(plan.slots)))


@lru_cache(maxsize=64)
def _claim_cost(plan: CrowdPlan) -> Cost:
    return record(lambda engine: decide_claim(engine, blank(plan.slots), 0))


@dataclass(frozen=True, eq=False)
class Crowd:
    """The server's side of a gallery: shards of templates, what is added to every slot's score, and names."""

    plan: CrowdPlan
    shards: Shards
    offsets: Words
    names: Residues

    @staticmethod
    def of(
        plan: CrowdPlan,
        templates: Reals,
        names: list[str],
        thresholds: Reals | float,
        places: NDArray[np.int64] | None = None,
        workers: int = WORKERS,
    ) -> "Crowd":
        """Directions `(speakers, features)` at some places, the first by default, with a threshold each, in one shard.

        Raises ModelError for more speakers than places, names that do not fit, or not one for each; RangeError for
        templates longer than 1, or thresholds that are not 0 to 1.5.
        """
        weights, offsets, spelled = crowd_arrays(plan, templates, names, thresholds, places)
        return Crowd(plan, OwnShards([CrowdShard(plan.product, weights, workers)]), offsets, spelled)


def crowd_arrays(
    plan: CrowdPlan,
    templates: Reals,
    names: list[str],
    thresholds: Reals | float,
    places: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int16], Words, Residues]:
    """What a crowd is made of: whole blocks of weights, offsets of slots, and names of places."""
    speakers = len(templates)
    if not speakers <= plan.places:
        raise ModelError(f"{speakers} speakers do not fit the {plan.places} places of the plan")
    if len(names) != speakers:
        raise ModelError(f"{speakers} templates need as many names, got {len(names)}")
    least = np.broadcast_to(np.asarray(thresholds, np.float64), (speakers,))
    if not ((least >= LEAST) & (least <= MOST)).all():
        raise RangeError(f"thresholds of a crowd are cosines of {LEAST:g} to {MOST:g}")
    at = np.arange(speakers) if places is None else places
    weights = np.zeros((plan.blocks * plan.product.columns, plan.features), np.int16)
    weights[1 + at] = crowd_weights(plan, templates)
    offsets = np.full(plan.slots, round(EMPTY * 4.0**FRACTION), np.int64)
    offsets[1 + at] = np.rint(-least * 4.0**FRACTION).astype(np.int64)
    spelled = np.zeros(plan.names, np.uint64)
    if speakers:
        spelled[at] = text_residues(names, plan.longest_name)
    return weights, offsets.astype(np.uint32), spelled


def crowd_weights(plan: CrowdPlan, templates: Reals) -> NDArray[np.int16]:
    """Directions `(speakers, features)` as whole numbers. Raises RangeError for one that is longer than 1."""
    at_a_time, found = 1 << 16, np.empty((len(templates), plan.features), np.int16)
    for start in range(0, len(templates), at_a_time):
        some = check_vectors(templates[start : start + at_a_time], plan.features, 1.0, "templates")
        found[start : start + at_a_time] = np.rint(some * 2.0**FRACTION)
    return found


class Blind:
    """One party's half of a product with a mask, of one question: used once, since two voices under one mask would
    differ by what the server sees.

    `mask`: the client's r, `(features,)` mod 2^27; None for the server. `share`: of W r, `(slots,)` mod 2^32.
    """

    def __init__(self, mask: Residues | None, share: Residues) -> None:
        self._mask = mask
        self._share: Residues | None = share

    def take(self) -> tuple[Residues | None, Residues]:
        """Mask and share. Raises PpspeechError the second time."""
        if self._share is None:
            raise PpspeechError("this mask has hidden a voice already: draw another one")
        taken, self._share = (self._mask, self._share), None
        self._mask = None
        return taken

    def __reduce__(self) -> NoReturn:
        raise TypeError("a mask is used once: it cannot be pickled or copied")


@dataclass(eq=False)
class Prepared:
    """What a party made offline for one question: the engine, and its half of the product."""

    met: Meeting
    plan: CrowdPlan
    engine: ShareEngine
    blind: Blind = field(repr=False)


def prepare_as_client(met: Meeting, plan: CrowdPlan, cost: Cost | None = None) -> Prepared:
    """Step 1, in a session: r is drawn, and W r becomes shares; transfers for `cost`, by default a question's."""
    assert isinstance(met.lattice, KeyHolder)
    prime, job = met.lattice.parameters.prime, plan.product.job
    mask = uniform_residues(plan.features, RANGE.bits)
    polynomials = np.zeros((plan.features, met.lattice.parameters.degree), np.int64)
    polynomials[:, 0] = [(int(each) * prime + (1 << (RANGE.bits - 1))) >> RANGE.bits for each in mask]
    met.channel.send(Kind.QUERY, met.lattice.query(job, polynomials))
    engine = ShareEngine(met.channel, met.setup, cost or plan.cost)
    replies = [met.channel.receive(Kind.REPLY, job.reply_bytes) for _ in range(plan.blocks)]
    share = np.concatenate([client_finish(met.lattice, plan.product, reply)[0] for reply in replies])
    return Prepared(met, plan, engine, Blind(mask, share[: plan.slots]))


def prepare_as_server(met: Meeting, crowd: Crowd, cost: Cost | None = None) -> Prepared:
    """Step 1, in a session: the shards multiply while transfers are made."""
    assert isinstance(met.lattice, Evaluator)
    plan, job = crowd.plan, crowd.plan.product.job
    query = met.channel.receive(Kind.QUERY, job.query_bytes)
    with ThreadPoolExecutor(max_workers=1) as aside:
        given = (met.lattice.public_key, met.lattice.coins, query)
        asked = aside.submit(crowd.shards.ask, "reply", *(np.frombuffer(each, np.uint8) for each in given))
        engine = ShareEngine(met.channel, met.setup, cost or plan.cost)
        answers = asked.result()
    for replies, _ in answers:
        for reply in replies:
            met.channel.send(Kind.REPLY, reply.tobytes())
    share = np.concatenate([each for _, each in answers])[: plan.slots]
    return Prepared(met, plan, engine, Blind(None, share.astype(np.uint64)))


def shift_as_client(prepared: Prepared, voice: Residues) -> Residues:
    """Step 2: our shares of all scores, `(slots,)`, once the server has the voice under its mask."""
    mask, share = prepared.blind.take()
    assert mask is not None
    prepared.met.channel.send(Kind.MASKED_VOICE, pack_numbers(RANGE.reduce(voice - mask), RANGE.bits))
    return share


def shift_as_server(prepared: Prepared, crowd: Crowd) -> Residues:
    """Step 3: our shares of all scores, less thresholds."""
    plan = crowd.plan
    data = prepared.met.channel.receive(Kind.MASKED_VOICE, plan.shift_bytes)
    shift = unpack_numbers(data, plan.features, RANGE.bits).astype(np.uint32)
    _, share = prepared.blind.take()
    scores = np.concatenate(crowd.shards.ask("times", shift))[: plan.slots] + crowd.offsets
    return KEPT.reduce(share + (scores.astype(np.uint64) << np.uint64(KEPT.bits - RANGE.bits)))


def scores_of(engine: ShareEngine, shares: Residues) -> Shared:
    """Shares mod 2^32 in steps that are compared, `(slots,)`."""
    return round_local(Shared(engine, shares, KEPT), KEPT.bits - SCORES.bits)


def name_of_best(engine: ShareEngine, plan: CrowdPlan, shares: Residues, crowd: Crowd | None = None) -> Identity | None:
    """Steps 4 to 6 of either party, from our shares `(slots,)`: the answer, or None where it is another's."""
    with engine.in_flights():
        best, place = sieve(scores_of(engine, shares), COARSE, FINALISTS)
        accepted = ~SharedBits(engine, is_negative(engine, best.residues, SCORES))
        width = plan.places.bit_length()
        _, place = multiply_loaded(engine, accepted.own, np.zeros(1, np.uint64), place, Ring(1), width)
    if plan.recipient == "client":
        told = tell_texts(engine, place, None if crowd is None else crowd.names, plan.names, TEXT_RING)
        return None if told is None else Identity(read_text(told[0]))
    bits = (place >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    opened = SharedBits(engine, bits.astype(np.uint8)).open_to(Side.FIRST)
    if opened is None:
        return None
    assert crowd is not None
    at = int(opened @ (1 << np.arange(width)))
    return Identity(read_text(crowd.names[at - 1]) if 0 < at <= plan.places else None)


def decide_claim(
    engine: ShareEngine, shares: Residues, claimed: int | None, recipient: Recipient = "server"
) -> bool | None:
    """Whether the score at the claimed place, which the client alone knows, reaches its threshold: to one party."""
    score = choose(scores_of(engine, shares)[None, 1:], claimed)
    decision = ~SharedBits(engine, is_negative(engine, score.residues, SCORES))
    opened = decision.open_to(Side.SECOND if recipient == "client" else Side.FIRST)
    return None if opened is None else bool(opened[0])


def identify_in_crowd_as_client(met: Meeting, plan: CrowdPlan, voice: Reals) -> Identity | None:
    """The client's program: the answer, or None where it is the server's. A voice that cannot be is a RangeError before
    any sending.
    """
    numbers = plan.numbers(voice)
    with met.session():
        prepared = prepare_as_client(met, plan)
        return name_of_best(prepared.engine, plan, shift_as_client(prepared, numbers))


def identify_in_crowd_as_server(met: Meeting, crowd: Crowd) -> Identity | None:
    """The server's program: the answer, or None where it is the client's."""
    with met.session():
        prepared = prepare_as_server(met, crowd)
        return name_of_best(prepared.engine, crowd.plan, shift_as_server(prepared, crowd), crowd)


def verify_in_crowd_as_client(
    met: Meeting, plan: CrowdPlan, voice: Reals, claimed: int, recipient: Recipient = "server"
) -> bool | None:
    """A claim of a place among all: the decision, or None where it is the server's. Raises RangeError for a voice or a
    place that cannot be; nothing is sent then.
    """
    numbers = plan.numbers(voice)
    check_index(claimed, plan.places)
    with met.session():
        prepared = prepare_as_client(met, plan, plan.claim_cost)
        return decide_claim(prepared.engine, shift_as_client(prepared, numbers), claimed, recipient)


def verify_in_crowd_as_server(met: Meeting, crowd: Crowd, recipient: Recipient = "server") -> bool | None:
    """A claim of a place among all: the decision, or None where it is the client's."""
    with met.session():
        prepared = prepare_as_server(met, crowd, crowd.plan.claim_cost)
        return decide_claim(prepared.engine, shift_as_server(prepared, crowd), None, recipient)


@crowd.party("client")
def client(party: Party, voice: list[float], /, **terms: Any) -> str:
    """Meet, and ask once with an embedding."""
    return say(identify_in_crowd_as_client(meet_as_client(party.channel), _plan(terms), np.asarray(voice)))


@crowd.party("server")
def server(
    party: Party, templates: list[list[float]], names: list[str], thresholds: list[float] | float, /, **terms: Any
) -> str:
    """Meet, and answer once for templates, one row a speaker, with a threshold each or one for all."""
    own = Crowd.of(_plan(terms), np.asarray(templates, np.float64), names, np.asarray(thresholds, np.float64))
    return say(identify_in_crowd_as_server(meet_as_server(party.channel), own))


def _plan(terms: dict[str, Any]) -> CrowdPlan:
    try:
        return CrowdPlan(**terms)
    except TypeError as error:
        raise ModelError(f"the public terms are those of CrowdPlan: {error}") from None
