"""A studio that runs in this process, on a port of its own, and a way to ask it that says every header."""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from ppspeech.network import Address
from ppspeech.studio import Places, Studio
from ppspeech.studio.guard import BEARER
from ppspeech.studio.run import listening_at

TOKEN = "a-token-of-tests-that-nobody-else-has"


class Said(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def plain(self) -> Any:
        return json.loads(self.body)


@contextmanager
def running(places: Places) -> Iterator[Studio]:
    """A studio as `ppspeech studio` runs it, but in a thread."""
    with listening_at(Address("127.0.0.1", 0)) as listening:
        studio = Studio(Address("127.0.0.1", listening.getsockname()[1]), TOKEN, places)
        config = uvicorn.Config(studio, log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        server.capture_signals = lambda: _nothing()  # type: ignore[method-assign]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
        thread.start()
        try:
            yield studio
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def own(studio: Studio) -> dict[str, str]:
    """What the studio's own page sends with a question."""
    return {
        "Host": str(studio.address),
        "Authorization": f"{BEARER}{TOKEN}",
        "Origin": f"http://{studio.address}",
        "Content-Type": "application/json",
        "Sec-Fetch-Site": "same-origin",
    }


def ask(
    studio: Studio, path: str, body: Any = None, headers: Mapping[str, str] | None = None, method: str | None = None
) -> Said:
    """Ask as a page would; `headers` in place of its own. A body that is bytes is sent as it is."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(studio.address.host, studio.address.port, timeout=300)
    try:
        given = own(studio) if headers is None else headers
        connection.putrequest(method or ("GET" if data is None else "POST"), path, skip_host=True)
        for name, value in given.items():
            connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        return Said(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()
