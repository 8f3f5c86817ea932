"""Every decoder of the room under damaged and random bytes: a typed error or a valid reading, nothing else."""

import resource
from random import Random

import numpy as np
import pytest

from ppspeech.crypto.lattice import Evaluator, KeyHolder, client_query, encode_weights, plan_product, server_reply
from ppspeech.crypto.lattice.public_key import load_public_key
from ppspeech.crypto.lattice.wire import load_query, load_reply
from ppspeech.errors import BadCiphertextError, WrongKeyError


def damage(message: bytes, dice: Random) -> bytes:
    """Cut, lengthen, overwrite or flip, mostly near the beginning."""
    kind = dice.randrange(5)
    if kind == 0:
        return message[: dice.randrange(len(message))]
    if kind == 1:
        return message + dice.randbytes(dice.randrange(1, 50))
    if kind == 2:
        return dice.randbytes(dice.choice([0, 1, 20, 100, len(message)]))
    changed = bytearray(message)
    for _ in range(dice.randrange(1, 4)):
        place = dice.randrange(150 if dice.random() < 0.7 else len(message))
        changed[place] = dice.randrange(256) if kind == 3 else changed[place] ^ 1 << dice.randrange(8)
    return bytes(changed)


def fuzz(inputs: int) -> int:
    """Give each decoder so many inputs; return how many were taken for valid."""
    key, chosen, dice = KeyHolder(), plan_product(3, 4, 2), Random(0)
    evaluator, job = Evaluator(key.public_key, key.coins), chosen.job
    query = client_query(key, chosen, np.ones((3, 4)))
    reply, _ = server_reply(evaluator, chosen, encode_weights(chosen, np.ones((4, 2))), query)
    ring, names = key.parameters, (job.identity, key.identity)
    decoders = (
        (query, lambda data: load_query(data, ring, *names, job.terms)),
        (reply, lambda data: load_reply(data, ring, *names, job.outputs, len(job.kept))),
        (key.public_key, lambda data: load_public_key(data, key.coins, ring)),
    )
    valid = 0
    for message, decode in decoders:
        for _ in range(inputs):
            try:
                decode(damage(message, dice))
                valid += 1
            except (BadCiphertextError, WrongKeyError):
                pass
    return valid


def test_some_damaged_messages() -> None:
    assert 0 < fuzz(300) < 900


@pytest.mark.slow
def test_a_million_damaged_messages_without_growth() -> None:
    fuzz(10_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz(334_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB
