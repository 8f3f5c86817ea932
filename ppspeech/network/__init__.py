"""Parties that talk: channels in memory and over TLS, sessions, limits, transcripts, a server and a client.

Nothing here knows what is said: a party program is any function over a `Channel`.
"""

from ppspeech.network.address import Address
from ppspeech.network.background import RunningServer, in_background
from ppspeech.network.capacity import Capacity
from ppspeech.network.certificates import fingerprint, make_certificate
from ppspeech.network.connect import Listener, connect
from ppspeech.network.counters import Counters
from ppspeech.network.limits import Limits
from ppspeech.network.memory import MemoryChannel, memory_pair
from ppspeech.network.server import Server
from ppspeech.network.session import StreamChannel
from ppspeech.network.tls import ClientTls, ServerTls
from ppspeech.network.together import run_in_processes, run_mesh, run_together, socket_pair
from ppspeech.network.transcript import Entry, Transcript
from ppspeech.network.worker import Service

__all__ = [
    "Address",
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
    "StreamChannel",
    "Transcript",
    "connect",
    "fingerprint",
    "in_background",
    "make_certificate",
    "memory_pair",
    "run_in_processes",
    "run_mesh",
    "run_together",
    "socket_pair",
]
