"""The first frame in each direction: both parties agree on protocol and parameters, and name their session."""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ppspeech.errors import PeerGoneError, WrongSessionError
from ppspeech.network.channel.frames import HELLO, VERSION
from ppspeech.network.channel.session import StreamChannel

Params = Mapping[str, Any]

MAX_BYTES = 4096
NONCE_BYTES = 16
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Hello:
    """What a party says first. The name is of lower case letters, digits and `_.-`, so that it cannot run into the
    parameters when both are hashed; parameters must be equal on both sides; the nonce is 16 fresh bytes.
    """

    protocol: str
    params: Params
    nonce: bytes

    def encode(self) -> bytes:
        """As canonical JSON. Raises `ValueError` for a name or parameters that cannot be sent."""
        if not NAME.fullmatch(self.protocol):
            raise ValueError(f"a protocol is named by up to 64 of a-z, 0-9, '_', '.', '-', got {self.protocol!r}")
        said = {"nonce": self.nonce.hex(), "params": self.params, "protocol": self.protocol, "version": VERSION}
        data = canonical(said)
        if len(data) > MAX_BYTES:
            raise ValueError(f"the public parameters take {len(data)} bytes of JSON, more than {MAX_BYTES}")
        return data

    def agrees_with(self, other: "Hello") -> bool:
        """Whether both name the same protocol and parameters; 1, 1.0 and true are not the same."""
        return self.protocol == other.protocol and canonical(self.params) == canonical(other.params)

    @classmethod
    def decode(cls, data: bytes) -> "Hello":
        """Read what a peer sent. Raises `WrongSessionError` for anything that `encode` does not write, to the byte."""
        try:
            said = json.loads(data)
            if said["version"] != VERSION or not isinstance(said["params"], dict):
                raise ValueError("another version, or parameters that are no object")
            hello = cls(said["protocol"], said["params"], bytes.fromhex(said["nonce"]))
            # Encoding it again catches what JSON readers let pass: repeated, missing and extra keys, other spellings.
            if len(hello.nonce) != NONCE_BYTES or hello.encode() != data:
                raise ValueError("not in canonical form")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise WrongSessionError(f"the peer's HELLO cannot be read: {type(error).__name__}") from None
        return hello


def canonical(value: object) -> bytes:
    """JSON with sorted keys, no spaces and ASCII only: equal values, equal bytes.

    >>> canonical({"b": 1, "a": [True, "e"]})
    b'{"a":[true,"e"],"b":1}'

    Raises `ValueError` for a value JSON cannot hold, NaN and infinity too.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        # Keys such as 1 and "1" are different here and the same there.
        if json.loads(text) != value:
            raise ValueError("it does not come back as it was")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"parameters must be what JSON can hold (and lists, not tuples): {error}") from None
    return text.encode("ascii")


def session_id(client: Hello, server: Hello) -> bytes:
    """SHA-256 of both nonces, protocol and parameters, cut to 16 bytes."""
    said = client.nonce + server.nonce + client.protocol.encode("ascii") + canonical(client.params)
    return hashlib.sha256(said).digest()[:16]


def greet(channel: StreamChannel, protocol: str, params: Params) -> None:
    """Say what we want to the party that listens, and begin the session; the caller ends it on an error.

    Raises `WrongSessionError` for another protocol or other parameters; `ProtocolError` if it refuses or is silent.
    """
    ours = Hello(protocol, dict(params), secrets.token_bytes(NONCE_BYTES))
    channel.send_frame(HELLO, ours.encode())
    try:
        answered = channel.receive_frame(HELLO, None, MAX_BYTES)
    except PeerGoneError as error:
        raise PeerGoneError(f"{error}; we asked for {protocol!r} with {dict(params)!r:.200}") from None
    theirs = Hello.decode(answered)
    if not theirs.agrees_with(ours) or theirs.nonce == ours.nonce:
        raise WrongSessionError(
            f"we want {protocol!r} with {dict(params)}, the peer {theirs.protocol!r} with {theirs.params}"
        )
    channel.begin(session_id(ours, theirs))


def answer(channel: StreamChannel, accept: Callable[[str, Params], None]) -> tuple[str, Params]:
    """Answer the party that connected, and begin the session; the caller ends it on an error.

    `accept` is called with what the peer wants, and raises `WrongSessionError` if that cannot be had here.
    """
    theirs = Hello.decode(channel.receive_frame(HELLO, None, MAX_BYTES))
    accept(theirs.protocol, theirs.params)
    ours = Hello(theirs.protocol, theirs.params, secrets.token_bytes(NONCE_BYTES))
    channel.send_frame(HELLO, ours.encode())
    channel.begin(session_id(theirs, ours))
    return ours.protocol, ours.params


def accept_only(protocol: str, params: Params) -> Callable[[str, Params], None]:
    """For `answer`: accept one protocol with one set of parameters."""
    wanted = Hello(protocol, dict(params), bytes(NONCE_BYTES))
    wanted.encode()  # refuse our own mistakes here, not in front of a peer

    def accept(name: str, given: Params) -> None:
        if not wanted.agrees_with(Hello(name, given, wanted.nonce)):
            raise WrongSessionError(f"we want {protocol!r} with {dict(params)}, the peer {name!r} with {given}")

    return accept
