"""A link with a delay, for experiments: a process between two parties that hands bytes on a moment later."""

import contextlib
import os
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ppspeech.network.address import Address
from ppspeech.network.tls.listener import listen

CHUNK = 1 << 18


@dataclass
class _Way:
    """Bytes under way from one end to the other, and when they may arrive."""

    source: socket.socket
    target: socket.socket
    moving: deque[tuple[float, bytes]] = field(default_factory=deque)
    open: bool = True


@contextlib.contextmanager
def slow_link(target: Address, seconds: float) -> Iterator[Address]:
    """An address that leads to `target` with a one-way delay, for one connection and as long as the block lasts."""
    listening = listen(Address("127.0.0.1", 0))
    address = Address("127.0.0.1", listening.getsockname()[1])
    child = os.fork()
    if child == 0:
        try:
            _relay(listening, target, seconds)
        finally:
            os._exit(0)
    listening.close()
    try:
        yield address
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _relay(listening: socket.socket, target: Address, seconds: float) -> None:
    near, _ = listening.accept()
    far = socket.create_connection((target.host, target.port))
    for end in (near, far):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ways = [_Way(near, far), _Way(far, near)]
    with selectors.DefaultSelector() as selector:
        for way in ways:
            selector.register(way.source, selectors.EVENT_READ, way)
        while any(way.open or way.moving for way in ways):
            due = min((way.moving[0][0] for way in ways if way.moving), default=time.monotonic() + 1)
            for key, _ in selector.select(max(0.0, due - time.monotonic())):
                way = key.data
                data = way.source.recv(CHUNK)
                way.moving.append((time.monotonic() + seconds, data))
                if not data:
                    way.open = False
                    selector.unregister(way.source)
            for way in ways:
                while way.moving and way.moving[0][0] <= time.monotonic():
                    _, data = way.moving.popleft()
                    if data:
                        way.target.sendall(data)
                    else:
                        way.target.shutdown(socket.SHUT_WR)
