"""Protocols: one file each, with its parties as functions over a channel, what it computes and what it leaks."""

from ppspeech.protocols.registry import RegisteredProtocol, find_protocol, protocol_names, register_protocol

__all__ = ["RegisteredProtocol", "find_protocol", "protocol_names", "register_protocol"]
