"""Aggregation of local classifiers with one party's noise (Pathak, Rane and Raj 2010, section 3.2), through a curator,
Charlie.

Parties 0..K-1 have classifiers w_j trained on n_j rows; what is published is the mean of the w_j and Laplace noise of
scale 2 / (n ε λ), where n is the size of the smallest data set and the noise that of its owner. Charlie is number K.

    Stage 1   Charlie learns at which place of an order that he does not know the smallest set stands
              (`aggregation_smallest`)
    Stage 2   Charlie -> parties    ζ(v), an indicator of that place, in the parties' own order again
              party j -> party 0    ψ_j = ζ(v_j)^η_j, its own noise or zero, d numbers
    Stage 3   party 0 -> Charlie    Π_j ψ_j ζ(s) = ζ(η + s); it takes w_0 - K s, Charlie K (η + s)
              all                   additive shares of w_0 - K s + w_1 + … + K (η + s) = K ŵ, published
    Testing   anyone                adds the shares, divides by K and classifies (`classify`)

Corrections, without which it does not run or is not what it says:

- Stage 1: sizes are shared mod 2^32 and blinded with 40 bits more; "integers" of no stated range tell the size.
- Stage 1: b_j reaches Charlie encrypted, by way of party π1(j). Sent by party j itself it would tell him π1.
- Stage 1: the elements that Charlie permutes are re-randomized, or he could not hide how he permuted them.
- Stage 1: ã_i and ã_j are with different parties, so that no two can compare; party j gives ã_j to party i.
- Stage 2: noise is rounded to whole multiples of 2^-20, negative exponents are powers of the inverse, and party 0
  multiplies the ψ_j ("all parties compute" needs someone who has them).
- Stage 3: s is 40 bits longer than a word of 64 bits; sums are mod 2^64. "A random integer" hides nothing for sure.

What stays wrong (`attacks.aggregation`, and the tests): the owner of the noise knows it and takes it off; ψ_j is not
re-randomized, so that party 0 finds η_j by baby steps and giant steps (`rerandomize=True` mends this one); party 0 and
Charlie together know η; Charlie learns the whole order of sizes up to π1, and with any one party all sizes; the scale
of the noise is that of an l1 sensitivity which is true in l2 only; and sizes are data, on which the scale depends.
Correction 3.6 in docs/theory/together.md.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues, Whole
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, Scale, pack_numbers, uniform_below
from ppspeech.crypto.paillier import (
    KEY_ID_BYTES,
    SECURE_BITS,
    Ciphertext,
    PaillierPublicKey,
    PaillierSecretKey,
    check_key_size,
    generate_paillier,
    prime_pair,
)
from ppspeech.crypto.shares import share_among
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.aggregation_smallest import (
    SIZES,
    SPARE,
    Channels,
    compare_with_charlie,
    comparison_bytes,
    find_smallest,
    permuted_sizes,
    random_order,
    receive_words,
)
from ppspeech.network import Limits, Transcript, run_in_threads
from ppspeech.privacy.samplers import standard_laplace
from ppspeech.protocols import Kind, Party, register_protocol

SUMS = Ring(64)
NUMBERS = Scale(bits=62, fraction=20)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublishedJob:
    """What is agreed on, with the paper's ε and λ. Of two parties each would know the other's classifier from the mean,
    so there are 3 or more. `rerandomize`: send ψ_j with a fresh encryption of zero, which the paper does not.
    """

    parties: int
    dimension: int
    epsilon: float
    penalty: float
    key_bits: int = SECURE_BITS
    rerandomize: bool = False
    insecure_demo: bool = False

    def __post_init__(self) -> None:
        if self.parties < 3 or self.dimension < 1:
            raise RangeError(f"three parties or more, one weight or more; got {self.parties} and {self.dimension}")
        if not (self.epsilon > 0 and self.penalty > 0):
            raise RangeError(f"epsilon and lambda must be above 0, got {self.epsilon} and {self.penalty}")
        check_key_size(self.key_bits, insecure_demo=self.insecure_demo)


published_aggregation = register_protocol(
    "published_aggregation",
    functionality="the mean of all parties' classifiers with Laplace noise of the owner of the smallest data set, to "
    "everyone",
    leakage="the owner of the noise knows it, party 0 can find everyone's; charlie learns the order of the sizes up to "
    "a permutation, and with any one party the sizes themselves: there is no simulator",
    assumptions="all follow the protocol and nobody colludes; decisional composite residuosity, Diffie-Hellman on "
    "ed25519; no differential privacy against the parties",
    terms=PublishedJob,
)


@dataclass(frozen=True, eq=False)
class PartyView:
    """What a party has at the end by following the protocol.

    `shares`: the published ones of K ŵ, `(K + 1, d)`, mod 2^64 with 20 bits after the point. `noise`: its own η, in
    steps of 2^-20, `(d,)`. `indicator`: ζ(v), in the order of the parties. `noise_terms`: ψ of every party, for party
    0; empty for others.
    """

    shares: Residues
    noise: NDArray[np.int64]
    indicator: list[Ciphertext]
    noise_terms: list[list[Ciphertext]]
    curator: PaillierPublicKey


@published_aggregation.party("party")
def contribute(party: Party, classifier: list[float], size: int, /, **terms: Any) -> list[float]:
    """A party's program: its classifier `(d,)` and how many rows it was trained on. Returns the published one."""
    channels, job = _agreed(party, terms)
    view = take_part(channels, np.asarray(classifier, np.float64), size, own=party.place, job=job)
    return [float(weight) for weight in aggregate(view.shares, job.parties)]


@published_aggregation.party("charlie")
def curate(party: Party, /, **terms: Any) -> list[float]:
    """Charlie's program, without an input. Returns the published classifier."""
    channels, job = _agreed(party, terms)
    return [float(weight) for weight in aggregate(charlie(channels, job=job), job.parties)]


def _agreed(party: Party, terms: dict[str, Any]) -> tuple[Channels, PublishedJob]:
    """Channels by number, Charlie's last, and what is agreed on."""
    job, seats = PublishedJob(**terms), party.seats("party")
    if len(seats) != job.parties:
        raise RangeError(f"the terms are for {job.parties} parties, there are {len(seats)}")
    logger.warning("%s is the paper's own and leaks: %s", published_aggregation.name, published_aggregation.leakage)
    everyone = enumerate([*seats, "charlie"])
    return {number: party.channels[seat] for number, seat in everyone if seat in party.channels}, job


def take_part(channels: Channels, classifier: Reals, size: int, *, own: int, job: PublishedJob) -> PartyView:
    """A party's part. `channels`: to all others by number; Charlie is number K. `classifier`: w, `(d,)`. `size`: n, 1
    to 2^31 - 1. Raises `RangeError` for a classifier of another shape, not finite or too large, or a size out of
    range.
    """
    if np.shape(classifier) != (job.dimension,):
        raise RangeError(f"a classifier has {job.dimension} weights, got shape {np.shape(classifier)}")
    if not 1 <= size < 1 << (SIZES.bits - 1):
        raise RangeError(f"a data set has 1 to {(1 << (SIZES.bits - 1)) - 1} rows, got {size}")
    weights = SUMS.from_signed(NUMBERS.encode(classifier))
    curator = _receive_key(channels[job.parties], Kind.CURATOR_KEY, job)
    key, order = _agree_among_parties(channels, own, job)
    blinded = permuted_sizes(channels, own, size, order, key, curator)
    compare_with_charlie(channels, own, job.parties, blinded)
    # Stage 2
    data = channels[job.parties].receive(Kind.INDICATOR, curator.wire_bytes(job.parties))
    places = curator.load(data, job.parties)
    indicator = [places[at] for at in order]
    noise = _laplace(job, size)
    terms = [_noise_term(curator, indicator[own], int(value), job) for value in noise]
    received = []
    if own != 0:
        channels[0].send(Kind.NOISE_TERM, curator.dump(terms))
    else:
        others = [
            curator.load(channels[j].receive(Kind.NOISE_TERM, curator.wire_bytes(job.dimension)), job.dimension)
            for j in range(1, job.parties)
        ]
        received = [terms, *others]
        weights = _mask_noise(channels[job.parties], curator, received, weights, job)  # stage 3, step 1
    return PartyView(_publish(channels, own, weights), noise, indicator, received, curator)


def charlie(channels: Channels, *, job: PublishedJob) -> Residues:
    """Charlie's part; what he returns are the published shares, as a party's."""
    key = generate_paillier(job.key_bits, insecure_demo=job.insecure_demo)
    for number in range(job.parties):
        channels[number].send(Kind.CURATOR_KEY, key.public.to_bytes())
    public = _receive_key(channels[0], Kind.PARTIES_KEY, job)
    smallest = find_smallest(channels, key, public)
    indicator = key.public.dump(key.encrypt_many([int(at == smallest) for at in range(job.parties)]))
    for number in range(job.parties):
        channels[number].send(Kind.INDICATOR, indicator)
    masked = key.public.load(
        channels[0].receive(Kind.MASKED_NOISE, key.public.wire_bytes(job.dimension)), job.dimension
    )
    total = [value % (1 << SUMS.bits) for value in key.decrypt_many(masked)]
    return _publish(channels, job.parties, np.array(total, np.uint64) * np.uint64(job.parties))


def party_bytes(job: PublishedJob, own: int, *, moves: bool) -> int:
    """What party `own` sends; `moves` says whether π1 gives its share of the size to another party."""
    cipher = job.key_bits // 4

    def wire(count: int) -> int:
        return KEY_ID_BYTES + count * cipher

    drawn = (job.parties - 1) * (job.key_bits // 8 + 4 * job.parties) + 3 + job.key_bits // 8 if own == 0 else 0
    sizes = (4 + wire(1)) * moves + 2 * wire(1)
    comparisons = job.parties - 1 - own
    compared = own * 4 + (comparison_bytes(comparisons) if comparisons else 0)
    return drawn + sizes + compared + wire(job.dimension) + 2 * job.parties * 8 * job.dimension


def aggregate(shares: Residues, parties: int) -> Reals:
    """The published classifier: shares `(K + 1, d)` added up and divided by K."""
    return NUMBERS.decode(SUMS.to_signed(shares.sum(axis=0, dtype=np.uint64))) / parties


def classify(shares: Residues, parties: int, rows: Reals) -> NDArray[np.int64]:
    """The testing phase: 1 where 1 / (1 + exp(-ŵ·x)) > 1/2, else -1, for rows `(count, d)`."""
    return np.where(1 / (1 + np.exp(-(rows @ aggregate(shares, parties)))) > 0.5, 1, -1)


@dataclass(frozen=True, eq=False)
class Result:
    """What `run_published` did. `classifier`: the published one, `(d,)`; `seconds`: from the first key to the published
    shares, all parties in one process; `bytes_sent`: by each party and, last, by Charlie.
    """

    classifier: Reals
    views: list[PartyView]
    seconds: float
    bytes_sent: list[int]


def run_published(classifiers: Reals, sizes: Sequence[int], epsilon: float, penalty: float, **options: Any) -> Result:
    """Run all K parties, with classifiers `(K, d)` and sizes `(K,)`, and Charlie as threads."""
    if classifiers.ndim != 2 or len(sizes) != len(classifiers):
        raise RangeError(
            f"classifiers {classifiers.shape} are (parties, d), and each has a size; got {len(sizes)} sizes"
        )
    parties, dimension = classifiers.shape
    job = PublishedJob(parties, dimension, epsilon, penalty, **options)
    logger.warning("%s is the paper's own and leaks: %s", published_aggregation.name, published_aggregation.leakage)
    records: list[list[Transcript]] = [[] for _ in range(parties + 1)]

    def run(number: int, channels: Channels) -> PartyView | None:
        kept = {other: Transcript(channel) for other, channel in channels.items()}
        records[number] = list(kept.values())
        if number < parties:
            return take_part(kept, classifiers[number], int(sizes[number]), own=number, job=job)
        charlie(kept, job=job)
        return None

    start = time.perf_counter()
    results = run_in_threads([partial(run, number) for number in range(parties + 1)], Limits(message_seconds=900.0))
    seconds = time.perf_counter() - start
    views = [result for result in results if result is not None]
    sent = [sum(record.bytes_up for record in own) for own in records]
    return Result(aggregate(views[0].shares, job.parties), views, seconds, sent)


def _receive_key(channel: Channel, kind: Kind, job: PublishedJob) -> PaillierPublicKey:
    data = channel.receive(kind, 3 + job.key_bits // 8)
    return PaillierPublicKey.from_bytes(data, insecure_demo=job.insecure_demo)


def _agree_among_parties(channels: Channels, own: int, job: PublishedJob) -> tuple[PaillierSecretKey, Whole]:
    """The parties' own key and π1: party 0 draws both and tells the others; Charlie gets the public key."""
    size = job.key_bits // 16
    others = range(1, job.parties)
    if own == 0:
        p, q = prime_pair(job.key_bits, lambda p, q: gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1)
        order = random_order(job.parties)
        for number in others:
            channels[number].send(Kind.PARTIES_PRIMES, p.to_bytes(size, "big") + q.to_bytes(size, "big"))
            channels[number].send(Kind.ORDER, pack_numbers(order.astype(np.uint64), 32))
    else:
        data = channels[0].receive(Kind.PARTIES_PRIMES, 2 * size)
        p, q = mpz.from_bytes(data[:size], "big"), mpz.from_bytes(data[size:], "big")
        order = receive_words(channels[0], Kind.ORDER, job.parties, Ring(32)).astype(np.int64)
        if sorted(order.tolist()) != list(range(job.parties)):
            raise RangeError(f"what party 0 sent is no order of {job.parties} parties")
    key = PaillierSecretKey(p, q, randomness="djn", insecure_demo=job.insecure_demo)
    if own == 0:
        channels[job.parties].send(Kind.PARTIES_KEY, key.public.to_bytes())
    return key, order


def _laplace(job: PublishedJob, size: int) -> NDArray[np.int64]:
    """η of a party with `size` rows: Lap(2 / (n ε λ)) in whole steps."""
    scale = 2 / (size * job.epsilon * job.penalty)
    return NUMBERS.encode(scale * standard_laplace((job.dimension,)).numpy())


def _noise_term(curator: PaillierPublicKey, indicator: Ciphertext, noise: int, job: PublishedJob) -> Ciphertext:
    """ζ(v)^η, sent as it is, or with a fresh encryption of zero."""
    power = curator.scale(indicator, noise)
    return curator.finish(power) if job.rerandomize else curator.accept(power.value)


def _mask_noise(
    channel: Channel, curator: PaillierPublicKey, terms: list[list[Ciphertext]], weights: Residues, job: PublishedJob
) -> Residues:
    """Send ζ(η + s) to Charlie and give w - K s."""
    masks = [int(uniform_below(mpz(1) << (SUMS.bits + SPARE))) for _ in range(job.dimension)]
    masked = []
    for place, mask in enumerate(masks):
        total = curator.add_plain(curator.encrypt(mask), 0)
        for term in terms:
            total = curator.add(total, term[place])
        masked.append(curator.accept(total.value))  # the encryption of s is fresh, and so is the product
    channel.send(Kind.MASKED_NOISE, curator.dump(masked))
    low = np.array([mask % (1 << SUMS.bits) for mask in masks], np.uint64)
    return weights - np.uint64(job.parties) * low


def _publish(channels: Channels, own: int, words: Residues) -> Residues:
    """Additive shares of the sum of all, each published: `(K + 1, d)`."""
    everyone = sorted([own, *channels])
    share = share_among(channels, own, words, SUMS, everyone)
    assert share is not None
    for other in sorted(channels):
        channels[other].send(Kind.CLASSIFIER_SHARE, pack_numbers(share, SUMS.bits))
    received = {
        other: receive_words(channels[other], Kind.CLASSIFIER_SHARE, len(words), SUMS) for other in sorted(channels)
    }
    return np.stack([share if number == own else received[number] for number in everyone])
