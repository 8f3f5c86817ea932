"""One timer for everything two parties do: two processes, offline and online apart, checked before it is believed."""

import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench.clock import peak_megabytes
from ppspeech.figures import Figure
from ppspeech.network import ClientTls, ServerTls, Transcript, make_certificate, run_in_processes
from ppspeech.protocols import meet_as_client, meet_as_server

READY = 190
_SECONDS = struct.Struct(">d")

Tls = tuple[ClientTls, ServerTls]
Half = Callable[[Any, Channel], Callable[[], object]]
"""One party's half of a job: given the meeting and a channel it does the offline part, and returns the online part."""

Meet = Callable[[Channel], AbstractContextManager[Any]]  # how one party meets the other, once for all jobs


@dataclass(frozen=True)
class Timed:
    """Something two parties do; the client's time counts, and `right` judges its answer.

    By the formula, where there is one: `bytes` of payload of both parts, both ways, and `rounds` online.
    """

    name: str
    client: Half
    server: Half
    right: Callable[[Any], bool]
    bytes: int | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Measured:
    """Seconds of the best repeat, the median of all, and what went over the wire in one.

    `offline` needs no input; the median is of offline and online together; bytes are payload of both, both ways, and
    rounds online; `meeting` is once for a pair of parties, no part of the job; `megabytes` is the client's peak so far.
    """

    offline: float
    online: float
    median: float
    bytes: int
    rounds: int
    meeting: float
    megabytes: float

    @property
    def total(self) -> float:
        """Offline and online."""
        return self.offline + self.online

    def figures(self, name: str, total: str, note: str) -> list[Figure]:
        """Total, median, both parts, bytes and rounds; `total` names the first and ends in its unit, `ms` or `s`."""
        unit = total.rpartition("_")[2]
        scale = {"ms": 1e3, "s": 1.0}[unit]
        return [
            Figure(f"{name}.{total}", scale * self.total, unit, note=note),
            Figure(f"{name}.median_{unit}", scale * self.median, unit, note=note),
            Figure(f"{name}.offline_ms", 1e3 * self.offline, "ms", note=note),
            Figure(f"{name}.online_ms", 1e3 * self.online, "ms", note=note),
            Figure(f"{name}.bytes", self.bytes, "B", note="payload, offline and online, both ways"),
            Figure(f"{name}.rounds", self.rounds, note="round trips online"),
        ]


@contextmanager
def lattice_client(channel: Channel) -> Iterator[Any]:
    """The client's half of a meeting, in session."""
    met = meet_as_client(channel)
    with met.session():
        yield met


@contextmanager
def lattice_server(channel: Channel) -> Iterator[Any]:
    """The server's half of a meeting, in session."""
    met = meet_as_server(channel)
    with met.session():
        yield met


LATTICE: tuple[Meet, Meet] = (lattice_client, lattice_server)  # transfers, and the client's lattice key with the server

STRANGERS: tuple[Meet, Meet] = (nullcontext, nullcontext)  # for programs that bring everything along


def measure(
    work: list[Timed], repeats: int, *, meet: tuple[Meet, Meet] = LATTICE, tls: Tls | None = None, delay: float = 0.0
) -> dict[str, Measured]:
    """Run every job `repeats` times after once to warm up, each party a process, and time the client's.

    `delay` is the seconds that bytes take each way, simulated. Without `tls` it is plain TCP.

    Raises:
        PpspeechError: if an answer is wrong, or bytes or rounds are not those of the formula.
    """

    def client(channel: Channel) -> dict[str, Measured]:
        began = time.perf_counter()
        with meet[0](channel) as met:
            meeting = time.perf_counter() - began
            return {job.name: _time_client(met, channel, job, repeats, meeting) for job in work}

    def server(channel: Channel) -> None:
        with meet[1](channel) as met:
            for job in work:
                for _ in range(1 + repeats):
                    wait_for_each_other(channel)
                    online = job.server(met, channel)
                    wait_for_each_other(channel)
                    online()
                    channel.send(READY, b"")

    return run_in_processes(client, server, tls=tls, delay=delay)


def _time_client(met: Any, channel: Channel, job: Timed, repeats: int, meeting: float) -> Measured:
    times, wire = [], (0, 0)
    for repeat in range(1 + repeats):
        record = None if repeat else Transcript(channel)
        wait_for_each_other(channel)
        began = time.perf_counter()
        online = job.client(met, record or channel)
        wait_for_each_other(channel)
        prepared = time.perf_counter()
        before = 0 if record is None else record.messages
        answer = online()
        channel.receive(READY, 0)
        ended = time.perf_counter()
        if not job.right(answer):
            raise PpspeechError(f"{job.name}: the answer {answer!r:.200} is wrong; no figure can be trusted")
        if record is None:
            times.append((prepared - began, ended - prepared))
        else:
            wire = _checked(record, before, job)
    return Measured(*min(times, key=sum), statistics.median(map(sum, times)), *wire, meeting, peak_megabytes())


def _checked(record: Transcript, before: int, job: Timed) -> tuple[int, int]:
    """Bytes, and rounds after so many messages of the offline part, held against the formula."""
    sent = record.bytes_up + record.bytes_down
    del record.entries[:before]
    found = sent, record.rounds
    wanted = sent if job.bytes is None else job.bytes, record.rounds if job.rounds is None else job.rounds
    if found != wanted:
        raise PpspeechError(f"{job.name}: {found} bytes and rounds on the wire where the formula says {wanted}")
    return found


def processor_seconds(job: Timed, repeats: int, *, meet: tuple[Meet, Meet] = LATTICE, tls: Tls | None = None) -> float:
    """What the processors of both parties do for a job, offline and online, at best: others on the machine, who make
    everyone wait, hardly count in it.
    """

    def half(channel: Channel, met: Any, run: Half) -> float:
        wait_for_each_other(channel)
        began = time.process_time()
        run(met, channel)()
        return time.process_time() - began

    def client(channel: Channel) -> float:
        with meet[0](channel) as met:
            own = [
                half(channel, met, job.client) + _SECONDS.unpack(channel.receive(READY, _SECONDS.size))[0]
                for _ in tries
            ]
        return float(min(own[1:]))

    def server(channel: Channel) -> None:
        with meet[1](channel) as met:
            for _ in tries:
                channel.send(READY, _SECONDS.pack(half(channel, met, job.server)))

    tries = range(1 + repeats)
    busy: float = run_in_processes(client, server, tls=tls)
    return busy


def wait_for_each_other(channel: Channel) -> None:
    """Until both are here."""
    channel.send(READY, b"")
    channel.receive(READY, 0)


@contextmanager
def certificates() -> Iterator[Tls]:
    """Both sides' TLS for one run."""
    with tempfile.TemporaryDirectory() as folder:
        own = ServerTls(Path(folder, "certificate.pem"), Path(folder, "key.pem"))
        yield ClientTls(pin=make_certificate(own.certificate, own.key, days=1)), own
