"""What sessions did, counted across the processes that ran them: for logs, health and metrics. Public facts alone."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from ppspeech.channel import Channel
from ppspeech.network import StreamChannel, neighborhood
from ppspeech.service.store import PostgresStore, StoreLostError
from ppspeech.storage import SharedTable, Table, atomic_write

logger = logging.getLogger(__name__)

FIELDS = "fields"  # the attribute of a log record that holds facts beside its message

_TABLE = (
    "protocol TEXT, outcome TEXT, count INTEGER, queries INTEGER, refused INTEGER, unable INTEGER, rounds INTEGER,"
    " seconds REAL, meeting REAL, answering REAL, bytes_up INTEGER, bytes_down INTEGER, PRIMARY KEY (protocol, outcome)"
)

_COLUMNS = {
    "count": ("ppspeech_sessions_total", "Sessions that ended."),
    "queries": ("ppspeech_queries_total", "Utterances that were answered."),
    "refused": ("ppspeech_queries_refused_total", "Utterances beyond a client's budget."),
    "unable": ("ppspeech_queries_unable_total", "Utterances that could not be counted, and were not answered."),
    "rounds": ("ppspeech_rounds_total", "Round trips."),
    "seconds": ("ppspeech_session_seconds_total", "Time that sessions took."),
    "meeting": ("ppspeech_meeting_seconds_total", "Of it, until the first question could be asked."),
    "answering": ("ppspeech_answering_seconds_total", "Of it, while questions were answered."),
    "bytes_up": ("ppspeech_received_bytes_total", "Bytes of frames that clients sent."),
    "bytes_down": ("ppspeech_sent_bytes_total", "Bytes of frames that clients were sent."),
}
"""Every sum, with its name and meaning in Prometheus."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is at the other end of a session, as far as it has proved it.

    Attributes:
        client: stays the same from session to session, to count queries by: the fingerprint of the client's
            certificate where it has shown one (`--client-ca`), which it cannot change without a new certificate; else
            its address (the network of 2^64 of an IPv6 address), which many may share and some may change; `local`
            without a network.
        session: what the logs call this session: public, and of no use to anyone.
    """

    client: str = "local"
    session: str = "local"

    @staticmethod
    def of(channel: Channel) -> "Visitor":
        """Whoever is at the other end of a channel."""
        if not isinstance(channel, StreamChannel):
            return Visitor()
        peer, session = channel.peer, channel.session.hex()[:8]
        if peer.certificate is not None:
            return Visitor(f"certificate:{peer.certificate}", session)
        return Visitor("local" if peer.address is None else f"address:{neighborhood(peer.address)}", session)


@dataclass
class Tally:
    """What one session has done so far, in utterances, round trips and seconds by phase; its program keeps it up."""

    queries: int = 0
    refused: int = 0
    unable: int = 0
    rounds: int = 0
    meeting: float = 0.0
    answering: float = 0.0

    @contextmanager
    def timing(self, phase: Literal["meeting", "answering"]) -> Iterator[None]:
        """Count what the block takes as time of a phase, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)


Program = Callable[[Channel, Tally], None]  # one client's session


class SessionBook:
    """Sums over all sessions since the server started, in a file that session processes share.

    A process that was killed leaves no entry: it is in the server's own counters, as `Killed`. An earlier server's sums
    are removed; `metrics` is rewritten after each session, in Prometheus' text format. `store`: a database in which the
    same sums are kept over all servers, and since ever.
    """

    def __init__(self, path: Path, metrics: Path | None = None, store: PostgresStore | None = None) -> None:
        self._shared: Table | None = None if store is None else store.table("sessions")
        self._table = SharedTable(path, "sessions", _TABLE, "sums over sessions", fresh=True)
        self._metrics = metrics
        self._started = time.time()
        if metrics is not None:
            self._write(metrics)

    def observed(self, protocol: str, program: Program) -> Callable[[Channel, object], None]:
        """A party program for `network.Service` that is timed, counted and logged, however it ends."""

        def run(channel: Channel, _: object) -> None:
            tally, started, outcome = Tally(), time.perf_counter(), "finished"
            try:
                program(channel, tally)
            except BaseException as error:
                outcome = type(error).__name__  # the words of an error may hold what it was about
                raise
            finally:
                self._enter(channel, protocol, outcome, tally, time.perf_counter() - started)

        return run

    def totals(self) -> dict[str, float]:
        """Sums over all protocols and outcomes of this server, and seconds since it started."""
        return _totals(self._table) | {"up_seconds": round(time.time() - self._started, 1)}

    def shared_totals(self) -> dict[str, float] | None:
        """The same over all servers, and since ever; None without a database. Raises StoreLostError."""
        return None if self._shared is None else _totals(self._shared)

    @property
    def started(self) -> float:
        """When the server started, in seconds since 1970."""
        return self._started

    def sums(self) -> Iterator[tuple[str, str, list[tuple[str, str, float]]]]:
        """Every sum: its name and meaning in Prometheus, and protocols, outcomes and values."""
        names = ", ".join(_COLUMNS)
        rows = sorted(self._table.rows(f"SELECT protocol, outcome, {names} FROM sessions"))  # noqa: S608
        for at, (metric, meaning) in enumerate(_COLUMNS.values(), start=2):
            yield metric, meaning, [(row[0], row[1], row[at]) for row in rows]

    def prometheus(self) -> str:
        """All sums in Prometheus' text format."""
        lines = []
        for metric, meaning, rows in self.sums():
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            lines += [f'{metric}{{protocol="{row[0]}",outcome="{row[1]}"}} {row[2]}' for row in rows]
        lines += [
            "# HELP ppspeech_start_time_seconds When the server started.",
            "# TYPE ppspeech_start_time_seconds gauge",
            f"ppspeech_start_time_seconds {self._started:.3f}",
        ]
        return "\n".join(lines) + "\n"

    def _enter(self, channel: Channel, protocol: str, outcome: str, tally: Tally, seconds: float) -> None:
        up, down = (channel.bytes_received, channel.bytes_sent) if isinstance(channel, StreamChannel) else (0, 0)
        counted = (1, tally.queries, tally.refused, tally.unable, tally.rounds)
        row = (protocol, outcome, *counted, seconds, tally.meeting, tally.answering, up, down)
        for table in (self._table, self._shared):
            try:
                if table is not None:
                    table.alone(lambda ask: ask(_ADD, *row), f"{protocol} {outcome}")
            except StoreLostError:  # the session is over and paid for; its sums are in this server's own book
                logger.warning("sums of a session are not in the store")
        if self._metrics is not None:
            self._write(self._metrics)
        facts = {
            "session": Visitor.of(channel).session,
            "protocol": protocol,
            "outcome": outcome,
            "seconds": round(seconds, 4),
            "bytes_up": up,
            "bytes_down": down,
            "rounds": tally.rounds,
            "queries": tally.queries,
        }
        logger.info("session ended", extra={FIELDS: facts})

    def _write(self, metrics: Path) -> None:
        with atomic_write(metrics, durable=False) as temporary:
            temporary.write_text(self.prometheus(), "utf-8")


_MARKS = ", ".join("?" * (2 + len(_COLUMNS)))
_ADDED = ", ".join(f"{name} = sessions.{name} + excluded.{name}" for name in _COLUMNS)
_ADD = f"INSERT INTO sessions VALUES ({_MARKS}) ON CONFLICT (protocol, outcome) DO UPDATE SET {_ADDED}"  # noqa: S608


def _totals(table: Table) -> dict[str, float]:
    (sums,) = table.rows(f"SELECT {', '.join(f'SUM({name})' for name in _COLUMNS)} FROM sessions")  # noqa: S608
    return {
        name: value if isinstance(value, float) else int(value or 0)  # a database adds whole numbers up to decimals
        for name, value in zip(_COLUMNS, sums, strict=True)
    }


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, where it comes from, what happened, and the record's `fields`.

    No traceback is ever written: the values in it may be someone's speech.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        said: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
        }
        return json.dumps(said | getattr(record, FIELDS, {}))


@contextmanager
def log_as_json(stream: TextIO | None = None, level: int = logging.INFO) -> Iterator[None]:
    """While it lasts, everything that ppspeech logs goes to `stream` (standard error by default) as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("ppspeech")
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.handlers, _, logger.propagate = before
        logger.setLevel(before[1])
