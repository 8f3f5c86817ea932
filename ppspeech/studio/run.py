"""A studio that runs: on loopback, until Ctrl-C, with nothing left behind."""

import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from ppspeech.errors import PpspeechError
from ppspeech.network import Address
from ppspeech.studio.app import Studio
from ppspeech.studio.choices import Places

TOKEN_BYTES = 32


class _Server(uvicorn.Server):
    """One that ends in order by a signal: what is to be cleared away after it still is."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN  # else it was begun to outlive its terminal
        ends = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hangs_up else ()))
        before = {which: signal.signal(which, self.handle_exit) for which in ends}
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)


def listening_at(address: Address) -> socket.socket:
    """A socket that listens, for this machine alone. Raises PpspeechError for another address, or one that is taken."""
    if not address.is_loopback:
        raise PpspeechError(f"a studio is for whoever sits at this machine: it listens on loopback, not at {address}")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        raise PpspeechError(f"cannot listen at {address}: {error.strerror}; --port 0 takes a free one") from None
    return listening


def entrance_file(studio: Studio, folder: Path) -> Path:
    """A file that sends a browser to the studio, in a folder that nobody else may enter: command lines, where a token
    would stand without it, are seen by all users of the machine.
    """
    path = folder / "studio.html"
    path.write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>ppspeech studio</title>\n'
        f'<meta http-equiv="refresh" content="0; url={studio.entrance}">\n'
        f'<a href="{studio.entrance}">Open the studio</a></html>\n',
        "utf-8",
    )
    return path


def run_studio(places: Places, address: Address, ready: Callable[[Studio], None]) -> None:
    """Show the pages until Ctrl-C, SIGTERM or the end of the terminal; then all that they started has ended.

    `ready`: told once it listens.
    """
    with listening_at(address) as listening:
        studio = Studio(Address(address.host, listening.getsockname()[1]), secrets.token_urlsafe(TOKEN_BYTES), places)
        config = uvicorn.Config(
            studio,
            log_level="error",
            access_log=False,  # the token is in an address
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
            limit_concurrency=64,
        )
        ready(studio)
        _Server(config).run(sockets=[listening])
