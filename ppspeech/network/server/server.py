"""A server that runs any party program and knows none."""

import contextlib
import gc
import json
import logging
import os
import select
import selectors
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from ppspeech.network.address import Address, neighborhood
from ppspeech.network.limits import Limits
from ppspeech.network.server.board import Board
from ppspeech.network.server.load import Capacity, Counters, Tries
from ppspeech.network.server.worker import REPORT_BYTES, Service, be_worker
from ppspeech.network.tls.context import ServerTls
from ppspeech.network.tls.listener import listen

if TYPE_CHECKING:
    from ppspeech.network.web.calls import Call, Switchboard
    from ppspeech.network.web.door import WebDoor
    from ppspeech.network.web.transport_door import TransportDoor

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
REFRESH_SECONDS = 1.0  # at least, between two times that services take in what is new
REST = 4  # times as long as that took it is left alone
CALLS = 64  # that are taken in one step
HUNG_UP = getattr(select, "POLLRDHUP", 0)  # where a system has it; others tell of connections that are lost
KILL_SECONDS = 2.0  # how much later than its own deadline a process is killed
STALLED_SECONDS = 2.0  # after which a client that has not begun may have to give its place to one who waits


@dataclass
class _Child:
    """A process that runs one session. `greeted`: HELLO is done; `opened`: the client has said something since."""

    pid: int
    pipe: int
    who: str
    since: float
    kill_at: float
    greeted: bool = False
    opened: bool = False
    said: bytearray = field(default_factory=bytearray)


@dataclass
class _Waiting:
    """A connection without a process yet: from which neighborhood, when it is given up, and whether a page's: over
    TCP, by a door of theirs, or over UDP, with what it has said.
    """

    connection: socket.socket
    who: str
    until: float
    web: "WebDoor | None" = None
    call: "Call | None" = None


class Server:
    """Serves party programs, each session in a process of its own.

    The server's process accepts connections and does nothing else: it reads no byte of a client, but for the heads of
    datagrams (`Switchboard`). A connection gets
    a process when its first byte is there, so a silent client costs one descriptor, and only for
    `limits.handshake_seconds`. The process is a fork of the server's, made for one session and gone after it: what
    the services hold (weights, keys) is loaded once and shared until written to, a crash or a memory bound that is
    hit ends one session, and whatever a session took is given back by the operating system. A fork costs
    milliseconds; sessions of speech protocols take longer.

    Places are shared by neighborhoods, an IPv4 address or an IPv6 network of 64 bits: whoever has fewest goes first, so
    that a crowd from one place waits for itself and not the others for it; and who begins again and again without
    saying anything that makes sense is given a process now and then (`Tries`), not one each time.

    Two duties come with the fork. Load what the services need before `run`, but do not start threads (OpenMP, torch)
    there: they do not survive it. And hold no generator of random numbers there: every session would draw the same.

    What grows while the server runs is taken in between sessions (`Service.refresh`), once for all that follow.

    The socket is bound when the server is made; clients can connect from then on, and are served from `run` on.

    `address`: where to listen; port 0 takes a free one, and `address` says which. `insecure`: plain TCP, on a loopback
    address, in place of `tls`. `web`: a second door, for pages, with the same services, limits, certificate and places;
    `web_address` says where. `transport`: another, over UDP, for pages that pin a certificate of its own;
    `transport_address` says where. `board`: where others see how it is. Raises `ValueError` without services, for plain
    TCP where it is not allowed, and for a `transport` where only clients with a certificate are let in, as pages have
    none there; `OSError` if an address cannot be had.
    """

    def __init__(
        self,
        address: Address,
        services: Mapping[str, Service],
        *,
        tls: ServerTls | None = None,
        insecure: bool = False,
        limits: Limits | None = None,
        capacity: Capacity | None = None,
        web: "WebDoor | None" = None,
        transport: "TransportDoor | None" = None,
        board: Board | None = None,
    ) -> None:
        for each in (address, *(() if web is None else (web.address,))):
            each.check_security(tls is not None, insecure)
        if not services:
            raise ValueError("a server needs at least one service")
        if transport is not None and tls is not None and tls.client_ca is not None:
            raise ValueError("pages show no certificate over WebTransport: it cannot be had where clients need one")
        self.counters = Counters()
        self._board = board or Board()
        self._services = dict(services)
        self._context = tls.context() if tls is not None else None
        self._limits = limits or Limits()
        self._capacity = capacity or Capacity()
        self._tries = Tries(self._capacity.stalling_for_one)
        self._children: dict[int, _Child] = {}  # by their pipe
        self._silent: dict[int, _Waiting] = {}  # by their descriptor, oldest first
        self._ready: list[_Waiting] = []  # in the order in which they spoke
        self._refresh_at = 0.0
        self._stopping = threading.Event()
        self._listening: dict[socket.socket, WebDoor | None] = {listen(address): None}
        self.address = _bound(address, *self._listening)
        self.web_address: Address | None = None
        self.transport_address: Address | None = None
        self.transport = transport
        self._switchboard: Switchboard | None = None
        try:
            if web is not None:
                self._listening[listen(web.address)] = web
                self.web_address = _bound(web.address, [*self._listening][1])
            if transport is not None:
                self._switchboard = transport.switchboard()
                self.transport_address = _bound(transport.address, self._switchboard.socket)
        except OSError:
            self.close()
            raise

    def run(self, until: Callable[[], bool] = lambda: False) -> Counters:
        """Serve until `stop` is called, SIGTERM or Ctrl-C comes, or `until`, which is asked a few times a second, says
        so; then end in order. Returns the counts.
        """
        previous = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                previous[number] = signal.signal(number, lambda *_: self.stop())
        pages = [str(each) for each in (self.web_address, self.transport_address) if each is not None]
        where = " and, for pages, ".join([str(self.address), *pages])
        logger.info("serving %s at %s", ", ".join(sorted(self._services)), where)
        self._selector = selectors.DefaultSelector()
        gc.collect()
        gc.freeze()  # a collection in a child would write to, and so copy, every object it shares with us
        try:
            for listening in self._sockets():
                self._selector.register(listening, selectors.EVENT_READ)
            self._board.beat()
            self._board.put(ready=1)
            while not self._stopping.is_set() and not until():
                self._step()
            self._finish()
        finally:
            self._board.put(ready=0, draining=1)
            for child in list(self._children.values()):
                self._end(child)
                self._count(child)
            self._selector.close()
            gc.unfreeze()
            for number, handler in previous.items():
                signal.signal(number, handler)
        logger.info("stopped: %s", self.counters)
        return self.counters

    def stop(self) -> None:
        """Ask `run` to end; safe in a signal handler and from another thread."""
        self._stopping.set()

    def close(self) -> None:
        """Stop listening; for a server that is not run."""
        for listening in self._sockets():
            listening.close()

    def _sockets(self) -> list[socket.socket]:
        """All that clients come in by."""
        return [*self._listening, *([] if self._switchboard is None else [self._switchboard.socket])]

    def _step(self) -> None:
        """Handle what has happened, then what is due."""
        self._board.beat()
        self._board.put(running=len(self._children), waiting=len(self._silent) + len(self._ready))
        for key, _ in self._selector.select(TICK_SECONDS):
            if isinstance(key.fileobj, socket.socket) and key.fileobj in self._listening:
                self._accept(key.fileobj)
            elif self._switchboard is not None and key.fileobj is self._switchboard.socket:
                self._answer_calls(self._switchboard)
            elif key.fd in self._children:
                self._listen_to(self._children[key.fd])
            elif key.fd in self._silent:
                heard = self._forget_silent(key.fd)
                heard.until = time.monotonic() + self._capacity.waiting_seconds
                self._ready.append(heard)
        now = time.monotonic()
        for number in [number for number, silent in self._silent.items() if silent.until < now]:
            self._refuse(self._forget_silent(number), "silent")
        while self._ready and self._ready[0].until < now:
            self._refuse(self._ready.pop(0), "full")
        if self._ready:
            self._forget_gone()
        for child in self._children.values():
            if child.kill_at < now:
                _kill(child)
                child.kill_at = float("inf")
        while (following := self._next()) is not None:
            self._ready.remove(following)
            self._fork(following)
        if self._ready:
            self._hurry(now)

    def _accept(self, listening: socket.socket) -> None:
        """Take all who have called: one a step would leave those who come last waiting for all the others' steps."""
        for _ in range(CALLS):
            try:
                connection, source = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # the client left again, or we are out of descriptors
                logger.warning("cannot accept a connection: %s", error)
                time.sleep(TICK_SECONDS)
                return
            until = time.monotonic() + self._limits.handshake_seconds
            who, web = neighborhood(source[0]), self._listening[listening]
            self._silent[connection.fileno()] = _Waiting(connection, who, until, web)
            self._selector.register(connection, selectors.EVENT_READ)
            if len(self._silent) + len(self._ready) > self._capacity.waiting:
                self._make_room()

    def _answer_calls(self, switchboard: "Switchboard") -> None:
        """Let those wait for a process who have called over UDP: they have spoken already."""
        for call in switchboard.calls():
            until = time.monotonic() + self._capacity.waiting_seconds
            self._ready.append(_Waiting(call.connection, neighborhood(call.source[0]), until, call=call))
            if len(self._silent) + len(self._ready) > self._capacity.waiting:
                self._make_room()

    def _forget_gone(self) -> None:
        """Give up those who wait and have left meanwhile: a process for them would be for nobody."""
        poll, waiting = select.poll(), {each.connection.fileno(): each for each in self._ready}
        for number in waiting:
            poll.register(number, HUNG_UP)
        for number, _ in poll.poll(0):
            self._ready.remove(waiting[number])
            self._refuse(waiting[number], "gone")

    def _make_room(self) -> None:
        """Give up a connection of the neighborhood with most of them: its oldest silent one, else its last to speak."""
        waiting = Counter(each.who for each in (*self._silent.values(), *self._ready))
        most = max(waiting.values())
        crowds = {who for who, count in waiting.items() if count == most}
        for number, silent in self._silent.items():
            if silent.who in crowds:
                return self._refuse(self._forget_silent(number), "full")
        last = next(each for each in reversed(self._ready) if each.who in crowds)
        self._ready.remove(last)
        return self._refuse(last, "full")

    def _forget_silent(self, number: int) -> _Waiting:
        silent = self._silent.pop(number)
        self._selector.unregister(silent.connection)
        return silent

    def _refuse(self, waiting: _Waiting, reason: str) -> None:
        self.counters.refused += 1
        self._board.add(reason)
        waiting.connection.close()

    def _next(self) -> _Waiting | None:
        """Who gets a process now: of those who wait and have places left, the first of whoever stalls least."""
        now, stalling, capacity = time.monotonic(), self._stalling(), self._capacity
        if not self._ready or len(self._children) >= capacity.sessions:
            return None
        free = capacity.stalling - stalling.total()
        can = [
            each for each in self._with_places(now, stalling) if free > (capacity.kept_free * self._stalls(each, now))
        ]
        held = Counter(child.who for child in self._children.values())
        order = lambda each: (self._stalls(each, now), stalling[each.who], held[each.who])  # noqa: E731
        return min(can, key=order, default=None)

    def _hurry(self, now: float) -> None:
        """End the session that has stalled longest, of the neighborhood that stalls most, for one who stalls less."""
        stalling = self._stalling()

        def order(each: _Waiting | _Child) -> tuple[bool, int]:
            return self._stalls(each, now), stalling[each.who]

        first = min((order(each) for each in self._with_places(now, stalling)), default=None)
        late = [child for child in self._children.values() if not child.opened and now - child.since > STALLED_SECONDS]
        late = [child for child in late if first is not None and order(child) > first]
        if late and (len(self._children) >= self._capacity.sessions or stalling.total() >= self._capacity.stalling):
            _kill(max(late, key=lambda child: (*order(child), -child.since)))

    def _with_places(self, now: float, stalling: Counter[str]) -> list[_Waiting]:
        """Those who wait whose neighborhoods have places and tries left, in the order in which they spoke."""
        capacity, held = self._capacity, Counter(child.who for child in self._children.values())
        can = [each for each in self._ready if held[each.who] < capacity.for_one]
        can = [each for each in can if stalling[each.who] < capacity.stalling_for_one]
        return [each for each in can if self._tries.left(each.who, now) >= 1]

    def _stalls(self, each: "_Waiting | _Child", now: float) -> bool:
        """Whether whoever it is has stalled often of late."""
        return not self._tries.are_many(each.who, now)

    def _stalling(self) -> Counter[str]:
        """Sessions that have not begun, by neighborhood."""
        return Counter(child.who for child in self._children.values() if not child.opened)

    def _refresh(self) -> None:
        """Have services take in what is new before somebody inherits it: seldom, so that connections do not wait."""
        began = time.monotonic()
        if began < self._refresh_at:
            return
        fresh = {name: service.refresh for name, service in self._services.items() if service.refresh is not None}
        if self.transport is not None:
            fresh["the certificate of pages"] = self.transport.certificates.renew
        for name, refresh in fresh.items():
            try:
                refresh()
            except Exception as error:  # sessions meet it too, and end by themselves
                logger.warning("what is new of %s is not taken in: %s", name, type(error).__name__)
        now = time.monotonic()
        self._refresh_at = now + max(REFRESH_SECONDS, REST * (now - began))

    def _fork(self, waiting: _Waiting) -> None:
        self._refresh()
        connection = waiting.connection
        reader, writer = os.pipe()
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
        except OSError as error:
            logger.warning("no process for a session: %s", error)
            os.close(reader)
            os.close(writer)
            self._refuse(waiting, "no_process")
            return
        if pid == 0:
            self._be_child(waiting, reader, writer, parent)
        os.setpgid(pid, pid)  # as the child does, whoever comes first: it is ended with all its own children
        os.close(writer)
        connection.close()
        os.set_blocking(reader, False)
        self.counters.started += 1
        self._board.add("started")
        now = time.monotonic()
        self._tries.take(waiting.who, now)
        kill_at = now + self._limits.handshake_seconds + KILL_SECONDS
        self._children[reader] = _Child(pid, reader, waiting.who, now, kill_at)
        self._selector.register(reader, selectors.EVENT_READ)

    def _be_child(self, waiting: _Waiting, reader: int, writer: int, parent: int) -> NoReturn:
        """Be the process of one session."""
        try:
            os.setpgid(0, 0)
            # A descriptor of another client kept here would keep its connection open after its own session.
            self._selector.close()
            self.close()
            for other in (*self._silent.values(), *self._ready):
                other.connection.close()
            for pipe in (reader, *self._children):
                os.close(pipe)
            bounds, call = (self._limits, self._capacity), None
            if self.transport is not None and waiting.call is not None:
                call = partial(self.transport.admit, waiting.call)
            be_worker(waiting.connection, self._services, self._context, *bounds, writer, waiting.web, parent, call)
        finally:
            os._exit(0)

    def _listen_to(self, child: _Child) -> None:
        """Take what a child says. It may be in a client's hands: it is believed within bounds, about itself alone."""
        said = os.read(child.pipe, REPORT_BYTES)
        child.said += said
        if said and len(child.said) <= REPORT_BYTES and b'"failure"' not in child.said:
            if not child.greeted and b'"protocol"' in child.said:
                child.greeted = True
                child.kill_at = time.monotonic() + self._limits.session_seconds + KILL_SECONDS
            if not child.opened and b'"opened"' in child.said:
                child.opened = True
                self._tries.give_back(child.who, time.monotonic())
            return
        self._end(child)
        self._count(child)

    def _end(self, child: _Child) -> None:
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        del self._children[child.pipe]
        _kill(child)
        os.waitpid(child.pid, 0)

    def _count(self, child: _Child) -> None:
        try:
            last = json.loads(child.said.splitlines()[-1])
            failure, sent, received = last["failure"], int(last["sent"]), int(last["received"])
            if failure is not None and not str(failure).isidentifier():
                raise ValueError("not the name of an error")
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            self.counters.failed["Killed"] += 1
            self._board.add("killed")
            return
        self.counters.bytes_sent += sent
        self.counters.bytes_received += received
        if failure is None:
            self.counters.finished += 1
            if not child.opened:  # it had nothing to say, and has heard what it came for
                self._tries.give_back(child.who, time.monotonic())
        else:
            self.counters.failed[str(failure)] += 1

    def _finish(self) -> None:
        """Say that we are not ready, refuse who waits, let sessions finish within the grace time, then ask them to end,
        then end them: after `grace_seconds` and `KILL_SECONDS` none runs.
        """
        self._board.put(ready=0, draining=1)
        for listening in self._sockets():
            self._selector.unregister(listening)
        self.close()
        for number in list(self._silent):
            self._refuse(self._forget_silent(number), "draining")
        while self._ready:
            self._refuse(self._ready.pop(), "draining")
        self._step_for(self._capacity.grace_seconds)
        for child in self._children.values():
            os.kill(child.pid, signal.SIGTERM)
        self._step_for(KILL_SECONDS)

    def _step_for(self, seconds: float) -> None:
        """Go on until no session runs, for at most `seconds`."""
        until = time.monotonic() + seconds
        while self._children and time.monotonic() < until:
            self._step()


def _bound(address: Address, listening: socket.socket) -> Address:
    """Where a socket listens that was asked to at an address; it does not wait for callers."""
    listening.setblocking(False)
    return Address(address.host, listening.getsockname()[1])


def _kill(child: _Child) -> None:
    """End a child and all it has started; some systems refuse to where it has ended by itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


@dataclass
class RunningServer:
    """A server in a process of its own. `counters`: what it did, once it has stopped."""

    address: Address
    pid: int
    counters: Counters | None = None
    web_address: Address | None = None
    transport_address: Address | None = None


@contextlib.contextmanager
def in_background(server: Server) -> Iterator[RunningServer]:
    """Run a server in a fork of this process (see `Server` for what that asks) while the `with` block lasts."""
    reader, writer = os.pipe()
    # A signal to stop that comes before the child can handle it waits until it can.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: server.stop())
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.write(writer, json.dumps(server.run().as_dict()).encode())
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(writer)
    server.close()
    running = RunningServer(server.address, pid, None, server.web_address, server.transport_address)
    try:
        yield running
    finally:
        os.kill(pid, signal.SIGTERM)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        if said:
            running.counters = Counters.from_dict(json.loads(said))
