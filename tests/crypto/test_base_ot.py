"""Base transfers: the chosen key and no other, and no point that is not one."""

import nacl.bindings as sodium
import numpy as np
import pytest

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.transfer.base import choose_keys, offer_keys
from ppspeech.errors import BadLengthError, NotInGroupError, ProtocolError
from ppspeech.network import Transcript, memory_pair, run_together

POINT = sodium.crypto_scalarmult_ed25519_base_noclamp((5).to_bytes(32, "little"))
ORDER_EIGHT = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
BAD_POINTS = {
    "identity": (1).to_bytes(32, "little"),
    "small order": ORDER_EIGHT,
    "off the subgroup": sodium.crypto_core_ed25519_add(POINT, ORDER_EIGHT),
    "not canonical": (2**255 - 19 + 1).to_bytes(32, "little"),
    "not on the curve": (2).to_bytes(32, "little"),
    "noise": b"\xff" * 32,
}


def test_the_receiver_gets_the_key_it_chose_and_not_the_other() -> None:
    choices = np.array([0, 1, 1, 0, 1], bool)
    (keys, one), (got, other) = run_together(lambda c: offer_keys(c, 5), lambda c: choose_keys(c, choices))
    assert one == other
    for number, choice in enumerate(choices):
        assert (got[number] == keys[number, int(choice)]).all()
        assert (got[number] != keys[number, 1 - int(choice)]).any()
    assert len({key.tobytes() for key in keys.reshape(-1, 16)}) == 10


def test_what_is_said_has_the_same_shape_for_all_choices() -> None:
    shapes = []
    for choice in (0, 1):
        here, there = memory_pair()
        record = Transcript(there)
        choices = np.full(3, choice, bool)
        run_together(lambda c: offer_keys(c, 3), lambda c, r=record, w=choices: choose_keys(r, w), (here, there))
        shapes.append(record.shape())
    assert shapes[0] == shapes[1] == [("received", Kind.BASE_POINT, 32), ("sent", Kind.BASE_REPLY, 96)]


@pytest.mark.parametrize("point", BAD_POINTS.values(), ids=BAD_POINTS)
def test_the_receiver_refuses_what_is_no_point(point: bytes) -> None:
    with pytest.raises(NotInGroupError):
        run_together(lambda c: c.send(Kind.BASE_POINT, point), lambda c: choose_keys(c, np.ones(2, bool)))


@pytest.mark.parametrize("point", BAD_POINTS.values(), ids=BAD_POINTS)
def test_the_sender_refuses_what_is_no_point(point: bytes) -> None:
    def cheat(channel: object) -> None:
        channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, POINT + point)

    with pytest.raises(NotInGroupError):
        run_together(lambda c: offer_keys(c, 2), cheat)


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(BadLengthError):
        run_together(lambda c: c.send(Kind.BASE_POINT, POINT[:-1]), lambda c: choose_keys(c, np.ones(1, bool)))

    def cheat(channel: object) -> None:
        channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, POINT)

    with pytest.raises(ProtocolError):
        run_together(lambda c: offer_keys(c, 2), cheat)
