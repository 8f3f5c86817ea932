"""Stage 1 of Pathak, Rane and Raj 2010: which party has the smallest data set, in an order that nobody knows.

    1. party j               n_j = a_j + b_j mod 2^32, a_j uniform
    2. party j -> π1(j)      a_j, and ζ(b_j) for Charlie;   party π1(j) -> Charlie   ζ(b_j)
    3. party i -> Charlie    ξ(a) of what it was given
    4. Charlie -> party i    ξ(a + r), permuted by π2;   he keeps b - r, permuted alike
    5. party i               decrypts ã_i
    6. pairs i < j           party j -> i  ã_j;  i and Charlie compare ã_i - ã_j with b̃_j - b̃_i; Charlie learns which

The parties know π1, Charlie knows π2. The corrections are listed in `aggregation`.
"""

from collections.abc import Mapping

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.arrays import Residues, Whole
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, pack_numbers, packed_bytes, uniform_below, uniform_residues, unpack_numbers
from ppspeech.crypto.paillier import Ciphertext, PaillierPublicKey, PaillierSecretKey
from ppspeech.crypto.shares import Cost, ShareEngine, blank, is_negative, open_bits_to, record
from ppspeech.crypto.transfer import GREETING_BYTES, SETUP_BYTES_FIRST, PairSetup, Side
from ppspeech.protocols import Kind

Channels = Mapping[int, Channel]

SIZES = Ring(32)  # sizes are shared mod 2^32 and compared as numbers below 2^31
SPARE = 40  # bits by which Charlie's masks are longer than the shares


def permuted_sizes(
    channels: Channels, own: int, size: int, order: Whole, key: PaillierSecretKey, curator: PaillierPublicKey
) -> Residues:
    """Steps 1 to 5 for a party: ã, `(1,)`."""
    parties = len(order)
    charlie, target = parties, int(order[own])
    source = int(np.flatnonzero(order == own)[0])
    kept, given = SIZES.share(np.array([size], np.uint64))
    sealed = curator.encrypt(int(given[0]))
    if target != own:
        channels[target].send(Kind.SIZE_SHARE, pack_numbers(kept, SIZES.bits))
        channels[target].send(Kind.SEALED_SHARE, curator.dump([sealed]))
    if source != own:
        kept = receive_words(channels[source], Kind.SIZE_SHARE, 1, SIZES)
        sealed = curator.load(channels[source].receive(Kind.SEALED_SHARE, curator.wire_bytes(1)), 1)[0]
    channels[charlie].send(Kind.CURATOR_SHARE, curator.dump([sealed]))
    channels[charlie].send(Kind.ENCRYPTED_SHARE, key.public.dump([key.encrypt(int(kept[0]))]))
    blinded = key.public.load(channels[charlie].receive(Kind.BLINDED, key.public.wire_bytes(1)), 1)[0]
    return np.array([key.decrypt(blinded) % (1 << SIZES.bits)], np.uint64)


def compare_with_charlie(channels: Channels, own: int, parties: int, blinded: Residues) -> None:
    """Step 6 for a party, against all that come after it."""
    for before in range(own):
        channels[before].send(Kind.BLINDED_SHARE, pack_numbers(blinded, SIZES.bits))
    later = [receive_words(channels[other], Kind.BLINDED_SHARE, 1, SIZES) for other in range(own + 1, parties)]
    if later:
        _compare(channels[parties], Side.FIRST, SIZES.reduce(blinded - np.concatenate(later)))


def find_smallest(channels: Channels, key: PaillierSecretKey, public: PaillierPublicKey) -> int:
    """Charlie's steps: the place of the smallest set in the parties' permuted order, π2 taken off again."""
    parties = len(channels)
    shares, encrypted = np.empty(parties, np.uint64), []
    for number in range(parties):
        sealed = key.public.load(channels[number].receive(Kind.CURATOR_SHARE, key.public.wire_bytes(1)), 1)[0]
        shares[number] = key.decrypt(sealed) % (1 << SIZES.bits)
        encrypted += public.load(channels[number].receive(Kind.ENCRYPTED_SHARE, public.wire_bytes(1)), 1)
    order = random_order(parties)
    masks = [int(uniform_below(mpz(1) << (SIZES.bits + SPARE))) for _ in range(parties)]
    blinded = _blind(public, [encrypted[at] for at in order], [masks[at] for at in order])
    for number in range(parties):
        channels[number].send(Kind.BLINDED, public.dump([blinded[number]]))
    low = np.array([mask % (1 << SIZES.bits) for mask in masks], np.uint64)
    own = SIZES.reduce(shares - low)[order]
    wins = np.zeros(parties, np.int64)
    for number in range(parties - 1):
        smaller = _compare(channels[number], Side.SECOND, SIZES.reduce(own[number] - own[number + 1 :]))
        wins[number] += int(smaller.sum())
        wins[number + 1 :] += 1 - smaller.astype(np.int64)
    return int(order[np.argmax(wins)])


def comparison_cost(comparisons: int) -> Cost:
    """What a party's comparisons with Charlie cost after their setup."""
    return record(lambda engine: _open_signs(engine, blank(comparisons)))


def comparison_bytes(comparisons: int) -> int:
    """What the party of the two sends for them, setup included."""
    cost = comparison_cost(comparisons)
    return SETUP_BYTES_FIRST + GREETING_BYTES + cost.bytes_first + cost.offline_bytes_first


def receive_words(channel: Channel, kind: Kind, count: int, ring: Ring) -> Residues:
    """`count` words of the ring, from one message."""
    return unpack_numbers(channel.receive(kind, packed_bytes(count, ring.bits)), count, ring.bits).astype(np.uint64)


def random_order(count: int) -> Whole:
    """A permutation of 0, …, count - 1 that nobody can predict."""
    return np.argsort(uniform_residues(count)).astype(np.int64)


def _blind(public: PaillierPublicKey, ciphertexts: list[Ciphertext], masks: list[int]) -> list[Ciphertext]:
    masked = [public.add_plain(one, mask) for one, mask in zip(ciphertexts, masks, strict=True)]
    return public.finish_many(masked)


def _compare(channel: Channel, party: Side, differences: Residues) -> NDArray[np.uint8]:
    """Which shared differences are negative: bits for Charlie, who is second; nothing for the first."""
    setup = PairSetup.agree(channel, party)
    with setup.session(channel):
        engine = ShareEngine(channel, setup, comparison_cost(len(differences)))
        opened = _open_signs(engine, differences)
    return np.zeros(0, np.uint8) if opened is None else opened


def _open_signs(engine: ShareEngine, differences: Residues) -> NDArray[np.uint8] | None:
    return open_bits_to(engine, Side.SECOND, is_negative(engine, differences, SIZES))
