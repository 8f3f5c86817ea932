"""A port of its own for whoever watches a server: /metrics, /healthz and /readyz, in a process of its own.

The server forks, and a process with threads must not. So the one that answers here is forked once, before the server
listens, and looks at what the server shows on its board.

    /healthz   200 while the server's loop goes around
    /readyz    200 while new sessions are taken and what servers share is reached; 503 as soon as it is asked to stop
    /metrics   `Exposition`
"""

import contextlib
import importlib
import os
import signal
import socket
import socketserver
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ppspeech.errors import MissingPackageError, PpspeechError
from ppspeech.network import Address
from ppspeech.service.metrics.exposition import Exposition

STUCK_SECONDS = 60.0  # a loop that has not gone around for so long hangs
KNOWN_SECONDS = 1.0  # for how long it is believed that the store is there, or not
REQUEST_SECONDS = 5.0

Respond = Callable[[str, list[tuple[str, str]]], Any]


@contextlib.contextmanager
def watched(at: str, exposition: Exposition) -> Iterator[Address]:
    """Answer at HOST:PORT while the block lasts: where, with the port that was taken for 0.

    Raises PpspeechError for an address that is none or cannot be listened at; MissingPackageError without
    `prometheus_client`.
    """
    client = _prometheus()
    registry = client.CollectorRegistry()
    registry.register(exposition)
    address = Address.parse(at)
    try:
        server = _Watch((address.host, address.port), _Quiet)
    except OSError as error:
        raise PpspeechError(f"cannot listen at {address}: {error.strerror}") from None
    server.set_app(_App(client.make_wsgi_app(registry), exposition))
    bound = Address(address.host, server.server_address[1])
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_watch(server)
    server.socket.close()
    try:
        yield bound
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _be_watch(server: "_Watch") -> None:
    """Answer until the server's process has ended, however it does; the signals that stop it are not for us."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        server.serve_forever(poll_interval=0.2)
    finally:
        os._exit(0)


class _Watch(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    timeout = REQUEST_SECONDS

    def __init__(self, *arguments: Any) -> None:
        self.parent = os.getpid()
        host = arguments[0][0]
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """Bind without asking who we are by name: that may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]  # type: ignore[assignment]
        self.setup_environ()

    def service_actions(self) -> None:
        """End with the server: it may have been killed."""
        if os.getppid() != self.parent:
            os._exit(0)


class _Quiet(WSGIRequestHandler):
    timeout = REQUEST_SECONDS

    def log_message(self, *_: Any) -> None:
        """Say nothing of who looks."""


class _App:
    def __init__(self, metrics: Callable[..., Iterable[bytes]], exposition: Exposition) -> None:
        self._metrics, self._board, self._is_up = metrics, exposition.board, exposition.is_up
        self._known, self._until = False, 0.0

    def __call__(self, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _say(respond, "405 Method Not Allowed", "GET alone")
        if path == "/metrics":
            return self._metrics(environ, respond)
        if path == "/healthz":
            well = self._board.silent_seconds < STUCK_SECONDS
            return _say(respond, "200 OK" if well else "503 Service Unavailable", "ok" if well else "stuck")
        if path == "/readyz":
            why = self._why_not()
            return _say(respond, "503 Service Unavailable" if why else "200 OK", why or "ok")
        return _say(respond, "404 Not Found", "here are /metrics, /healthz and /readyz")

    def _why_not(self) -> str | None:
        """Why no new session is taken; None where they are."""
        if self._board["draining"]:
            return "draining"
        if not self._board["ready"]:
            return "starting"
        if time.monotonic() > self._until:
            self._known, self._until = self._is_up(), time.monotonic() + KNOWN_SECONDS
        return None if self._known else "the store cannot be reached"


def _say(respond: Respond, status: str, text: str) -> list[bytes]:
    body = f"{text}\n".encode()
    respond(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]


def _prometheus() -> Any:
    try:
        return importlib.import_module("prometheus_client")
    except ModuleNotFoundError:
        install = "pip install 'ppspeech[scale]', or give a file"
        raise MissingPackageError("--metrics at a port", "prometheus-client", install) from None
