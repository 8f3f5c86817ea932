"""Run the parties of a protocol together: as threads in memory, or as two processes over a socket."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar, cast

from ppspeech.channel import Channel
from ppspeech.errors import PeerGoneError, ProtocolError
from ppspeech.network.address import Address
from ppspeech.network.channel.hello import accept_only, answer, greet
from ppspeech.network.channel.memory import MemoryChannel, memory_pair
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.limits import Limits
from ppspeech.network.local.slow_link import slow_link
from ppspeech.network.tls.connect import connect
from ppspeech.network.tls.context import ClientTls, ServerTls
from ppspeech.network.tls.listener import Listener

First = TypeVar("First")
Second = TypeVar("Second")
Pair = tuple[MemoryChannel, MemoryChannel] | tuple[StreamChannel, StreamChannel]

PROTOCOL = "together"  # what the HELLOs say where both parties come from one call and cannot disagree


def run_together(
    first: Callable[[Channel], First], second: Callable[[Channel], Second], channels: Pair | None = None
) -> tuple[First, Second]:
    """Run two parties as threads of this process.

    `first`: a party program; close over its input. `channels`: both ends, closed afterwards; in memory by default,
    `socket_pair()` for the real socket code. Returns what the two returned. Raises the first error of a party that is
    not merely the other's end (`PeerGoneError`).

    >>> run_together(lambda c: c.send(1, b"42"), lambda c: int(c.receive(1, size=2)))
    (None, 42)
    """
    here, there = channels or memory_pair()
    results = _run_threads([(partial(first, here), [here]), (partial(second, there), [there])])
    return cast(First, results[0]), cast(Second, results[1])


def run_in_threads(
    parties: Sequence[Callable[[Mapping[int, Channel]], First]], limits: Limits | None = None
) -> list[First]:
    """Run parties as threads, each with a mapping from another's number to the channel to it; as `run_together`."""
    ends: list[dict[int, MemoryChannel]] = [{} for _ in parties]
    for one in range(len(parties)):
        for other in range(one):
            ends[one][other], ends[other][one] = memory_pair(limits)
    jobs = [(partial(party, mine), list(mine.values())) for party, mine in zip(parties, ends, strict=True)]
    return cast(list[First], _run_threads(jobs))


def socket_pair(limits: Limits | None = None) -> tuple[StreamChannel, StreamChannel]:
    """Two channels joined by a socket inside this machine, their session begun."""
    limits = limits or Limits()
    here, there = (StreamChannel(ByteStream(end, limits.message_bytes), limits) for end in socket.socketpair())
    greeter = threading.Thread(target=greet, args=(here, PROTOCOL, {}))
    greeter.start()
    answer(there, accept_only(PROTOCOL, {}))
    greeter.join()
    return here, there


def run_in_processes(
    first: Callable[[Channel], First],
    second: Callable[[Channel], object],
    *,
    tls: tuple[ClientTls, ServerTls] | None = None,
    limits: Limits | None = None,
    delay: float = 0.0,
) -> First:
    """Run two parties as two processes that talk over TCP on the loopback address, so that both have a core.

    `first` connects from this process; `second` listens in a fork of it, and what it returns is lost. Threads do not
    survive a fork: do not call this after native thread pools (OpenMP, torch) have been used. `delay`: seconds that
    bytes take each way, half a round trip. Raises what `first` raised, or `ProtocolError` with the name of the error of
    `second`.
    """
    local = Address("127.0.0.1", 0)
    client, server = tls or (None, None)
    reader, writer = os.pipe()
    with Listener(local, tls=server, insecure=server is None, limits=limits) as listener:
        child = os.fork()
        if child == 0:
            _run_child(listener, second, writer)
        os.close(writer)
        address = listener.address
    failure: Exception | None = None
    try:
        with (
            slow_link(address, delay) if delay else nullcontext(address) as way,
            connect(way, PROTOCOL, {}, tls=client, insecure=client is None, limits=limits) as channel,
        ):
            result = first(channel)
    except PeerGoneError as error:
        failure = error  # perhaps only the end of the other, which knows better
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read(200).decode(errors="replace")
        os.waitpid(child, 0)
    if said and not (failure and said.startswith(PeerGoneError.__name__)):
        raise ProtocolError(f"the party in the other process failed: {said}") from failure
    if failure:
        raise failure
    return result


def _run_child(listener: Listener, party: Callable[[Channel], object], writer: int) -> None:
    """Be the other process; never return."""
    try:
        with listener.wait(PROTOCOL, {}, seconds=30) as channel:
            party(channel)
    except BaseException as error:
        os.write(writer, type(error).__name__.encode())
    finally:
        os._exit(0)


def _run_threads(jobs: Sequence[tuple[Callable[[], object], Sequence[MemoryChannel | StreamChannel]]]) -> list[object]:
    """Run each job in a thread, the last in this one; its channels are closed when it ends, whichever way."""
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        job, channels = jobs[number]
        try:
            results[number] = job()
        except BaseException as error:
            errors.append(error)
        finally:
            for channel in channels:
                channel.close()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs) - 1)]
    for thread in threads:
        thread.start()
    if jobs:
        run(len(jobs) - 1)
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerGoneError)), errors[0])
    return results
