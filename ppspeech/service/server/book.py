"""What sessions did, counted across the processes that ran them: for logs, health and metrics. Public facts alone."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ppspeech.channel import Channel
from ppspeech.network import StreamChannel, neighborhood
from ppspeech.storage import SharedTable, atomic_write

logger = logging.getLogger(__name__)

FIELDS = "fields"  # the attribute of a log record that holds facts beside its message

_TABLE = (
    "protocol TEXT, outcome TEXT, count INTEGER, queries INTEGER, refused INTEGER, rounds INTEGER, seconds REAL,"
    " bytes_up INTEGER, bytes_down INTEGER, PRIMARY KEY (protocol, outcome)"
)

_COLUMNS = {
    "count": ("ppspeech_sessions_total", "Sessions that ended."),
    "queries": ("ppspeech_queries_total", "Utterances that were answered."),
    "refused": ("ppspeech_queries_refused_total", "Utterances beyond a client's budget."),
    "rounds": ("ppspeech_rounds_total", "Round trips."),
    "seconds": ("ppspeech_session_seconds_total", "Time that sessions took."),
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
    """What one session has done so far, in utterances and round trips; its program keeps it up."""

    queries: int = 0
    refused: int = 0
    rounds: int = 0


Program = Callable[[Channel, Tally], None]  # one client's session


class SessionBook:
    """Sums over all sessions since the server started, in a file that session processes share.

    A process that was killed leaves no entry: it is in the server's own counters, as `Killed`. An earlier server's sums
    are removed; `metrics` is rewritten after each session, in Prometheus' text format.
    """

    def __init__(self, path: Path, metrics: Path | None = None) -> None:
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
        """Sums over all protocols and outcomes, and seconds since the server started."""
        names = ", ".join(f"SUM({name})" for name in _COLUMNS)
        (sums,) = self._table.rows(f"SELECT {names} FROM sessions")  # noqa: S608 - names of our own
        return dict(zip(_COLUMNS, (value or 0 for value in sums), strict=True)) | {
            "up_seconds": round(time.time() - self._started, 1)
        }

    def prometheus(self) -> str:
        """All sums in Prometheus' text format."""
        names = ", ".join(_COLUMNS)
        rows = self._table.rows(f"SELECT protocol, outcome, {names} FROM sessions")  # noqa: S608
        lines = []
        for at, (metric, meaning) in enumerate(_COLUMNS.values(), start=2):
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            lines += [f'{metric}{{protocol="{row[0]}",outcome="{row[1]}"}} {row[at]}' for row in sorted(rows)]
        lines += [
            "# HELP ppspeech_start_time_seconds When the server started.",
            "# TYPE ppspeech_start_time_seconds gauge",
            f"ppspeech_start_time_seconds {self._started:.3f}",
        ]
        return "\n".join(lines) + "\n"

    def _enter(self, channel: Channel, protocol: str, outcome: str, tally: Tally, seconds: float) -> None:
        up, down = (channel.bytes_received, channel.bytes_sent) if isinstance(channel, StreamChannel) else (0, 0)
        row = (protocol, outcome, 1, tally.queries, tally.refused, tally.rounds, seconds, up, down)
        sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in _COLUMNS)
        with self._table.transaction() as database:
            database.execute(
                f"INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET {sums}",  # noqa: S608
                row,
            )
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
