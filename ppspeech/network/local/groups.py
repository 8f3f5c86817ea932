"""All parties of a group as processes of this machine, over TLS on the loopback address: experiments and benchmarks."""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ppspeech.channel import Channel
from ppspeech.network.address import Address
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.group.file import Group, Member
from ppspeech.network.group.identity import Identity
from ppspeech.network.group.join import join
from ppspeech.network.limits import Limits
from ppspeech.network.tls.certificates import make_certificate
from ppspeech.network.tls.context import ServerTls
from ppspeech.network.tls.listener import Listener

Program = Callable[[Mapping[str, Channel], Group, Identity], Any]
"""A party: its channels by name, the group and who it is itself; returns what JSON can hold."""


@dataclass(frozen=True)
class Player:
    """A party of a local run."""

    role: str
    program: Program


@dataclass(frozen=True)
class Outcome:
    """How one process ended: `error` has type and words of what it raised, or `Killed`. Bytes are those of frames,
    headers included, TLS not; seconds go from the start of all processes to the end of this one.
    """

    result: Any = None
    error: str = ""
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0


def run_group(
    protocol: str,
    players: Mapping[str, Player],
    *,
    hub: str | None = None,
    params: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    wait_seconds: float = 60.0,
) -> dict[str, Outcome]:
    """Run every player in a process of its own and wait for all of them; a party that failed does not raise here.

    The processes are forks of this one. Threads do not survive a fork: do not call this after native thread pools
    (OpenMP, torch) have been used. Everyone talks to the `hub`, or without one to everyone.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        identities, listeners, members = {}, {}, []
        for place, (name, player) in enumerate(players.items()):
            files = Path(folder, f"{name}.pem"), Path(folder, f"{name}.key")
            pin = make_certificate(*files, days=1)
            identities[name] = Identity(*files)
            address = None
            if name == hub or (hub is None and place < len(players) - 1):
                tls = ServerTls(*files)
                listeners[name] = stack.enter_context(Listener(Address("127.0.0.1", 0), tls=tls, limits=limits))
                address = listeners[name].address
            members.append(Member(name, player.role, pin, address))
        group = Group(protocol, tuple(members), hub, dict(params or {}), wait_seconds)
        started = time.perf_counter()
        children: dict[str, tuple[int, int]] = {}
        try:
            for name, player in players.items():
                reader, writer = os.pipe()
                child = os.fork()
                if child == 0:
                    _run_member(group, name, player.program, identities[name], listeners, limits, writer)
                os.close(writer)
                children[name] = (child, reader)
            return {name: _collect(*children[name], started) for name in players}
        except BaseException:
            for child, _ in children.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            raise


def _run_member(
    group: Group,
    name: str,
    program: Program,
    identity: Identity,
    listeners: Mapping[str, Listener],
    limits: Limits | None,
    writer: int,
) -> NoReturn:
    """Be the process of one party."""
    said: dict[str, Any] = {}
    channels: Mapping[str, StreamChannel] = {}
    try:
        for other, listener in listeners.items():
            if other != name:
                listener.close()
        with join(group, name, identity, limits=limits, listener=listeners.get(name)) as channels:
            said["result"] = program(channels, group, identity)
    except BaseException as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    finally:
        said["sent"] = sum(channel.bytes_sent for channel in channels.values())
        said["received"] = sum(channel.bytes_received for channel in channels.values())
        said["ended"] = time.perf_counter()
        with os.fdopen(writer, "w") as pipe:
            json.dump(said, pipe)
        os._exit(0)


def _collect(child: int, reader: int, started: float) -> Outcome:
    with os.fdopen(reader, "r") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return Outcome(error="Killed", seconds=time.perf_counter() - started)
    said = json.loads(text)
    return Outcome(said.get("result"), said.get("error", ""), said["sent"], said["received"], said["ended"] - started)
