"""Parties that talk: channels in memory and over TLS, sessions, limits, transcripts, a server and a client.

Nothing here knows what is said: a party program is any function over a `Channel`.
"""

import logging
from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.network.address import Address, neighborhood
    from ppspeech.network.channel.memory import MemoryChannel, memory_pair
    from ppspeech.network.channel.session import StreamChannel
    from ppspeech.network.channel.transcript import Entry, Transcript
    from ppspeech.network.limits import Limits
    from ppspeech.network.local.pairs import run_in_processes, run_in_threads, run_together, socket_pair
    from ppspeech.network.server.board import REASONS, Board
    from ppspeech.network.server.load import Capacity, Counters
    from ppspeech.network.server.server import RunningServer, Server, in_background
    from ppspeech.network.server.worker import Service, end_with
    from ppspeech.network.tls.certificates import fingerprint, make_certificate
    from ppspeech.network.tls.connect import connect
    from ppspeech.network.tls.context import ClientTls, ServerTls, own_tls
    from ppspeech.network.tls.listener import Listener
    from ppspeech.network.tls.short_lived import ShortLivedCertificates
    from ppspeech.network.web.door import WebDoor, WebFile
    from ppspeech.network.web.transport_door import TransportDoor

# What ends a session is raised, and said by whoever catches it; the log has it a second time, for those who keep one.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "REASONS",
    "Address",
    "Board",
    "Capacity",
    "ClientTls",
    "Counters",
    "Entry",
    "Limits",
    "Listener",
    "MemoryChannel",
    "RunningServer",
    "Server",
    "ServerTls",
    "Service",
    "ShortLivedCertificates",
    "StreamChannel",
    "Transcript",
    "TransportDoor",
    "WebDoor",
    "WebFile",
    "connect",
    "end_with",
    "fingerprint",
    "in_background",
    "make_certificate",
    "memory_pair",
    "neighborhood",
    "own_tls",
    "run_in_processes",
    "run_in_threads",
    "run_together",
    "socket_pair",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
