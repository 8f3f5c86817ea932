"""Blind and permute: shares of a vector become fresh shares of the same vector in an order neither party knows.

    1. first -> second   Enc_F(a)
    2. second -> first   Enc_F(π(a + r)), re-randomized          now first: π(a + r), second: π(b - r)
    3. second -> first   Enc_S(b')
    4. first -> second   Enc_S(π'(b' + r')), re-randomized       now first: π'(a' - r'), second: π'(b' + r')

Each party knows one of the two permutations; the vector is in the order of both. The masks r are 40 bits longer than
the residues, so what is decrypted is within 2^-40 of uniform; the result is taken mod 2^k. Pathak 2010, section 3.1.2.
"""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.paillier.scheme import PaillierPublicKey, PaillierSecretKey
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

SPARE = 40
"""Bits by which masks are longer than residues."""


def blind_permute(
    channel: Channel, party: Side, key: PaillierSecretKey, peer: PaillierPublicKey, residues: Residues, ring: Ring
) -> Residues:
    """Our shares of the permuted vector.

    Args:
        channel: to the other party, which calls this too.
        party: which of the two we are.
        key: ours.
        peer: the other's public key, which it has proved to be its own.
        residues: our shares, `(count,)`.
        ring: of the shares.

    Raises:
        RangeError: if a key is too short for the ring.
        ProtocolError: for ciphertexts that are not.
    """
    needed = ring.bits + SPARE + 2
    if min(key.public.plaintext_modulus.bit_length(), peer.plaintext_modulus.bit_length()) <= needed:
        raise RangeError(f"residues of {ring.bits} bits and their masks need keys of more than {needed} bits")
    if party == Side.FIRST:
        return _permute_theirs(channel, peer, _have_permuted(channel, key, residues, ring), ring)
    return _have_permuted(channel, key, _permute_theirs(channel, peer, residues, ring), ring)


def blind_permute_bytes(key: PaillierPublicKey, peer: PaillierPublicKey, count: int) -> int:
    """What each party sends: `count` ciphertexts under its own key, and as many under the other's."""
    return key.wire_bytes(count) + peer.wire_bytes(count)


def _have_permuted(channel: Channel, key: PaillierSecretKey, residues: Residues, ring: Ring) -> Residues:
    """Steps 1 and 3, by the owner of the key."""
    channel.send(Kind.SHARES, key.public.dump(key.encrypt_many([int(residue) for residue in residues])))
    reply = channel.receive(Kind.SHARES, key.public.wire_bytes(len(residues)))
    plain = key.decrypt_many(key.public.load(reply, len(residues)))
    return np.array([value % (1 << ring.bits) for value in plain], np.uint64)


def _permute_theirs(channel: Channel, peer: PaillierPublicKey, residues: Residues, ring: Ring) -> Residues:
    """Steps 2 and 4, by the other."""
    count = len(residues)
    theirs = peer.load(channel.receive(Kind.SHARES, peer.wire_bytes(count)), count)
    size = -(-(ring.bits + SPARE) // 8)
    drawn = uniform_bytes(size * count)
    masks = [int.from_bytes(drawn[size * at : size * (at + 1)], "big") for at in range(count)]
    order = np.argsort(uniform_residues(count))
    masked = [peer.add_plain(theirs[at], masks[at]) for at in order]
    channel.send(Kind.SHARES, peer.dump(peer.finish_many(masked)))
    low = np.array([mask % (1 << ring.bits) for mask in masks], np.uint64)
    return ring.reduce(residues - low)[order]
