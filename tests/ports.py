"""Ports of loopback for servers that start later."""

import secrets
import socket

FIRST, LAST = 20_000, 32_000
"""Below those that the system gives to the near ends of connections, of which there are many while tests run."""


def free_port() -> int:
    """One that nobody has."""
    while True:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
