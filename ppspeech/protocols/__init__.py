"""Protocols: one file each, with its parties as functions over a channel, what it computes and what it leaks."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.protocols.meeting import WORKERS, Meeting, meet, meet_as_client, meet_as_server
    from ppspeech.protocols.message_kinds import Kind, kind_of
    from ppspeech.protocols.party import (
        NOBODY,
        PROTOCOLS,
        Party,
        RegisteredProtocol,
        register_protocol,
        rehearse,
        run_in_memory,
        written,
    )

__all__ = [
    "NOBODY",
    "PROTOCOLS",
    "WORKERS",
    "Kind",
    "Meeting",
    "Party",
    "RegisteredProtocol",
    "kind_of",
    "meet",
    "meet_as_client",
    "meet_as_server",
    "register_protocol",
    "rehearse",
    "run_in_memory",
    "written",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
