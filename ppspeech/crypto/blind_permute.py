"""Blind and permute: shares of a vector become fresh shares of the same vector in an order neither party knows.

    1. first -> second   Enc_F(a)
    2. second -> first   Enc_F(π(a + r)), re-randomised          now first: π(a + r), second: π(b - r)
    3. second -> first   Enc_S(b')
    4. first -> second   Enc_S(π'(b' + r')), re-randomised       now first: π'(a' - r'), second: π'(b' + r')

Each party knows one of the two permutations; the vector is in the order of both. The masks r are 40 bits longer than
the words, so what is decrypted is within 2^-40 of uniform; the result is taken mod 2^k. Seed 000, section 3.1.2.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.ot_state import Party
from ppspeech.crypto.paillier import PaillierPublicKey, PaillierSecretKey
from ppspeech.crypto.randomness import uniform_bytes, uniform_words
from ppspeech.errors import RangeError

Words = NDArray[np.uint64]

SPARE = 40
"""Bits by which masks are longer than words."""


def blind_permute(
    channel: Channel, party: Party, key: PaillierSecretKey, peer: PaillierPublicKey, words: Words, ring: Ring
) -> Words:
    """Our shares of the permuted vector.

    Args:
        channel: to the other party, which calls this too.
        party: which of the two we are.
        key: ours.
        peer: the other's public key, which it has proved to be its own.
        words: our shares, `(count,)`.
        ring: of the shares.

    Raises:
        RangeError: if a key is too short for the ring.
        ProtocolError: for ciphertexts that are not.
    """
    needed = ring.bits + SPARE + 2
    if min(key.public.plaintext_modulus.bit_length(), peer.plaintext_modulus.bit_length()) <= needed:
        raise RangeError(f"words of {ring.bits} bits and their masks need keys of more than {needed} bits")
    if party == Party.FIRST:
        return _permute_theirs(channel, peer, _have_permuted(channel, key, words, ring), ring)
    return _have_permuted(channel, key, _permute_theirs(channel, peer, words, ring), ring)


def blind_permute_bytes(key: PaillierPublicKey, peer: PaillierPublicKey, count: int) -> int:
    """What each party sends: `count` ciphertexts under its own key, and as many under the other's."""
    return key.wire_bytes(count) + peer.wire_bytes(count)


def _have_permuted(channel: Channel, key: PaillierSecretKey, words: Words, ring: Ring) -> Words:
    """Steps 1 and 3, by the owner of the key."""
    channel.send(Kind.SHARES, key.public.dump(key.encrypt_many([int(word) for word in words])))
    reply = channel.receive(Kind.SHARES, key.public.wire_bytes(len(words)))
    plain = key.decrypt_many(key.public.load(reply, len(words)))
    return np.array([value % (1 << ring.bits) for value in plain], np.uint64)


def _permute_theirs(channel: Channel, peer: PaillierPublicKey, words: Words, ring: Ring) -> Words:
    """Steps 2 and 4, by the other."""
    count = len(words)
    theirs = peer.load(channel.receive(Kind.SHARES, peer.wire_bytes(count)), count)
    size = -(-(ring.bits + SPARE) // 8)
    drawn = uniform_bytes(size * count)
    masks = [int.from_bytes(drawn[size * at : size * (at + 1)], "big") for at in range(count)]
    order = np.argsort(uniform_words(count))
    masked = [peer.add_plain(theirs[at], masks[at]) for at in order]
    channel.send(Kind.SHARES, peer.dump(peer.finish_many(masked)))
    low = np.array([mask % (1 << ring.bits) for mask in masks], np.uint64)
    return ring.reduce(words - low)[order]
