"""A server under attack: honest sessions that finish, and how long they take, while hostile connections are held.

Needs nothing.
"""

import contextlib
import multiprocessing
import os
import secrets
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection

from ppspeech.channel import Channel
from ppspeech.crypto import Kind
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.keyword import made_models, made_utterance, timed, with_operation
from ppspeech.evidence.bench.two_parties import certificates
from ppspeech.figures import Figure
from ppspeech.network import (
    Address,
    Capacity,
    ClientTls,
    Limits,
    Server,
    Service,
    StreamChannel,
    connect,
    in_background,
)
from ppspeech.network.channel import HELLO, NO_SESSION, NONCE_BYTES, Hello, Params, pack_header
from ppspeech.protocols import meet_as_client, meet_as_server

HOSTS = [f"127.0.0.{number}" for number in range(2, 10)]
"""Where the hostile come from: eight addresses of this machine, none of them that of the honest."""
KINDS = 8
"""Of hostile connections."""
PEOPLE = 8
"""Honest clients at a time."""
PATIENT = Limits(handshake_seconds=60, message_seconds=60)  # of the honest: a busy server lets them wait


@BENCHES.register("hostile")
def run(quick: bool) -> list[Figure]:
    """200 encrypted words over TLS beside 500 connections that say nothing, one byte, garbage, half a handshake, TLS
    or HELLO and no more, what another client said, or a message that is none; and the same words alone.
    """
    sessions, crowd = (16, 60) if quick else (200, 500)
    figures = []
    for name, hostile in (("calm", 0), ("attacked", crowd)):
        seconds, failed, held = _serve(sessions, hostile)
        note = f"{sessions} sessions, {PEOPLE} at a time, {hostile} hostile connections ({held} held at the end)"
        note += "".join(f", {count} {error}" for error, count in failed.items())
        figures += [
            Figure.count(
                f"active.hostile.{name}.sessions_finished",
                len(seconds),
                sessions,
                "sessions",
                note=f"{note}; {machine()}",
            ),
            Figure(f"active.hostile.{name}.median_s", statistics.median(seconds), "s", note="meeting and one word"),
            Figure(f"active.hostile.{name}.slowest_s", max(seconds), "s", note="meeting and one word"),
        ]
    return [replace(figures[3], metric="active.hostile.sessions_finished"), *figures]


def _serve(sessions: int, hostile: int) -> tuple[list[float], Counter[str], int]:
    """The seconds of honest sessions that finished with the right word, why others did not, hostile ones still held."""
    job = timed(with_operation(made_models(), "viterbi"), [made_utterance()])

    def program(channel: Channel, _: object) -> None:
        met = meet_as_server(channel)
        with met.session():
            job.server(met, channel)()

    def one(tls: ClientTls, address: Address) -> float | str:
        began = time.perf_counter()
        try:
            with connect(address, "words", {}, tls=tls) as channel:
                met = meet_as_client(channel)
                with met.session():
                    answer = job.client(met, channel)()
        except ProtocolError as error:
            return type(error).__name__
        if not job.right(answer):
            raise PpspeechError(f"the answer {answer!r} under attack is wrong; no figure can be trusted")
        return time.perf_counter() - began

    with certificates() as (client, own):
        capacity = Capacity(sessions=64, waiting=256)
        server = Server(Address("127.0.0.1", 0), {"words": Service(program)}, tls=own, capacity=capacity)
        with in_background(server) as running, attackers(running.address, client, hostile, "words", {}) as held:
            with ThreadPoolExecutor(PEOPLE) as people:
                took = list(people.map(lambda _: one(client, running.address), range(sessions)))
            still = held()
    seconds = [each for each in took if isinstance(each, float)]
    failed = Counter(each for each in took if isinstance(each, str))
    if not seconds:
        raise PpspeechError(f"no honest session finished: the server was held shut ({dict(failed)})")
    return seconds, failed, still


@contextlib.contextmanager
def attackers(
    address: Address, tls: ClientTls, count: int, protocol: str, params: Params, pause: float = 1.0
) -> Iterator[Callable[[], int]]:
    """Keep `count` hostile connections open while the block lasts: one that is closed is opened again, and says the
    next bad thing. `protocol` and `params`: what an honest client asks for. Gives a function that counts those held.

    They are threads of a process of their own, a fork of this one: begin before other threads do.
    """
    if not count:
        yield lambda: 0
        return
    here, there = multiprocessing.Pipe()
    forking = multiprocessing.get_context("fork")
    process = forking.Process(target=_attack, args=(there, address, tls, count, (protocol, params), pause), daemon=True)
    process.start()
    there.close()
    time.sleep(1.0)  # they are first

    def held() -> int:
        here.send("held")
        return int(here.recv())

    try:
        yield held
    finally:
        here.send("stop")
        process.join(60)
        process.kill()
        here.close()


def _attack(
    told: Connection,
    address: Address,
    tls: ClientTls,
    count: int,
    asked: tuple[str, Params],
    pause: float,
) -> None:
    """Be the process of the attackers until it is told to stop."""
    stop, held = threading.Event(), set[int]()
    said = _recorded(*asked)

    def keep(place: int) -> None:
        connection: socket.socket | StreamChannel | None = None
        number = place
        while not stop.is_set():
            if connection is None:
                number += 1
                with contextlib.suppress(OSError, ProtocolError):
                    connection = _harass(address, tls, HOSTS[number % len(HOSTS)], number, said, asked)
                    held.add(place)
            elif _is_over(connection):
                connection.close()
                connection = None
                held.discard(place)
            stop.wait(pause)

    for place in range(count):
        threading.Thread(target=keep, args=(place,), daemon=True).start()
    while told.recv() == "held":
        told.send(len(held))
    stop.set()


def _recorded(protocol: str, params: Params) -> tuple[bytes, bytes]:
    """What another client said: HELLO, which anyone may say, and a message of a session that is over."""
    hello = Hello(protocol, dict(params), secrets.token_bytes(NONCE_BYTES)).encode()
    message = pack_header(Kind.BASE_POINT, secrets.token_bytes(len(NO_SESSION)), 1, 32) + secrets.token_bytes(32)
    return pack_header(HELLO, NO_SESSION, 0, len(hello)) + hello, message


def _harass(
    address: Address, tls: ClientTls, host: str, number: int, said: tuple[bytes, bytes], asked: tuple[str, Params]
) -> socket.socket | StreamChannel:
    """One hostile connection, of eight kinds in turn."""
    kind = number % KINDS
    if kind == 6:  # HELLO, and nothing more
        return connect(address, *asked, tls=tls, source=host, limits=PATIENT)
    if kind == 7:  # a session that begins, and a point that is none
        channel = connect(address, *asked, tls=tls, source=host, limits=PATIENT)
        channel.send(Kind.BASE_POINT, bytes(32))
        return channel
    connection = socket.create_connection((address.host, address.port), timeout=5, source_address=(host, 0))
    if kind == 1:
        connection.sendall(b"\x16")
    elif kind == 2:
        connection.sendall(secrets.token_bytes(500))
    elif kind == 3:  # the first record of a handshake, cut short
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(40))
    elif kind == 4:  # TLS, and nothing more
        return tls.context().wrap_socket(connection)
    elif kind == 5:  # what another client said, as one who recorded it would say it again
        wrapped = tls.context().wrap_socket(connection)
        wrapped.sendall(said[0])
        wrapped.sendall(said[1])
        return wrapped
    return connection


def _is_over(connection: socket.socket | StreamChannel) -> bool:
    """Whether the server has closed it."""
    try:
        if isinstance(connection, StreamChannel):
            connection.receive(1, at_most=1)  # ends the session when nothing comes: the next one takes its place
        else:
            connection.settimeout(0.01)
            return connection.recv(1) == b""
    except TimeoutError:
        return False
    except (OSError, ProtocolError):
        return True
    return False
