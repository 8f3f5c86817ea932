"""One budget, spent through two servers that share a database, one of which is killed in the middle.

    servers    two `ppspeech serve` of a short text, each session a process of its own, over TLS
    database   a real PostgreSQL of this machine, which writes to its disk before it says that it has
    clients    sessions that are open at the same time; each asks twice, a few at a time

A session that the killed server leaves is begun again at the other, and asks again: what it had asked before counts as
spent where it was counted. All together are then answered exactly as often as the budget says, less the questions that
were interrupted.

Needs a PostgreSQL on this machine (Debian's package `postgresql`).
"""

import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.local_postgres import USER, LocalPostgres, local_postgres
from ppspeech.figures import Figure
from ppspeech.network import Limits, make_certificate
from ppspeech.service import BudgetSpentError, Client, connect

AT_A_TIME = 8  # clients that ask
ASKS = 2  # of each
PATIENT = Limits(handshake_seconds=60, message_seconds=120)
TEXT = "seven nine\nfour two\n"


@BENCHES.register("scale-store")
def run(quick: bool) -> list[Figure]:
    """200 sessions by two servers and one PostgreSQL, a server killed in between: what was counted, what answered."""
    sessions = 20 if quick else 200
    with local_postgres() as database:
        spent = spend_through_two(database, sessions, budget=3 * sessions // 2)
    note = (
        f"{sessions} sessions at a time, {ASKS} questions each, {spent.budget} of them paid for; {spent.answered} "
        f"answered, {spent.refused} refused, {spent.interrupted} interrupted by the killed server, of which "
        f"{spent.counted - spent.answered} were counted; {machine()}"
    )
    return [
        Figure("scale.store.sessions", sessions, "sessions", note=note),
        Figure("scale.store.lost", spent.lost, "questions", note="of the budget: neither answered nor interrupted"),
        Figure("scale.store.unpaid", spent.unpaid, "questions", note="answered and not counted"),
        Figure("scale.store.answers_per_s", spent.answered / spent.seconds, "1/s", note="two cores do both sides"),
    ]


@dataclass
class Spent:
    """What came of a budget. `interrupted`: questions that were begun at the killed server, and had no answer."""

    budget: int
    seconds: float = 0.0
    counted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def answered(self) -> int:
        """Questions."""
        return self.outcomes["answered"]

    @property
    def refused(self) -> int:
        """Questions beyond the budget."""
        return self.outcomes["refused"]

    @property
    def interrupted(self) -> int:
        """Questions whose server was killed."""
        return self.outcomes["interrupted"]

    @property
    def lost(self) -> int:
        """Queries of the budget that nobody had: everybody was refused before they were spent, or they were counted
        and neither answered nor interrupted.
        """
        return max(0, self.budget - self.counted) + max(0, self.counted - self.answered - self.interrupted)

    @property
    def unpaid(self) -> int:
        """Answers that are not counted, or beyond the budget."""
        return max(0, self.answered - self.counted) + max(0, self.counted - self.budget)


@dataclass
class FleetServer:
    """A `ppspeech serve` in a process of its own."""

    process: "subprocess.Popen[str]"
    address: str
    pin: str
    said: list[str]

    def kill(self) -> None:
        """As a machine that loses its power."""
        self.process.kill()
        self.process.wait()


@contextmanager
def fleet_server(folder: Path, *arguments: str | Path) -> Iterator[FleetServer]:
    """Serve while the block lasts, with the certificate in `folder`; at a free port of the loopback address."""
    trust = ("--certificate", folder / "certificate.pem", "--key", folder / "key.pem", "--listen", "127.0.0.1:0")
    words = [sys.executable, "-m", "ppspeech", "serve", *map(str, (*arguments, *trust))]
    environment = os.environ | {"COLUMNS": "300", "OMP_NUM_THREADS": "1"}
    with (folder / f"log-{secrets.token_hex(4)}").open("w+") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)  # noqa: S603
        try:
            assert process.stdout is not None
            said = []
            while line := process.stdout.readline():
                said.append(line.strip())
                if line.startswith(("a client may ask", "budgets are", "metrics at")) and _is_last(line, arguments):
                    break
            else:
                raise PpspeechError(f"a server did not start: {Path(log.name).read_text()[-500:]}")
            asked = said[1].split()
            address = next(word for word in asked if word.startswith("127.0.0.1:"))
            yield FleetServer(process, address, asked[asked.index("--pin") + 1], said)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.communicate()


def spend_through_two(database: LocalPostgres, sessions: int, budget: int) -> Spent:
    """Spend one budget through two servers; the first is killed when half of it is answered."""
    spent = Spent(budget)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "text.txt").write_text(TEXT)
        (folder / "store.key").write_text(secrets.token_hex(32))
        (folder / "store.key").chmod(0o600)
        make_certificate(folder / "certificate.pem", folder / "key.pem")
        shared = ("--store", database.address, "--store-key", folder / "store.key", "--budget", str(budget))
        given = (folder / "text.txt", *shared, "--sessions", str(4 * sessions))  # a quarter of it for one address
        first, second = (stack.enter_context(fleet_server(folder, *given)) for _ in range(2))
        started = time.perf_counter()
        _ask_all(spent, sessions, first, second)
        spent.seconds = time.perf_counter() - started
        spent.counted = counted(database)
    return spent


def counted(database: LocalPostgres) -> int:
    """What the database has counted of all budgets, as whoever runs it sees it."""
    program: list[str | Path] = [
        database.programs / "psql",
        "-h",
        "127.0.0.1",
        "-p",
        str(database.port),
        "-U",
        USER,
        "-At",
        "postgres",
    ]
    query = "SELECT COALESCE(SUM(used), 0) FROM ppspeech.queries"
    environment = os.environ | {"PGPASSFILE": str(database.passfile)}
    said = subprocess.run([*program, "-c", query], check=True, capture_output=True, env=environment)  # noqa: S603
    return int(said.stdout)


def _ask_all(spent: Spent, sessions: int, first: FleetServer, second: FleetServer) -> None:
    """Every session asks once, is left open, and asks again; every other one begins at the server that is killed."""
    held: dict[int, Client] = {}
    lock, enough = threading.Lock(), threading.Event()

    def ask(number: int) -> None:
        while True:
            outcome = _ask(held, number, first if number % 2 and first.process.poll() is None else second)
            with lock:
                spent.outcomes[outcome] += 1
                if spent.answered >= spent.budget // 2:
                    enough.set()
            if outcome != "interrupted":
                return

    def kill() -> None:
        if enough.wait(600):
            first.kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for _ in range(ASKS):
            list(pool.map(ask, range(sessions)))
    for client in held.values():
        with suppress(ProtocolError):
            client.close()


def _ask(held: dict[int, Client], number: int, server: FleetServer) -> str:
    """One question of a client, in its session, or a new one where it has none."""
    try:
        if number not in held:
            held[number] = connect(server.address, pin=server.pin, task="text", limits=PATIENT)
        if held[number].search("nine").value != [0]:
            raise PpspeechError("a wrong answer")
    except BudgetSpentError:
        return "refused"
    except (ProtocolError, OSError):
        with suppress(ProtocolError, OSError, KeyError):
            held.pop(number).close()
        return "interrupted"
    return "answered"


def _is_last(line: str, arguments: tuple[str | Path, ...]) -> bool:
    """Whether a server says no more before it answers."""
    last = "metrics at" if "--metrics" in arguments else "budgets are" if "--store" in arguments else "a client may"
    return line.startswith(last)
