"""The frame every message travels in, and the checks on its header.

`magic u16 | version u8 | type u8 | session[16] | sequence u32 | length u32 | payload`, big-endian.
"""

import struct

from ppspeech.errors import (
    BadLengthError,
    BadSequenceError,
    BadTypeError,
    FrameTooLargeError,
    PeerGoneError,
    WrongSessionError,
)

HEADER = struct.Struct(">HBB16sII")
MAGIC = 0x5053
VERSION = 1
HELLO = 0  # the first frame in each direction, before there is a session: its session field is `NO_SESSION`
ABORT = 255
"""Ends the session. Its payload is one byte, always the same: why is nobody's business but the sender's log's."""
ABORT_PAYLOAD = b"\x00"
NO_SESSION = bytes(16)
LAST_SEQUENCE = 2**32 - 1


def pack_header(kind: int, session: bytes, sequence: int, length: int) -> bytes:
    """The 28 bytes before a payload of `length` bytes."""
    return HEADER.pack(MAGIC, VERSION, kind, session, sequence, length)


def check_header(header: bytes, *, kind: int, session: bytes, sequence: int, size: int | None, at_most: int) -> int:
    """Check that a header is the one that may come now, before its payload is read; returns the payload's length.

    The length is `size`, or where that is None up to `at_most`. Raises the `ProtocolError` that fits; `PeerGoneError`
    for an ABORT.
    """
    magic, version, got_kind, got_session, got_sequence, length = HEADER.unpack(header)
    if magic != MAGIC or version != VERSION:
        raise BadTypeError(f"not a frame of version {VERSION}: magic {magic:#06x}, version {version}")
    if got_kind not in (kind, ABORT):
        raise BadTypeError(f"expected a message of kind {kind}, got kind {got_kind}")
    if got_session != session and not (got_kind == ABORT and got_session == NO_SESSION):
        raise WrongSessionError(f"a frame of session {got_session.hex()} in session {session.hex()}")
    if got_kind == ABORT:
        raise PeerGoneError("the peer aborted the session; its own log says why")
    if got_sequence != sequence:
        fault = "repeats" if got_sequence < sequence else "skips"
        raise BadSequenceError(f"frame number {got_sequence} {fault} in place of number {sequence}")
    allowed = at_most if size is None else size
    if length > allowed:
        raise FrameTooLargeError(f"a message of kind {kind} announces {length} bytes where at most {allowed} may come")
    if size is not None and length != size:
        raise BadLengthError(f"a message of kind {kind} announces {length} bytes where exactly {size} must come")
    return int(length)
