"""A gallery of millions: sizes that both parties know, speakers as small whole numbers, and where they are kept.

x and W are whole numbers, a cosine 1 being 2^24, in a ring of 27 bits. Slots are places + 1: slot 0, and every empty
one, scores below all thresholds.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Reals, Residues
from ppspeech.crypto import Ring, Scale, packed_bytes
from ppspeech.crypto.lattice import LatticeParameters, MatrixPlan, Precision
from ppspeech.crypto.shares import text_residues, text_size
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.meeting import WORKERS
from ppspeech.protocols.scores.linear import check_vectors
from ppspeech.protocols.speakers.crowd_shards import CrowdShard, OwnShards, Shards, Short, Weights

Recipient = Literal["client", "server"]

FRACTION = 12  # bits after the point of a voice's numbers, and of a template's
RANGE = Ring(27)  # of exact scores, steps of 2^-24: a range of ±4, where two scores differ by 3.625 at the most
KEPT = Ring(32)  # of a reply's shares: 5 bits more, in which the lattice's errors are
SCORES = Ring(20)  # of the scores that are carried along: steps of 2^-17
COARSE = 12  # bits that a sieve compares: steps of 2^-9
FINALISTS = 64
LEAST, MOST = 0.0, 1.5  # thresholds, so that cosines less them stay within the range
EMPTY = -1.625  # added to the cosine of a slot that is nobody's, or not yet: lower than by any threshold
LOWEST = np.uint32(round(EMPTY * 4**FRACTION) % (1 << 32))  # the same as an offset
AT_A_TIME = 1 << 14  # speakers that are put together
MOST_SLOTS = 1 << 20
MOST_FEATURES = (1 << 14) - 1  # of a voice: as many as one product adds up
MOST_NUMBERS = 1 << 28  # of a gallery: 8 bytes each, transformed


@dataclass(frozen=True)
class CrowdTerms:
    """One question, as both parties know it: `places`, empty ones included, of templates of `features` numbers; who
    gets the name. Raises ModelError for sizes or a recipient that cannot be.
    """

    features: int
    places: int
    recipient: Recipient = "client"
    longest_name: int = 21

    def __post_init__(self) -> None:
        fits = self.features * self.places <= MOST_NUMBERS
        if not 1 <= self.features <= MOST_FEATURES or not 1 <= self.places < MOST_SLOTS or not fits:
            raise ModelError(
                f"a crowd has up to {MOST_SLOTS - 1:,} places, of up to {MOST_FEATURES:,} numbers each, and "
                f"{MOST_NUMBERS:,} in all, got {self.places:,} places of {self.features:,}"
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
    def product_bytes(self) -> int:
        """Of the product, offline and online."""
        job = self.product.job
        return job.query_bytes + self.blocks * job.reply_bytes + self.shift_bytes

    def numbers(self, voice: Reals) -> Residues:
        """The client's embedding as residues. Raises RangeError for another size, or one longer than 1."""
        row = check_vectors(np.asarray(voice, np.float64)[None], self.features, 1.0, "embeddings")[0]
        return RANGE.from_signed(np.rint(row * 2.0**FRACTION).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Entries:
    """Speakers as a crowd holds them: `weights` `(speakers, features)`; `offsets` `(speakers,)`, which are added to
    scores, in steps of 2^-24; `names` `(speakers, residues)`.
    """

    weights: Weights
    offsets: Short
    names: Residues

    @staticmethod
    def of(plan: CrowdTerms, templates: Reals, names: list[str], thresholds: Reals | float) -> "Entries":
        """Directions `(speakers, features)` with a threshold each, or one for all.

        Raises ModelError for names that do not fit, or not one for each; RangeError for templates longer than 1, or
        thresholds that are not 0 to 1.5.
        """
        if len(names) != len(templates):
            raise ModelError(f"{len(templates)} templates need as many names, got {len(names)}")
        weights, spelled = whole_numbers(plan, templates), text_residues(names, plan.longest_name)
        return Entries(weights, np.zeros(len(names), np.uint32), spelled).with_thresholds(thresholds)

    def with_thresholds(self, thresholds: Reals | float) -> "Entries":
        """The same speakers, with other thresholds. Raises RangeError where they are not 0 to 1.5, or not as many."""
        least = np.asarray(thresholds, np.float64)
        if least.shape not in ((), self.offsets.shape) or not ((least >= LEAST) & (least <= MOST)).all():
            raise RangeError(
                f"thresholds of a crowd are cosines of {LEAST:g} to {MOST:g}, one for all or {len(self.offsets)}"
            )
        least = np.broadcast_to(least, self.offsets.shape)
        return replace(self, offsets=np.rint(-least * 4.0**FRACTION).astype(np.int64).astype(np.uint32))


def whole_numbers(plan: CrowdTerms, templates: Reals) -> Weights:
    """Directions `(speakers, features)` as small integers. Raises RangeError for one that is longer than 1."""
    found = np.empty((len(templates), plan.features), np.int16)
    for start in range(0, len(templates), AT_A_TIME):
        some = check_vectors(templates[start : start + AT_A_TIME], plan.features, 1.0, "templates")
        found[start : start + AT_A_TIME] = np.rint(some * 2.0**FRACTION)
    return found


@dataclass(frozen=True, eq=False)
class Crowd:
    """The server's side of a gallery: shards of weights, what is added to every slot's score, every place's name."""

    plan: CrowdTerms
    shards: Shards
    offsets: Short
    names: Residues

    @staticmethod
    def of(
        plan: CrowdTerms, entries: Entries, places: NDArray[np.int64] | None = None, workers: int = WORKERS
    ) -> "Crowd":
        """Speakers at some places, the first by default, in this process."""
        chosen = np.arange(len(entries.weights)) if places is None else places
        return Crowd.empty(plan, OwnShards([CrowdShard(plan.product, plan.blocks, workers=workers)])).added(
            entries, chosen
        )

    @staticmethod
    def empty(plan: CrowdTerms, shards: Shards) -> "Crowd":
        """Nobody, whatever is in the shards; as much memory, and as much time, as for everybody."""
        return Crowd(plan, shards, np.full(plan.slots, LOWEST, np.uint32), np.full(plan.names, 0, np.uint64))

    @property
    def filled(self) -> Bits:
        """A 1 for every slot that is somebody's, `(slots,)`."""
        found: Bits = (self.offsets != LOWEST).astype(np.uint8)
        return found

    def added(self, entries: Entries, places: NDArray[np.int64]) -> "Crowd":
        """With more speakers; the blocks of their slots are encoded anew, in the shards of both. Whoever is in the
        shards already, put there by another session, stays. Raises ModelError for places that there are not.
        """
        if len(places) != len(entries.weights) or not ((places >= 0) & (places < self.plan.places)).all():
            raise ModelError(f"{len(entries.weights)} speakers do not fit the {self.plan.places} places of the plan")
        new = np.flatnonzero(np.concatenate(self.shards.ask("filled"))[1 + places] == 0)
        for part in np.split(new, range(AT_A_TIME, len(new), AT_A_TIME)) if len(new) else ():
            self.shards.tell("put", 1 + places[part], entries.weights[part])
        return self.named(entries, 1 + places)

    def named(self, entries: Entries, slots: NDArray[np.int64]) -> "Crowd":
        """With speakers whose weights the shards have at these slots."""
        offsets, names = self.offsets.copy(), self.names.copy()
        offsets[slots], names[slots - 1] = entries.offsets, entries.names
        return replace(self, offsets=offsets, names=names)


def sieved_in_the_clear(
    plan: CrowdTerms, scores: NDArray[np.int64], generator: np.random.Generator
) -> tuple[int, float]:
    """The protocol's twin: the place that wins and its cosine less its threshold, for exact scores `(places,)` in steps
    of 2^-24, with the chance that is in shares.
    """
    if scores.shape != (plan.places,):
        raise ModelError(f"{plan.places} places have as many scores, got shape {scores.shape}")
    dropped = 2 * FRACTION - (SCORES.bits - RANGE.bits + 2 * FRACTION)
    own = np.concatenate([[round(EMPTY * 4.0**FRACTION)], scores]) >> dropped
    own += generator.integers(0, 2, size=len(own))  # what rounding both shares adds, at the most
    slots = np.arange(plan.slots)
    for bit in reversed(range((plan.slots - 1).bit_length())):
        half = 1 << bit
        step = 1 if len(own) <= FINALISTS else 1 << (SCORES.bits - COARSE)
        meet = len(own) - half
        behind = own[:meet] - own[half:] < generator.integers(0, step, size=meet)
        own, slots = (
            np.concatenate([np.where(behind, each[half:], each[:meet]), each[meet:half]]) for each in (own, slots)
        )
    return int(slots[0]) - 1, float(own[0]) / 2.0 ** (SCORES.bits - RANGE.bits + 2 * FRACTION)
