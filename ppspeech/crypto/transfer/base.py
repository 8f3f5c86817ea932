"""Base oblivious transfer on ed25519 (Masny and Rindal 2019), from which all others are extended.

    sender:   B = bG                              receiver, of choice c:  r_{1-c} random,  r_c = aG - H(i, c, r_{1-c})
    keys:     K(i, j, b (r_j + H(i, j, r_{1-j}))) for j = 0, 1            K(i, c, aB), the one of its choice

H hashes into the group: the sum of two images of Elligator, which no one can tell from a random function (Brier et al.
2010). K is SHA-256. Both are fed all that was said and the transfer's number i: with one B for a whole batch and i left
out, a receiver repeats one answer and gets related keys (McQuoid, Rosulek and Roy 2021).

Against parties that do anything. A sender sees r_0 and r_1, two uniform points whatever c is, and nothing that the
receiver does afterwards depends on c. A receiver can prepare only one of the two sums: whichever of H(i, 0, r_1) and
H(i, 1, r_0) it asks for last comes out uniform after its other half is fixed, and for that key it must solve
Diffie-Hellman for B and a uniform point (gap Diffie-Hellman, H and K random oracles); which one that is, a simulator
sees when it is asked for, before any key is used. Either party may influence its own keys, which an extension allows
(endemic transfer, op. cit.). Theorem 2.10 in docs/theory/asking.md.
"""

import hashlib

import nacl.bindings as sodium
import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.points import POINT_BYTES, base_times, checked, hash_to_group, multiply, random_scalar

ANSWER_BYTES = 2 * POINT_BYTES
"""What a receiver sends for one transfer."""
KEY_BYTES = 16


def offer_keys(channel: Channel, count: int) -> tuple[NDArray[np.uint8], bytes]:
    """Be the sender: `count` pairs of random keys, of each of which the peer gets the one it chooses. Returns the keys,
    `(count, 2, 16)`, and the hash of what was said, which both parties share. Raises NotInGroupError if a received
    point is not a canonical point of the prime-order group.
    """
    secret = random_scalar()
    point = base_times(secret)
    channel.send(Kind.BASE_POINT, point)
    reply = channel.receive(Kind.BASE_REPLY, ANSWER_BYTES * count)
    keys = np.empty((count, 2, KEY_BYTES), np.uint8)
    for number in range(count):
        answer = reply[ANSWER_BYTES * number : ANSWER_BYTES * (number + 1)]
        halves = checked(answer[:POINT_BYTES]), checked(answer[POINT_BYTES:])
        for side in (0, 1):
            own = sodium.crypto_core_ed25519_add(halves[side], _hash_to_group(number, side, point, halves[1 - side]))
            keys[number, side] = _key(number, side, point, answer, multiply(secret, own))
    return keys, hashlib.sha256(point + reply).digest()


def choose_keys(channel: Channel, choices: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], bytes]:
    """Be the receiver: of every pair of the peer's keys the one of our choice. Returns the keys, `(count, 16)`, and the
    hash of what was said, which both parties share. Raises NotInGroupError if the received point is not a canonical
    point of the prime-order group.
    """
    point = checked(channel.receive(Kind.BASE_POINT, POINT_BYTES))
    answers, keys = [], np.empty((len(choices), KEY_BYTES), np.uint8)
    for number, choice in enumerate(choices.astype(int)):
        secret = random_scalar()
        other, own = (base_times(scalar) for scalar in (random_scalar(), secret))
        turned = sodium.crypto_core_ed25519_sub(own, _hash_to_group(number, choice, point, other))
        answers.append((turned + other, other + turned)[choice])
        keys[number] = _key(number, choice, point, answers[-1], multiply(secret, point))
    reply = b"".join(answers)
    channel.send(Kind.BASE_REPLY, reply)
    return keys, hashlib.sha256(point + reply).digest()


def _hash_to_group(number: int, side: int, point: bytes, other: bytes) -> bytes:
    return hash_to_group(b"ppspeech base ot, half" + _place(number, side) + point + other)


def _key(number: int, side: int, point: bytes, answer: bytes, product: bytes) -> NDArray[np.uint8]:
    digest = hashlib.sha256(b"ppspeech base ot, key" + _place(number, side) + point + answer + product).digest()
    return np.frombuffer(digest[:KEY_BYTES], np.uint8)


def _place(number: int, side: int) -> bytes:
    return number.to_bytes(4, "big") + bytes([side])
