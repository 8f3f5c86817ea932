"""One session in a process of its own: what the child of a server does, and what it reports to its parent."""

import ctypes
import json
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppspeech.channel import Channel
from ppspeech.errors import ProtocolError, WrongSessionError
from ppspeech.network.channel.hello import Params, accept_only, answer
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.channel.stream import ByteStream, Carrier
from ppspeech.network.limits import Limits
from ppspeech.network.server.load import Capacity
from ppspeech.network.tls.context import wrap_server

if TYPE_CHECKING:
    from ppspeech.network.web.door import WebDoor
    from ppspeech.network.web.stream import WebStream

logger = logging.getLogger(__name__)

REPORT_BYTES = 4096
TELL_OF_PARENTS_END = 1  # PR_SET_PDEATHSIG of prctl(2)


@dataclass(frozen=True)
class Service:
    """A party program that a server offers. `program`: called with the channel and the session's public parameters.
    `params`: the only parameters it is offered with; None leaves them to the client, and the program must judge them
    itself, for instance whether the sizes they ask for can be borne. `refresh`: called now and then in the server's
    process, before it forks, so that sessions inherit what it has taken in; it reads no byte of a client's connection.
    """

    program: Callable[[Channel, Params], object]
    params: Params | None = None
    refresh: Callable[[], None] | None = None


class Stopped(BaseException):
    """The server asks this session to end. Not an `Exception`, so that no party program catches it by accident."""


def be_worker(
    connection: socket.socket,
    services: Mapping[str, Service],
    context: ssl.SSLContext | None,
    limits: Limits,
    capacity: Capacity,
    report: int,
    web: "WebDoor | None" = None,
    parent: int | None = None,
    call: Callable[[Limits, float], Carrier] | None = None,
) -> None:
    """Run one session; the process is to be left afterwards, and ends when its `parent` does, however that is.

    `report`: the pipe to the parent; it gets a line of JSON when the client has been greeted, when it has
    said something, and at the end. `web`: by which door the client came, if it was that of pages; it may then be a file
    that it asks for, and no session. `call`: opens a session of a client that came over UDP, which has TLS in itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, _stop)
    failure: str | None = None
    channel: StreamChannel | None = None
    try:
        end_with(parent)
        bound_memory(capacity.session_bytes)
        deadline = time.monotonic() + limits.handshake_seconds
        opened: Carrier | None
        if call is not None:
            opened = call(limits, deadline)
        else:
            if context is not None:
                connection = wrap_server(connection, context, deadline)
            opened = stream = ByteStream(connection, limits.message_bytes)
            if web is not None:
                opened = _admit(web, stream, limits, deadline, report, secure=context is not None)
        if opened is not None:
            channel = StreamChannel(opened, limits, deadline)
            with channel:
                name, params = answer(channel, lambda name, params: _accept(services, name, params))
                opened.opened()
                _say(report, {"protocol": name})
                channel.expect_within(capacity.opening_seconds, lambda: _say(report, {"opened": True}))
                services[name].program(channel, params)
    except BaseException as error:
        failure = type(error).__name__
        if not isinstance(error, ProtocolError | Stopped):
            # The message may hold what the program was working on; its place in the code is enough to find it.
            logger.error("a party program failed: %s at %s", failure, _place(error))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # too late to stop
    sent, received = (channel.bytes_sent, channel.bytes_received) if channel else (0, 0)
    logging.shutdown()
    sys.stdout.flush()
    _say(report, {"failure": failure, "sent": sent, "received": received})


def end_with(parent: int | None) -> None:
    """Be told to stop when the parent ends: one that was killed counts our place no longer, and another may serve."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(TELL_OF_PARENTS_END, signal.SIGTERM)
    if parent not in (None, os.getppid()):  # it ended before we had asked
        raise Stopped


def bound_memory(extra: int) -> None:
    """Let this process take at most `extra` bytes more of private memory; beyond that Python raises MemoryError.

    Only Linux counts all private memory here; elsewhere the bound covers what its RLIMIT_DATA covers.
    """
    status = Path("/proc/self/statm")
    held = int(status.read_text().split()[5]) * resource.getpagesize() if status.exists() else 0
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + extra
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _accept(services: Mapping[str, Service], name: str, params: Params) -> None:
    service = services.get(name)
    if service is None:
        raise WrongSessionError(f"no protocol called {name!r} is served here")
    if service.params is not None:
        accept_only(name, service.params)(name, params)


def _admit(
    web: "WebDoor", stream: ByteStream, limits: Limits, deadline: float, report: int, *, secure: bool
) -> "WebStream | None":
    """A session's bytes over a WebSocket, if that is what was asked for; a file is sent, and that was all."""
    try:
        asked = web.admit(stream, limits, deadline, secure=secure)
        if not isinstance(asked, bytes):
            return asked
        _say(report, {"protocol": "page"})
        stream.write(asked, time.monotonic() + limits.message_seconds)
    except BaseException:
        stream.close()
        raise
    stream.close()
    return None


def _say(report: int, what: dict[str, Any]) -> None:
    os.write(report, json.dumps(what).encode() + b"\n")


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "an unknown place"


def _stop(*_: object) -> None:
    raise Stopped
