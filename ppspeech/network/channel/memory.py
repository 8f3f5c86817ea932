"""Channels in memory, for parties that are threads of one process."""

import queue
import time

from ppspeech.errors import BadLengthError, BadTypeError, FrameTooLargeError, PeerGoneError, PeerTimeoutError
from ppspeech.network.channel.session import check_bounds, check_kind
from ppspeech.network.limits import Limits

_Message = tuple[int, bytes] | None  # A kind and a payload; None when the sender is gone


class MemoryChannel:
    """One end of a conversation through two queues (`memory_pair`); refuses and ends as `StreamChannel` does."""

    def __init__(
        self, outgoing: "queue.SimpleQueue[_Message]", incoming: "queue.SimpleQueue[_Message]", limits: Limits
    ) -> None:
        self.limits = limits
        self._outgoing, self._incoming = outgoing, incoming
        self._ends = time.monotonic() + limits.session_seconds
        self._over = False

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Send one message; see `Channel.send`. The payload is copied unless it is `bytes`."""
        check_kind(kind)
        self._check_open()
        data = bytes(payload)
        if len(data) > self.limits.message_bytes:
            self.close()
            raise FrameTooLargeError(f"cannot send {len(data)} bytes: the limit is {self.limits.message_bytes}")
        self._outgoing.put((kind, data))

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        """Wait for the next message, which must be of this kind and length; see `Channel.receive`."""
        check_kind(kind)
        check_bounds(size, at_most)
        self._check_open()
        try:
            message = self._incoming.get(
                timeout=max(0.0, min(self.limits.message_seconds, self._ends - time.monotonic()))
            )
        except queue.Empty:
            self.close()
            raise PeerTimeoutError("the peer did not answer in time") from None
        if message is None:
            self.close()
            raise PeerGoneError("the peer is gone")
        got_kind, payload = message
        allowed = size if at_most is None else min(at_most, self.limits.message_bytes)
        assert allowed is not None
        if got_kind == kind and (len(payload) == size or (size is None and len(payload) <= allowed)):
            return payload
        self.close()
        if got_kind != kind:
            raise BadTypeError(f"expected a message of kind {kind}, got kind {got_kind}")
        what = f"a message of kind {kind} has {len(payload)} bytes where"
        if len(payload) > allowed:
            raise FrameTooLargeError(f"{what} at most {allowed} may come")
        raise BadLengthError(f"{what} exactly {size} must come")

    def close(self) -> None:
        """End the session: the peer gets what was sent, and then `PeerGoneError`."""
        if not self._over:
            self._over = True
            self._outgoing.put(None)

    def _check_open(self) -> None:
        if self._over:
            raise PeerGoneError("the session is over")


def memory_pair(limits: Limits | None = None) -> tuple[MemoryChannel, MemoryChannel]:
    """The two ends of a conversation in memory.

    >>> here, there = memory_pair()
    >>> here.send(1, b"hello")
    >>> there.receive(1, at_most=10)
    b'hello'
    """
    limits = limits or Limits()
    one: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    other: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    return MemoryChannel(one, other, limits), MemoryChannel(other, one, limits)
