"""Protocols: one file each, with its parties as functions over a channel, what it computes and what it leaks."""

from ppspeech.protocols.meeting import WORKERS, Meeting, MetClient, MetServer, meet, meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import PROTOCOLS, Party, RegisteredProtocol, register_protocol

__all__ = [
    "PROTOCOLS",
    "WORKERS",
    "Kind",
    "Meeting",
    "MetClient",
    "MetServer",
    "Party",
    "RegisteredProtocol",
    "meet",
    "meet_as_client",
    "meet_as_server",
    "register_protocol",
]
