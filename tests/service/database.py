"""A real PostgreSQL that tests share, and a way to it that can be cut."""

import contextlib
import secrets
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ppspeech.evidence.bench.local_postgres import LocalPostgres, find_programs, local_postgres
from ppspeech.service.store import PostgresStore, StoreAddress, StoreSeal

FAST = ("-c", "fsync=off", "-c", "max_connections=40")


@contextlib.contextmanager
def database() -> Iterator[LocalPostgres]:
    """A new one; the test is skipped where there is none to start."""
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL here: Debian's package postgresql has one")
    with local_postgres(*FAST) as running:
        yield running


def emptied(running: LocalPostgres, key: bytes = bytes(32)) -> PostgresStore:
    """A store in it with nothing in it."""
    address = StoreAddress.parse(running.address)
    bare = PostgresStore(address, StoreSeal.under(key))
    with bare._connected() as ask:
        ask("DROP SCHEMA IF EXISTS ppspeech CASCADE")
    return PostgresStore.open(address, StoreSeal.under(key))


def key_file(folder: Path) -> Path:
    path = folder / "store.key"
    path.write_text(secrets.token_hex(32))
    path.chmod(0o600)
    return path


class Way:
    """A way to a port that is cut, once, when a message goes by; what was said goes on, and the answer does not."""

    def __init__(self, port: int, cut_after: bytes) -> None:
        self._port, self._after = port, cut_after
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(0.05)
        self.port = self._listening.getsockname()[1]
        self.cuts = 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with self._listening:
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    here, _ = self._listening.accept()
                    self._threads.append(threading.Thread(target=self._pass, args=(here,)))
                    self._threads[-1].start()

    def _pass(self, here: socket.socket) -> None:
        with here, socket.create_connection(("127.0.0.1", self._port)) as there:
            while True:
                for source in select.select([here, there], [], [], 30)[0] or [here]:
                    data = source.recv(65536)
                    if not data:
                        return
                    (there if source is here else here).sendall(data)
                    if source is here and self._after in data and not self.cuts:
                        self.cuts += 1
                        there.shutdown(socket.SHUT_WR)  # all of it is heard there, and nothing of the answer here
                        return

    def shut(self) -> None:
        """Let nobody in from now on."""
        self._over.set()
        self._threads[0].join()

    def close(self) -> None:
        self.shut()
        for each in self._threads[1:]:
            each.join()
