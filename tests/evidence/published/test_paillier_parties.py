"""Alice and Bob of the paper against messages that are none."""

import numpy as np
import pytest

from ppspeech.crypto.paillier import generate_paillier
from ppspeech.errors import (
    BadCiphertextError,
    BadLengthError,
    BadTypeError,
    NotInGroupError,
    ProtocolError,
    WrongKeyError,
)
from ppspeech.evidence.published.protocols.keyword import alice, bob
from ppspeech.evidence.published.protocols.logarithm import logarithm
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, meet_as_bob
from ppspeech.network import memory_pair
from ppspeech.protocols.message_kinds import Kind

from .test_keyword import FRAMES, STATES, speech, words
from .views import DEMO, demo_key, run_recorded

SIZE = demo_key().public.ciphertext_bytes


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"", BadLengthError),
        (demo_key().public.to_bytes()[:-1], BadLengthError),
        (demo_key().public.to_bytes() + b"x", BadLengthError),
        (b"\x02\x00\x00" + bytes(64), BadTypeError),
        (b"\x02\x00\x00" + b"\xff" * 64, NotInGroupError),
    ],
    ids=["nothing", "short", "long", "zero", "even"],
)
def test_bob_refuses_keys_that_are_none(payload: bytes, error: type[ProtocolError]) -> None:
    here, there = memory_pair()
    here.send(Kind.PAILLIER_KEY, payload)
    with pytest.raises(error):
        meet_as_bob(there, logarithm, strict=False, **DEMO)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (demo_key().public.key_id + bytes(SIZE), BadCiphertextError),
        (demo_key().public.key_id + b"\xff" * SIZE, BadCiphertextError),
        (demo_key().public.key_id + int(demo_key().public.n).to_bytes(SIZE, "big"), NotInGroupError),
        (bytes(16) + b"\1" * SIZE, WrongKeyError),
        (demo_key().public.key_id, BadLengthError),
    ],
    ids=["zero", "too large", "a factor", "another key", "short"],
)
def test_neither_takes_ciphertexts_that_are_none(payload: bytes, error: type[ProtocolError]) -> None:
    for party in (lambda c: Alice(c, demo_key()), lambda c: Bob(c, demo_key().public)):
        here, there = memory_pair()
        here.send(Kind.SCALED, payload)
        with pytest.raises(error):
            party(there).receive(Kind.SCALED, 1)


def test_ciphertexts_of_another_key_do_not_leave() -> None:
    here, _there = memory_pair()
    other = generate_paillier(512, insecure_demo=True)
    foreign = other.public.scale(other.encrypt(1), 2)
    for strict in (False, True):
        with pytest.raises(WrongKeyError):
            Bob(here, demo_key().public, strict).send(Kind.SCALED, [foreign])


@pytest.mark.parametrize(("features", "counted"), [(2, 3), (3, 2), (3, 4)])
def test_parties_who_disagree_on_sizes_stop(features: int, counted: int) -> None:
    """Another number of features than Bob's models have, or of words than Alice was told."""
    frames = speech(0)[:, :features]
    with pytest.raises(ProtocolError):
        run_recorded(
            lambda c: alice(c, demo_key(), np.ascontiguousarray(frames), words=counted, states=STATES, **DEMO),
            lambda c: bob(c, words(), frames=FRAMES, **DEMO),
        )
