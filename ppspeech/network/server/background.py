"""A server in a process of its own, for as long as a block of code runs."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ppspeech.network.address import Address
from ppspeech.network.server.load import Counters
from ppspeech.network.server.server import Server


@dataclass
class RunningServer:
    """A server in a process of its own. `counters`: what it did, once it has stopped."""

    address: Address
    pid: int
    counters: Counters | None = None


@contextmanager
def in_background(server: Server) -> Iterator[RunningServer]:
    """Run a server in a fork of this process (see `Server` for what that asks) while the `with` block lasts."""
    reader, writer = os.pipe()
    # A signal to stop that comes before the child can handle it waits until it can.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: server.stop())
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.write(writer, json.dumps(server.run().as_dict()).encode())
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(writer)
    server.close()
    running = RunningServer(server.address, pid)
    try:
        yield running
    finally:
        os.kill(pid, signal.SIGTERM)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        if said:
            running.counters = Counters.from_dict(json.loads(said))
