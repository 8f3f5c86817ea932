"""A peer that misbehaves on the wire: each fault has its error, and the peer learns nothing from it."""

import logging
import socket
import threading
import time
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.errors import (
    BadLengthError,
    BadSequenceError,
    BadTypeError,
    FrameTooLargeError,
    NotInGroupError,
    PeerGoneError,
    PeerTimeoutError,
    ProtocolError,
    WrongSessionError,
)
from ppspeech.network.channel.frames import ABORT, HEADER, pack_header
from tests.network.conftest import QUICK, RawPeer

FAULTS = {
    "magic": (lambda raw: b"GE" + raw.frame(payload=b"four")[2:], BadTypeError),
    "version": (lambda raw: raw.frame(payload=b"four")[:2] + b"\x09" + raw.frame(payload=b"four")[3:], BadTypeError),
    "type": (lambda raw: raw.frame(kind=2, payload=b"four"), BadTypeError),
    "hello again": (lambda raw: raw.frame(kind=0, payload=b"four"), BadTypeError),
    "session": (lambda raw: raw.frame(payload=b"four", session=b"x" * 16), WrongSessionError),
    "gap": (lambda raw: raw.frame(sequence=1, payload=b"four"), BadSequenceError),
    "oversize": (lambda raw: raw.frame(length=2**32 - 1), FrameTooLargeError),
    "one too many": (lambda raw: raw.frame(payload=b"fives"), FrameTooLargeError),
    "short": (lambda raw: raw.frame(payload=b"two"), BadLengthError),
    "garbage": (lambda raw: b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", BadTypeError),
}


def send_megabytes(raw: RawPeer, count: int) -> None:
    for _ in range(count):
        raw.channel.send(1, bytes(2**20))


def receive_all(raw: RawPeer, count: int, at_most: int) -> None:
    for _ in range(count):
        assert len(raw.channel.receive(1, at_most=at_most)) <= at_most


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_error_and_one_outward_face(raw: RawPeer, fault: str) -> None:
    make, error = FAULTS[fault]
    raw.say(make(raw))
    with pytest.raises(error):
        raw.channel.receive(1, size=4)
    heard = raw.hear_all()
    # Where the channel closed on unread bytes the system may reset and drop the farewell; it never sends another.
    assert heard in (b"", pack_header(ABORT, raw.session, 0, 1) + b"\x00")
    with pytest.raises(PeerGoneError, match="over"):
        raw.channel.receive(1, size=4)
    with pytest.raises(PeerGoneError, match="over"):
        raw.channel.send(1, b"x")


def test_the_abort_frame_is_sent_where_it_can_be(raw: RawPeer) -> None:
    raw.say(raw.frame(kind=2))  # nothing left unread, so nothing is reset
    with pytest.raises(BadTypeError):
        raw.channel.receive(1, size=4)
    assert raw.hear_all() == pack_header(ABORT, raw.session, 0, 1) + b"\x00"


def test_a_replay_is_refused(raw: RawPeer) -> None:
    raw.say(raw.frame(payload=b"four") * 2)
    assert raw.channel.receive(1, size=4) == b"four"
    with pytest.raises(BadSequenceError, match="repeats"):
        raw.channel.receive(1, size=4)


@pytest.mark.parametrize("cut", [1, 27, 28, 30, 28 + 20_000])
def test_a_stream_that_ends_inside_a_message(raw: RawPeer, cut: int) -> None:
    raw.say(raw.frame(payload=bytes(40_000))[:cut])
    raw.socket.close()
    with pytest.raises(BadLengthError, match="ended inside"):
        raw.channel.receive(1, size=40_000)


def test_a_stream_that_ends_between_messages(raw: RawPeer) -> None:
    raw.say(raw.frame(payload=b"four"))
    raw.socket.close()
    assert raw.channel.receive(1, size=4) == b"four"
    with pytest.raises(PeerGoneError):
        raw.channel.receive(1, size=4)


def test_an_abort_ends_the_session(raw: RawPeer) -> None:
    raw.say(raw.frame(kind=ABORT, payload=b"\x00"))
    with pytest.raises(PeerGoneError, match="aborted"):
        raw.channel.receive(1, size=4)


def test_an_oversize_length_allocates_nothing() -> None:
    large = replace(QUICK, message_bytes=2**32 - 1)
    raw = RawPeer(large)
    raw.say(raw.frame(length=2**31))
    tracemalloc.start()
    with pytest.raises(FrameTooLargeError):
        raw.channel.receive(1, at_most=2**30)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    raw.socket.close()


def test_an_allowed_length_beyond_our_own_limit_is_refused_before_reading(raw: RawPeer) -> None:
    with pytest.raises(FrameTooLargeError, match="message_bytes"):
        raw.channel.receive(1, size=QUICK.message_bytes + 1)
    raw = RawPeer()
    with pytest.raises(FrameTooLargeError, match="limits"):
        raw.channel.send(1, bytes(QUICK.message_bytes + 1))
    raw.socket.close()


def test_a_silent_peer_is_not_waited_for() -> None:
    raw = RawPeer(replace(QUICK, message_seconds=0.1))
    with pytest.raises(PeerTimeoutError):
        raw.channel.receive(1, size=4)
    assert raw.hear_all() == pack_header(ABORT, raw.session, 0, 1) + b"\x00"
    raw.socket.close()


def test_a_peer_that_drips_is_not_waited_for() -> None:
    raw = RawPeer(replace(QUICK, message_seconds=0.3))
    stop = threading.Event()

    def drip() -> None:
        for byte in raw.frame(payload=bytes(1000)):
            if stop.is_set():
                return
            try:
                raw.say(bytes([byte]))
            except OSError:
                return
            time.sleep(0.01)

    dripping = threading.Thread(target=drip)
    dripping.start()
    with pytest.raises(PeerTimeoutError):
        raw.channel.receive(1, size=1000)
    stop.set()
    dripping.join()
    raw.socket.close()


def test_a_peer_that_reads_nothing_is_not_waited_for() -> None:
    raw = RawPeer(replace(QUICK, message_seconds=0.2))
    with pytest.raises(PeerTimeoutError):
        send_megabytes(raw, 100)
    raw.socket.close()


def test_a_session_has_an_end_however_busy_it_is() -> None:
    raw = RawPeer(replace(QUICK, session_seconds=0.3))

    def keep_talking() -> None:
        for number in range(100):
            try:
                raw.say(raw.frame(sequence=number))
            except OSError:
                return
            time.sleep(0.01)
        raw.socket.close()

    talking = threading.Thread(target=keep_talking)
    talking.start()
    with pytest.raises(PeerTimeoutError):
        receive_all(raw, 101, at_most=0)
    talking.join()
    raw.socket.close()


def test_a_flood_while_we_send_is_held_back() -> None:
    """A peer that only writes may fill our inbox to its bound and not beyond."""
    limits = replace(QUICK, message_seconds=0.5, message_bytes=2**20)
    raw = RawPeer(limits)
    raw.socket.setblocking(False)
    flooded = 0

    def flood() -> None:
        nonlocal flooded
        until = time.monotonic() + 2
        while time.monotonic() < until:
            try:
                flooded += raw.socket.send(bytes(65536))
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                return

    flooding = threading.Thread(target=flood)
    flooding.start()
    with pytest.raises(PeerTimeoutError):
        send_megabytes(raw, 10)
    flooding.join()
    assert flooded < 3 * 2**20  # the inbox, and what the system keeps of a socket pair
    raw.socket.close()


def test_a_half_open_connection_ends_in_time() -> None:
    """The peer has shut its writing side, or its machine is gone: either way we get an error and no hang."""
    raw = RawPeer(replace(QUICK, message_seconds=0.2))
    raw.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(PeerGoneError):
        send_megabytes(raw, 100)
    raw.socket.close()


@pytest.mark.parametrize("kind", [-1, 0, 255, 256])
def test_kinds_that_are_not_the_protocols_own_are_refused(raw: RawPeer, kind: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.254"):
        raw.channel.send(kind, b"")
    with pytest.raises(ValueError, match=r"1\.\.254"):
        raw.channel.receive(kind, size=0)


@pytest.mark.parametrize(("size", "at_most"), [(None, None), (1, 1), (-1, None), (None, -1)])
def test_a_step_must_say_how_long(raw: RawPeer, size: int | None, at_most: int | None) -> None:
    with pytest.raises(ValueError, match="at_most"):
        raw.channel.receive(1, size=size, at_most=at_most)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=80) | st.sampled_from(["good", "abort"]), max_size=6))
def test_any_bytes_give_messages_or_a_protocol_error(pieces: list[bytes | str]) -> None:
    raw = RawPeer(replace(QUICK, message_seconds=1))
    sequence = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            raw.say(piece)
        else:
            raw.say(raw.frame(kind=1 if piece == "good" else ABORT, sequence=sequence, payload=b"four"))
            sequence += 1
    raw.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(ProtocolError):
        receive_all(raw, len(pieces) + 1, at_most=50)
    raw.socket.close()


def test_nothing_of_a_payload_is_logged(raw: RawPeer, caplog: pytest.LogCaptureFixture) -> None:
    secret = b"SECRET-PAYLOAD"
    raw.channel.send(1, secret)
    raw.say(raw.frame(payload=secret) + raw.frame(sequence=1, payload=secret))
    assert raw.channel.receive(1, size=len(secret)) == secret
    with pytest.raises(FrameTooLargeError) as caught:
        raw.channel.receive(1, size=3)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    for text in (caplog.text, str(caught.value)):
        assert "SECRET" not in text
        assert secret.hex() not in text
    assert "announces 14 bytes" in caplog.text


def check_point(raw: RawPeer, error: Exception) -> None:
    with raw.channel:
        raise error


def test_a_party_program_that_refuses_a_message_aborts_and_says_why_at_home(
    raw: RawPeer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NotInGroupError):
        check_point(raw, NotInGroupError("point 3 is not on the curve"))
    assert "NotInGroupError: point 3 is not on the curve" in caplog.text
    assert raw.hear_all() == pack_header(ABORT, raw.session, 0, 1) + b"\x00"


def test_the_words_of_other_errors_stay_out_of_the_log(raw: RawPeer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyError):
        check_point(raw, KeyError("SECRET"))
    assert "KeyError" in caplog.text
    assert "SECRET" not in caplog.text
    assert raw.hear_all() == pack_header(ABORT, raw.session, 0, 1) + b"\x00"


def test_header_size_is_what_a_byte_count_adds(raw: RawPeer) -> None:
    raw.channel.send(1, b"four")
    assert raw.channel.bytes_sent == HEADER.size + 4
