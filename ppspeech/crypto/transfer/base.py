"""Base oblivious transfer on ed25519 (Chou and Orlandi 2015), from which all others are extended.

    sender: A = aG       receiver: B_i = b_i G + c_i A
    keys:   sender       H(A, B_i, aB_i) and H(A, B_i, aB_i - aA)
            receiver     H(A, B_i, b_i A), the one of its choice c_i

The sender learns nothing about c_i (B_i is uniform); the receiver cannot compute the other key (computational
Diffie-Hellman, H a random oracle). Against parties that follow the protocol.
"""

import hashlib

import nacl.bindings as sodium
import numpy as np
from nacl.exceptions import CryptoError
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.errors import NotInGroupError

POINT_BYTES = 32
KEY_BYTES = 16


def offer_keys(channel: Channel, count: int) -> tuple[NDArray[np.uint8], bytes]:
    """Be the sender: `count` pairs of random keys, of each of which the peer gets the one it chooses. Returns the keys,
    `(count, 2, 16)`, and the hash of what was said, which both parties share. Raises NotInGroupError if a received
    point is not a canonical point of the prime-order group.
    """
    secret = _scalar()
    point = sodium.crypto_scalarmult_ed25519_base_noclamp(secret)
    shift = sodium.crypto_scalarmult_ed25519_noclamp(secret, point)
    channel.send(Kind.BASE_POINT, point)
    reply = channel.receive(Kind.BASE_REPLY, POINT_BYTES * count)
    keys = np.empty((count, 2, KEY_BYTES), np.uint8)
    for number in range(count):
        answer = _checked(reply[POINT_BYTES * number : POINT_BYTES * (number + 1)])
        product = _multiply(secret, answer)
        keys[number, 0] = _key(number, point, answer, product)
        keys[number, 1] = _key(number, point, answer, sodium.crypto_core_ed25519_sub(product, shift))
    return keys, hashlib.sha256(point + reply).digest()


def choose_keys(channel: Channel, choices: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], bytes]:
    """Be the receiver: of every pair of the peer's keys the one of our choice. Returns the keys, `(count, 16)`, and the
    hash of what was said, which both parties share. Raises NotInGroupError if the received point is not a canonical
    point of the prime-order group.
    """
    point = _checked(channel.receive(Kind.BASE_POINT, POINT_BYTES))
    answers, keys = [], np.empty((len(choices), KEY_BYTES), np.uint8)
    for number, choice in enumerate(choices):
        secret = _scalar()
        plain = sodium.crypto_scalarmult_ed25519_base_noclamp(secret)
        # Both candidates are computed, so that the work does not depend on the choice.
        candidates = (plain, sodium.crypto_core_ed25519_add(plain, point))
        answers.append(candidates[int(choice)])
        keys[number] = _key(number, point, answers[-1], _multiply(secret, point))
    reply = b"".join(answers)
    channel.send(Kind.BASE_REPLY, reply)
    return keys, hashlib.sha256(point + reply).digest()


def _scalar() -> bytes:
    return sodium.crypto_core_ed25519_scalar_reduce(uniform_bytes(64))


def _multiply(scalar: bytes, point: bytes) -> bytes:
    try:
        return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    except CryptoError:
        raise NotInGroupError("a received point gives the neutral element") from None


def _checked(point: bytes) -> bytes:
    """The point, if it is one; libsodium's addition alone would take points outside the prime-order group."""
    if not sodium.crypto_core_ed25519_is_valid_point(point):
        raise NotInGroupError("a received point is not a canonical point of the prime-order group of ed25519")
    return point


def _key(number: int, point: bytes, answer: bytes, product: bytes) -> NDArray[np.uint8]:
    digest = hashlib.sha256(b"ppspeech base ot" + number.to_bytes(4, "big") + point + answer + product).digest()
    return np.frombuffer(digest[:KEY_BYTES], np.uint8)
