"""Doors of servers that share state: addresses and keys in files, rows that a database gives back, who watches."""

import os
import socket
from types import SimpleNamespace
from typing import Any

import numpy as np

from ppspeech.network import Board
from ppspeech.service.metrics.listen import _App, _Quiet
from ppspeech.service.server.stores import Gallery
from ppspeech.service.store import PostgresStore, StoreAddress, StoreSeal
from tests.fuzz.door import Door, door, new_folder

SEAL = StoreSeal.under(bytes(32))


@door(cost=2)
def store_address() -> Door:
    """An address, with a password in it; what is wrong with it is said without the password."""

    def enter(data: bytes) -> object:
        return StoreAddress.parse(data.decode("latin-1").lstrip("@"))  # a file that is not there is tried elsewhere

    seed = b"postgresql://ann:pass@db.example:5433/words?sslmode=verify-full&sslrootcert=ca.pem"
    return Door(enter, (seed, b"postgres://ann:p@[::1]/words", b"postgresql://ann:p@/words?host=/run/postgresql"))


@door(cost=4)
def store_password_file() -> Door:
    """Lines of passwords, and an address in a file."""
    path = new_folder() / "pgpass"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))

    def enter(data: bytes) -> None:
        path.write_bytes(data)
        StoreAddress.parse(f"postgresql://ann@db/words?passfile={path}")

    return Door(enter, (b"# ours\nother:*:*:*:no\ndb:5432:*:ann:a\\:b\n*:*:*:*:last\n",))


@door(cost=4)
def store_key() -> Door:
    path = new_folder() / "key"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))

    def enter(data: bytes) -> object:
        path.write_bytes(data)
        return StoreSeal.read(path)

    return Door(enter, (b"0123456789abcdef" * 4 + b"\n",))


@door(cost=2)
def store_row() -> Door:
    """A speaker's row, as a database gives it back (`ppspeech.service.store.postgres` has asked for it)."""
    place = PostgresStore(StoreAddress("127.0.0.1", 1, "words", "ann"), SEAL)
    gallery = Gallery(place, "m", 2, 3)
    seed = gallery._row("ann", np.eye(3)[0], 1)

    def enter(data: bytes) -> object:
        return gallery._read(gallery._tag("ann"), 1, data)

    return Door(enter, (seed,))


@door(cost=30)
def metrics_request() -> Door:
    """What whoever watches a server asks at its port."""
    board = Board()
    board.beat()
    board.put(ready=1)
    shown: Any = SimpleNamespace(board=board, is_up=lambda: True)
    app = _App(lambda _, respond: respond("200 OK", []) or [b"sums"], shown)
    environ = {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": "1", "GATEWAY_INTERFACE": "CGI/1.1", "SCRIPT_NAME": ""}
    server: Any = SimpleNamespace(get_app=lambda: app, base_environ=environ)

    def enter(data: bytes) -> None:
        here, there = socket.socketpair()
        with here, there:
            here.sendall(data[:60_000])
            here.shutdown(socket.SHUT_WR)
            _Quiet(there, ("127.0.0.1", 1), server)
            there.close()
            here.settimeout(10)
            said = here.recv(1 << 16)
        assert not said or said.startswith((b"HTTP/1.", b"<!DOCTYPE", b"ok", b"sums", b"here")), said[:80]

    return Door(
        enter, (b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /healthz\r\n")
    )
