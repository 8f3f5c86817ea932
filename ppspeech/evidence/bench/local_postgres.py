"""A real PostgreSQL on this machine, on a loopback address, gone when the block ends: for tests and measurements."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ppspeech.errors import PpspeechError

DEBIAN = Path("/usr/lib/postgresql")
START_SECONDS = 60.0
USER = "ppspeech"


@dataclass
class LocalPostgres:
    """A database server that can be stopped, killed and started again; it keeps what it has."""

    programs: Path
    folder: Path
    port: int
    user: dict[str, int]
    options: tuple[str, ...]
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where it is, without a password: that is in `passfile`."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres?passfile={self.passfile}"

    @property
    def passfile(self) -> Path:
        """The password, as clients of PostgreSQL read it."""
        return self.folder / "pgpass"

    def start(self) -> None:
        """Start, and wait until it answers. Raises PpspeechError if it does not."""
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-k", str(self.folder)]
        command = [self.programs / "postgres", "-D", self.folder / "data", *options, *self.options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self.user)  # type: ignore[call-overload] # noqa: S603
        until = time.monotonic() + START_SECONDS
        ready: list[str | Path] = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode:  # noqa: S603
            if time.monotonic() > until or self._process.poll() is not None:
                raise PpspeechError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: at once and in order, or as a signal does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            self._process = None


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`: of the path, or of Debian's newest version; None where there is none."""
    found = shutil.which("initdb")
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: [int(x) for x in path.parts[4].split(".")])
    programs = Path(found).resolve().parent if found else versions[-1].parent if versions else None
    return programs if programs is not None and (programs / "postgres").exists() else None


@contextmanager
def local_postgres(*options: str) -> Iterator[LocalPostgres]:
    """A new one while the block lasts, with options of `postgres`. Raises PpspeechError where there is none to start.

    It refuses to run for the administrator, for whom it is started as another user.
    """
    programs = find_programs()
    if programs is None:
        raise PpspeechError(
            "there is no PostgreSQL here: install Debian's package postgresql, or another that has initdb"
        )
    folder = Path(tempfile.mkdtemp(prefix="ppspeech-postgres-"))
    try:
        user = _unprivileged()
        password = secrets.token_hex(16)
        (folder / "pgpass").write_text(f"*:*:*:{USER}:{password}\n")
        (folder / "password").write_text(f"{password}\n")
        for each in (folder, *folder.iterdir()):
            each.chmod(0o700 if each.is_dir() else 0o600)
            if user:
                os.chown(each, user["user"], user["group"])
        given = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--encoding=UTF8", "--locale=C"]
        command = [programs / "initdb", "-D", folder / "data", "--no-sync", *given]
        made = subprocess.run(command, capture_output=True, check=False, **user)  # type: ignore[call-overload] # noqa: S603
        if made.returncode:
            raise PpspeechError(f"initdb failed: {made.stderr.decode()[-500:]}")
        running = LocalPostgres(programs, folder, _free_port(), user, options)
        running.start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> dict[str, int]:
    """Whom to be instead of the administrator."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid}
        except KeyError:
            continue
    raise PpspeechError("PostgreSQL does not run for the administrator, and there is no user postgres or nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
