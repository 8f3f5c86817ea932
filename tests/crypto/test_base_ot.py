"""Base transfers: the chosen key and no other, and no point that is not one."""

import nacl.bindings as sodium
import numpy as np
import pytest

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.transfer.base import _hash_to_group, _key, choose_keys, offer_keys
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
    assert shapes[0] == shapes[1] == [("received", Kind.BASE_POINT, 32), ("sent", Kind.BASE_REPLY, 192)]


@pytest.mark.parametrize("point", BAD_POINTS.values(), ids=BAD_POINTS)
def test_the_receiver_refuses_what_is_no_point(point: bytes) -> None:
    with pytest.raises(NotInGroupError):
        run_together(lambda c: c.send(Kind.BASE_POINT, point), lambda c: choose_keys(c, np.ones(2, bool)))


@pytest.mark.parametrize("point", BAD_POINTS.values(), ids=BAD_POINTS)
def test_the_sender_refuses_what_is_no_point(point: bytes) -> None:
    def cheat(channel: object) -> None:
        channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, 3 * POINT + point)

    with pytest.raises(NotInGroupError):
        run_together(lambda c: offer_keys(c, 2), cheat)


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(BadLengthError):
        run_together(lambda c: c.send(Kind.BASE_POINT, POINT[:-1]), lambda c: choose_keys(c, np.ones(1, bool)))

    def cheat(channel: object) -> None:
        channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, 3 * POINT)

    with pytest.raises(ProtocolError):
        run_together(lambda c: offer_keys(c, 2), cheat)


def test_one_answer_for_several_transfers_gives_unrelated_keys() -> None:
    """What breaks batches whose hashes leave out the transfer's number (McQuoid, Rosulek and Roy 2021)."""

    def cheat(channel: object) -> None:
        channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, (POINT + POINT) * 4)

    (keys, _), _ = run_together(lambda c: offer_keys(c, 4), cheat)
    assert len({key.tobytes() for key in keys.reshape(-1, 16)}) == 8


@pytest.mark.parametrize("changed", range(5))
def test_keys_and_halves_are_bound_to_all_that_was_said(changed: int) -> None:
    said = [3, 1, b"point" * 6, b"answer" * 10, b"product" * 4]
    other = [4, 0, b"Point" * 6, b"Answer" * 10, b"Product" * 4]
    mixed = [theirs if place == changed else ours for place, (ours, theirs) in enumerate(zip(said, other, strict=True))]
    assert (_key(*said) != _key(*mixed)).any()
    if changed < 4:
        assert _hash_to_group(*said[:4]) != _hash_to_group(*mixed[:4])
        assert sodium.crypto_core_ed25519_is_valid_point(_hash_to_group(*mixed[:4]))


def test_a_receiver_of_both_halves_made_by_itself_gets_neither_key_but_one() -> None:
    """It knows the logarithm of both points it sends; the sender's halves are moved by hashes of the other ones."""
    scalars = [(number + 5).to_bytes(32, "little") for number in range(2)]
    points = [sodium.crypto_scalarmult_ed25519_base_noclamp(scalar) for scalar in scalars]
    seen = {}

    def cheat(channel: object) -> None:
        seen["point"] = channel.receive(Kind.BASE_POINT, 32)
        channel.send(Kind.BASE_REPLY, points[0] + points[1])

    (keys, _), _ = run_together(lambda c: offer_keys(c, 1), cheat)
    products = [sodium.crypto_scalarmult_ed25519_noclamp(scalar, seen["point"]) for scalar in scalars]
    for side in (0, 1):
        guess = _key(0, side, seen["point"], points[0] + points[1], products[side])
        assert (guess != keys[0, side]).any()


def test_a_sender_sees_points_that_never_repeat_and_do_not_tell_the_choice() -> None:
    """Neither half of an answer, moved as a sender moves it, is a point that was sent."""
    replies = []
    for _ in range(2):
        here, there = memory_pair()
        here.send(Kind.BASE_POINT, POINT)
        choose_keys(there, np.array([0, 1, 1], bool))
        replies.append(here.receive(Kind.BASE_REPLY, 192))
    points = [reply[at : at + 32] for reply in replies for at in range(0, 192, 32)]
    assert len(set(points)) == 12
    for number in range(3):
        halves = replies[0][64 * number : 64 * number + 32], replies[0][64 * number + 32 : 64 * number + 64]
        for side in (0, 1):
            moved = _hash_to_group(number, side, POINT, halves[1 - side])
            assert sodium.crypto_core_ed25519_add(halves[side], moved) not in points


def test_no_two_conversations_have_the_same_point_or_keys() -> None:
    runs = [run_together(lambda c: offer_keys(c, 1), lambda c: choose_keys(c, np.ones(1, bool))) for _ in range(2)]
    assert len({keys.tobytes() for (keys, _), _ in runs}) == len({said for (_, said), _ in runs}) == 2
