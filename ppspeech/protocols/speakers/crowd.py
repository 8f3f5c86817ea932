"""Who of a million is this, if anyone? The voice meets the gallery in the clear, masked; the mask has met it before.

    1. offline        client: r uniform, encrypted; server: W r under encryption, masked: a share each. Transfers.
    2. client         d = x - r, uniform                                                         features x 27 bits
    3. server         W d in the clear, a product of small whole numbers: with it, shares of W x
    4. client, server a sieve: shares of the best score and of its place, the last 64 compared whole
    5. client, server [best >= 0]; the place of a rejected one becomes 0, nobody's
    6. the named party gets the name: the client by a look-up at its share of the place, or the server the place

x and W are whole numbers, a cosine 1 being 2^24, in the ring of 27 bits where d and r add up to x and to nothing else;
so is every score exact but for the lattice's errors, far below a step of what is compared. r is used once: two voices
under one r would differ by what the server sees. Both products are of one W, whoever is enrolled in between. Slots are
places + 1; slot 0, and every empty one, scores below all thresholds. Theorem 2.35 in docs/theory/asking.md.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ppspeech.arrays import Bits, Reals, Residues
from ppspeech.crypto import Ring, pack_numbers, uniform_residues, unpack_numbers
from ppspeech.crypto.lattice import Evaluator, KeyHolder, client_finish
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
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError, PpspeechError
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.speakers.crowd_gallery import (
    COARSE,
    FINALISTS,
    KEPT,
    RANGE,
    SCORES,
    Crowd,
    CrowdTerms,
    Entries,
    Recipient,
)
from ppspeech.protocols.speakers.crowd_shards import cut
from ppspeech.protocols.speakers.identify import TOLD, Identity, say

crowd = register_protocol(
    "speaker_identification_crowd",
    functionality="the name of the enrolled speaker, of up to a million, whose cosine is furthest above its own "
    "threshold, or nobody's if none is, to the client or the server",
    leakage="the number of places and of an embedding's numbers, and the longest name there may be; of speakers whose "
    "scores are less than 14/512 apart any may count as the best",
    assumptions=TOLD,
    terms=CrowdTerms,
)


@lru_cache(maxsize=64)
def name_cost(plan: CrowdTerms) -> Cost:
    """What is computed on shares for a name; the product's bytes are `plan.product_bytes`."""
    return record(lambda engine: name_of_best(engine, plan, blank(plan.slots)))


@lru_cache(maxsize=64)
def claim_cost(plan: CrowdTerms, recipient: Recipient = "server") -> Cost:
    """What is computed on shares for a claim, whose decision goes to one party."""
    return record(lambda engine: decide_claim(engine, blank(plan.slots), 0, recipient))


class Blind:
    """One party's half of a product with a mask, of one question: used once, since two voices under one mask would
    differ by what the server sees.

    `known`: of the client r itself, `(features,)` mod 2^27; of the server the slots of W that were filled. `share`: of
    W r, `(slots,)` mod 2^32.
    """

    def __init__(self, known: Residues | Bits, share: Residues) -> None:
        self._taken: tuple[Residues | Bits, Residues] | None = (known, share)

    def take(self) -> tuple[Any, Residues]:
        """What is known, and the share. Raises PpspeechError the second time, whatever became of the first."""
        if self._taken is None:
            raise PpspeechError("this mask has hidden a voice already: draw another one")
        taken, self._taken = self._taken, None
        return taken

    def __reduce__(self) -> NoReturn:
        raise TypeError("a mask is used once: it cannot be pickled or copied")


@dataclass(eq=False)
class Prepared:
    """What a party made offline for one question: the engine, and its half of the product; of the server also the
    crowd, as it was then.
    """

    met: Meeting
    plan: CrowdTerms
    engine: ShareEngine
    blind: Blind = field(repr=False)
    crowd: Crowd | None = None


def prepare_as_client(met: Meeting, plan: CrowdTerms, cost: Cost | None = None) -> Prepared:
    """Step 1, in a session: r is drawn, and W r becomes shares; transfers for `cost`, by default a question's."""
    assert isinstance(met.lattice, KeyHolder)
    prime, job = met.lattice.parameters.prime, plan.product.job
    mask = uniform_residues(plan.features, RANGE.bits)
    polynomials = np.zeros((plan.features, met.lattice.parameters.degree), np.int64)
    polynomials[:, 0] = [(int(each) * prime + (1 << (RANGE.bits - 1))) >> RANGE.bits for each in mask]
    met.channel.send(Kind.QUERY, met.lattice.query(job, polynomials))
    engine = ShareEngine(met.channel, met.setup, cost or name_cost(plan))
    replies = [met.channel.receive(Kind.REPLY, job.reply_bytes) for _ in range(plan.blocks)]
    share = np.concatenate([client_finish(met.lattice, plan.product, reply)[0] for reply in replies])
    return Prepared(met, plan, engine, Blind(mask, share[: plan.slots]))


def prepare_as_server(met: Meeting, crowd: Crowd, cost: Cost | None = None) -> Prepared:
    """Step 1, in a session: the shards multiply while transfers are made. Raises ModelError where they do not hold
    everybody of the crowd; nothing is sent then.
    """
    assert isinstance(met.lattice, Evaluator)
    plan, job = crowd.plan, crowd.plan.product.job
    query = met.channel.receive(Kind.QUERY, job.query_bytes)
    with ThreadPoolExecutor(max_workers=1) as aside:
        given = (met.lattice.public_key, met.lattice.coins, query)
        asked = aside.submit(crowd.shards.ask, "reply", *(np.frombuffer(each, np.uint8) for each in given))
        engine = ShareEngine(met.channel, met.setup, cost or name_cost(plan))
        replies, share, filled = cut(plan.product, np.concatenate(asked.result()))
    if len(replies) != plan.blocks or (crowd.filled > filled[: plan.slots]).any():
        raise ModelError("the shards do not hold everybody who is in this crowd")
    for reply in replies:
        met.channel.send(Kind.REPLY, reply.tobytes())
    return Prepared(met, plan, engine, Blind(filled, share[: plan.slots].astype(np.uint64)), crowd)


def shift_as_client(prepared: Prepared, voice: Residues) -> Residues:
    """Step 2: our shares of all scores, `(slots,)`, once the server has the voice under its mask."""
    mask, share = prepared.blind.take()
    prepared.met.channel.send(Kind.MASKED_VOICE, pack_numbers(RANGE.reduce(voice - mask), RANGE.bits))
    return share


def shift_as_server(prepared: Prepared) -> Residues:
    """Step 3: our shares of all scores, less thresholds, of the gallery that the mask has met. Raises ModelError where
    the shards no longer hold it.
    """
    plan, crowd = prepared.plan, prepared.crowd
    assert crowd is not None
    data = prepared.met.channel.receive(Kind.MASKED_VOICE, plan.shift_bytes)
    shift = unpack_numbers(data, plan.features, RANGE.bits).astype(np.uint32)
    filled, share = prepared.blind.take()
    scores = np.concatenate(crowd.shards.ask("times", shift, filled))[: plan.slots] + crowd.offsets
    return KEPT.reduce(share + (scores.astype(np.uint64) << np.uint64(KEPT.bits - RANGE.bits)))


def scores_of(engine: ShareEngine, shares: Residues) -> Shared:
    """Shares mod 2^32 in steps that are compared, `(slots,)`."""
    return round_local(Shared(engine, shares, KEPT), KEPT.bits - SCORES.bits)


def name_of_best(
    engine: ShareEngine, plan: CrowdTerms, shares: Residues, crowd: Crowd | None = None
) -> Identity | None:
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


def identify_in_crowd_as_client(met: Meeting, plan: CrowdTerms, voice: Reals) -> Identity | None:
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
        return name_of_best(prepared.engine, crowd.plan, shift_as_server(prepared), crowd)


def verify_in_crowd_as_client(
    met: Meeting, plan: CrowdTerms, voice: Reals, claimed: int, recipient: Recipient = "server"
) -> bool | None:
    """A claim of a place among all: the decision, or None where it is the server's. Raises RangeError for a voice or a
    place that cannot be; nothing is sent then.
    """
    numbers = plan.numbers(voice)
    check_index(claimed, plan.places)
    with met.session():
        prepared = prepare_as_client(met, plan, claim_cost(plan, recipient))
        return decide_claim(prepared.engine, shift_as_client(prepared, numbers), claimed, recipient)


def verify_in_crowd_as_server(met: Meeting, crowd: Crowd, recipient: Recipient = "server") -> bool | None:
    """A claim of a place among all: the decision, or None where it is the client's."""
    with met.session():
        prepared = prepare_as_server(met, crowd, claim_cost(crowd.plan, recipient))
        return decide_claim(prepared.engine, shift_as_server(prepared), None, recipient)


@crowd.party("client")
def client(party: Party, voice: list[float], /, **terms: Any) -> str:
    """Meet, and ask once with an embedding."""
    return say(identify_in_crowd_as_client(meet_as_client(party.channel), _plan(terms), np.asarray(voice)))


@crowd.party("server")
def server(
    party: Party, templates: list[list[float]], names: list[str], thresholds: list[float] | float, /, **terms: Any
) -> str:
    """Meet, and answer once for templates, one row a speaker, with a threshold each or one for all."""
    plan = _plan(terms)
    entries = Entries.of(plan, np.asarray(templates, np.float64), names, np.asarray(thresholds, np.float64))
    return say(identify_in_crowd_as_server(meet_as_server(party.channel), Crowd.of(plan, entries)))


def _plan(terms: dict[str, Any]) -> CrowdTerms:
    try:
        return CrowdTerms(**terms)
    except TypeError as error:
        raise ModelError(f"the public terms are those of CrowdTerms: {error}") from None
