"""What passes between a client and a server: a relay on loopback that notes the kind and length of every frame."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

HEADER = struct.Struct(">HBB16sII")
Frame = tuple[int, int]


class Direction:
    """The frames of one direction of one connection."""

    def __init__(self, alter: tuple[int, int] | None = None) -> None:
        self.frames: list[Frame] = []
        self.alter = alter  # a kind, and a place in its payload
        self._rest = self._waiting = b""

    def note(self, data: bytes) -> bytes:
        """What of it is passed on: with an `alter`, one byte of the first frame of a kind is another."""
        data = self._altered(data) if self.alter else data
        self._rest += data
        while len(self._rest) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._rest)[2], HEADER.unpack_from(self._rest)[5]
            if len(self._rest) < HEADER.size + length:
                break
            self.frames.append((kind, length))
            self._rest = self._rest[HEADER.size + length :]
        return data

    def _altered(self, data: bytes) -> bytes:
        """Whole frames only; what is left waits for more."""
        self._waiting += data
        out = b""
        while len(self._waiting) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._waiting)[2], HEADER.unpack_from(self._waiting)[5]
            if len(self._waiting) < HEADER.size + length:
                break
            frame, self._waiting = (
                bytearray(self._waiting[: HEADER.size + length]),
                self._waiting[HEADER.size + length :],
            )
            if self.alter and kind == self.alter[0]:
                frame[self.alter[1] + (HEADER.size if self.alter[1] >= 0 else 0)] ^= 2
                self.alter = None
                out += bytes(frame) + self._waiting
                self._waiting = b""
                break
            out += bytes(frame)
        return out


class Relay:
    """Connections in the order in which they came, each as what the client and what the server sent."""

    def __init__(self, port: int, alter: Sequence[tuple[int, int] | None] = ()) -> None:
        self.connections: list[tuple[Direction, Direction]] = []
        self._alter = list(alter)
        self._to, self._listening = port, socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def close(self) -> None:
        """Stop, once all has passed."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in list(self._threads):
            thread.join(30)
        for each in self._sockets:
            each.close()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                both = Direction(), Direction(self._alter.pop(0) if self._alter else None)
                self.connections.append(both)
                self._start(self._pass, client, server, both[0])
                self._start(self._pass, server, client, both[1])

    def _pass(self, source: socket.socket, target: socket.socket, seen: Direction) -> None:
        for end in (source, target):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(seen.note(data))
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def relayed(port: int, alter: Sequence[tuple[int, int] | None] = ()) -> Iterator[Relay]:
    """`alter`: for each connection what a server that cheats changes in it."""
    relay = Relay(port, alter)
    try:
        yield relay
    finally:
        relay.close()
