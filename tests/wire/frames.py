"""Frames over a socket, HELLO, and small numbers as bytes."""

import hashlib
import json
import os
import socket
import ssl
import struct

HEADER = struct.Struct(">HBB16sII")
FLIGHT = 215
ROOM = 65536


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def pack(numbers: list[int], width: int) -> bytes:
    if width > 8:
        return b"".join(number.to_bytes((width + 7) // 8, "little") for number in numbers)
    eights = [numbers[at : at + 8] for at in range(0, len(numbers), 8)]  # as many bytes as a number has bits
    sums = [sum(number << (width * place) for place, number in enumerate(each)) for each in eights]
    return b"".join(each.to_bytes(width, "little") for each in sums)[: packed(len(numbers), width)]


def packed(count: int, width: int) -> int:
    return (count * width + 7) // 8 if width <= 8 else count * ((width + 7) // 8)


def unpack(data: bytes, count: int, width: int) -> list[int]:
    return [entry(data, place, width) for place in range(count)]


def entry(data: bytes, place: int, width: int) -> int:
    """One of packed numbers."""
    if width > 8:
        size = (width + 7) // 8
        return int.from_bytes(data[place * size : (place + 1) * size], "little") & ((1 << width) - 1)
    first, shift = divmod(place * width, 8)
    return int.from_bytes(data[first : first + 2], "little") >> shift & ((1 << width) - 1)


class Wire:
    """One session: `send` and `receive` messages, alone or in flights."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._session = connection, bytes(16)
        self._sent = self._received = 0
        self._flying, self._flight = False, b""

    @classmethod
    def connect(cls, host: str, port: int, pin: str | None, protocol: str, params: dict[str, object]) -> "Wire":
        plain = socket.create_connection((host, port), 10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(60)
        if pin is None:
            wire = cls(plain)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            wrapped = context.wrap_socket(plain)
            shown = wrapped.getpeercert(binary_form=True)
            if shown is None or hashlib.sha256(shown).hexdigest() != pin:
                wrapped.close()
                raise ConnectionError("not the pinned certificate")
            wire = cls(wrapped)
        wire._greet(protocol, params)
        return wire

    def _greet(self, protocol: str, params: dict[str, object]) -> None:
        nonce = os.urandom(16)
        said = {"nonce": nonce.hex(), "params": params, "protocol": protocol, "version": 1}
        self._write(0, canonical(said))
        answer = json.loads(self._read(0, None))
        if answer["protocol"] != protocol or canonical(answer["params"]) != canonical(params):
            raise ConnectionError("another protocol or other parameters")
        both = nonce + bytes.fromhex(answer["nonce"]) + protocol.encode("ascii") + canonical(params)
        self._session = hashlib.sha256(both).digest()[:16]

    def fly(self, flying: bool) -> None:
        self._flying = flying

    def send(self, kind: int, payload: bytes) -> None:
        if self._flying:  # every message in a flight of its own
            kind, payload = FLIGHT, struct.pack(">BI", kind, len(payload)) + payload
        self._write(kind, payload)

    def receive(self, kind: int, size: int | None = None) -> bytes:
        if not self._flying:
            return self._read(kind, size)
        if not self._flight:
            self._flight = self._read(FLIGHT, None)
        got, length = struct.unpack_from(">BI", self._flight)
        payload, self._flight = self._flight[5 : 5 + length], self._flight[5 + length :]
        if got != kind or length != size or len(payload) != size:
            raise ConnectionError(f"expected {size} bytes of kind {kind}, got {length} of {got}")
        return payload

    def close(self) -> None:
        self._socket.close()

    def _write(self, kind: int, payload: bytes) -> None:
        self._socket.sendall(HEADER.pack(0x5053, 1, kind, self._session, self._sent, len(payload)) + payload)
        self._sent += 1

    def _read(self, kind: int, size: int | None) -> bytes:
        magic, version, got, session, sequence, length = HEADER.unpack(self._exactly(HEADER.size))
        if (magic, version, got, session, sequence) != (0x5053, 1, kind, self._session, self._received):
            raise ConnectionError(f"expected kind {kind}, got {got} as number {sequence}")
        if size is not None and length != size:
            raise ConnectionError(f"expected {size} bytes of kind {kind}, got {length}")
        self._received += 1
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the server closed the connection")
            parts += part
        return parts
