"""Clients whose keys, seeds and points are not what a protocol draws: for the weights, or the secrets of transfers."""

import secrets
from collections.abc import Sequence

import nacl.bindings as sodium
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.lattice import (
    LatticeParameters,
    dump_query,
    key_identity,
    key_length,
    load_reply,
    weight_polynomials,
)
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import ANSWER_BYTES, PairSetup, Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.evidence.attacks.reading import find_numbers, unknown_places
from ppspeech.evidence.attacks.target import Victim, is_answered
from ppspeech.protocols import Kind
from ppspeech.protocols.words import KeywordJob
from ppspeech.service import Ask, Request, send_request

SEED_BYTES = 64


def ask(victim: Victim, job: KeywordJob, key: bytes, seeds: Sequence[bytes]) -> Residues:
    """A query under a "key" of one's own: first parts of zeros, second parts of these seeds. The second part of the
    reply, `(polynomials, degree)`. Raises ProtocolError where the server refuses any of it.
    """
    product, ring = job.plan.job, job.plan.precision.parameters
    with victim.session() as channel:
        setup = PairSetup.agree(channel, Side.SECOND)
        channel.send(Kind.LATTICE_KEY, key)
        send_request(channel, Request(Ask.WORDS, "frames", job.utterances))
        identity = key_identity(key, setup.id)
        nothing = np.zeros((len(seeds), ring.degree), np.uint64)
        with setup.session(channel):
            ShareEngine(channel, setup, job.shares_cost)
            channel.send(Kind.QUERY, dump_query(ring, product.identity, identity, list(seeds), nothing))
            reply = channel.receive(Kind.REPLY, product.reply_bytes)
    return load_reply(reply, ring, product.identity, identity, product.groups * product.outputs, len(product.kept))[1]


def fresh_seeds(job: KeywordJob) -> list[bytes]:
    """One for each polynomial of a query."""
    return [secrets.token_bytes(SEED_BYTES) for _ in range(job.plan.job.groups * job.plan.job.terms)]


def chosen_keys(ring: LatticeParameters) -> list[bytes]:
    """Keys of which nobody has a secret: zero, one everywhere, one in one place; and both halves, of which the second
    is 1, as keys once traveled.
    """
    size = key_length(ring) // ring.degree
    one = (1).to_bytes(size, "little")
    return [bytes(size * ring.degree), one * ring.degree, one + bytes(size * (ring.degree - 1)), one * 2 * ring.degree]


@attack("chosen_key", "a word model's weights, by a public key under which zero hides nothing")
def chosen_key(target: Target) -> Gain:
    """Each key asks once; of every column's polynomial the attacker lacks four weights."""
    victim = target.usual
    models = target.models_of(victim)
    job = KeywordJob(models.shape)
    product, ring = job.plan.job, job.plan.precision.parameters
    weights = weight_polynomials(job.plan, models.score_weights)
    found = wanted = refused = 0
    for key in chosen_keys(ring):
        seeds = fresh_seeds(job)
        places = [unknown_places(each) for each in weights[: 2 if target.quick else 5]]
        wanted += sum(map(len, places))
        try:
            second = ask(victim, job, key, seeds)
        except ProtocolError:
            refused += 1
            continue
        for output, unknown in enumerate(places):
            guessed = find_numbers(ring, seeds[: product.terms], second[output], weights[output], unknown)
            found += sum(guess == int(weights[output][at]) for guess, at in zip(guessed, unknown, strict=True))
    note = f"{found} of {wanted} weights found under {len(chosen_keys(ring))} keys, {refused} of which were refused"
    return Gain(found / wanted, "of the weights", len(chosen_keys(ring)), found > wanted / 100, note)


@attack("repeated_seeds", "an answer to a query of few unknowns, by one seed for many of its polynomials")
def repeated_seeds(target: Target) -> Gain:
    """All seeds alike, two alike, and the last like the first."""
    victim = target.usual
    shape = victim.offer.terms.shape
    job = KeywordJob(shape, max(victim.offer.terms.batches) if KeywordJob(shape).plan.job.terms == 1 else 1)
    seeds = fresh_seeds(job)
    if len(seeds) < 2:
        raise NotHereError("its queries have one polynomial")
    key = bytes(key_length(job.plan.precision.parameters))
    tries = [[seeds[0]] * len(seeds), [*seeds[:-1], seeds[0]], [seeds[0], seeds[0], *seeds[2:]]]
    answered = 0
    for each in tries:
        try:
            ask(victim, job, key, each)
        except ProtocolError:
            continue
        answered += 1
    note = f"{answered} of {len(tries)} queries with repeated seeds were answered"
    return Gain(answered / len(tries), "of the queries", len(tries), answered > 0, note)


BASE_TRANSFERS = 128
ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
"""A point of order 8 of the curve (none of these is in the group that transfers are made in)."""


@attack(
    "small_order",
    "bits of the secret choices of base transfers, by points that are not of the group",
    tasks=("words", "sentences"),
)
def small_order(target: Target) -> Gain:
    """Neutral, of order 2, 4 and 8, otherwise spelled, outside the curve, and one of the group plus one of order 8."""
    scalar = sodium.crypto_core_ed25519_scalar_reduce(secrets.token_bytes(64))
    own = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)
    points = [
        b"\x01" + bytes(31),
        b"\xec" + b"\xff" * 30 + b"\x7f",
        bytes(32),
        ORDER_8,
        b"\xee" + b"\xff" * 30 + b"\x7f",
        b"\x02" + bytes(31),
        sodium.crypto_core_ed25519_add(own, ORDER_8),
    ]
    taken = 0
    victim = target.usual
    for point in points:
        with victim.session() as channel:
            channel.send(CryptoKind.BASE_POINT, point)
            taken += is_answered(channel, CryptoKind.BASE_REPLY, ANSWER_BYTES * BASE_TRANSFERS)
    return Gain(
        taken, "points", len(points), taken > 0, f"{taken} of {len(points)} points outside the group were taken"
    )
