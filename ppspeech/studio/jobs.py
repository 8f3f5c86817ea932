"""Work that takes a while: commands of ppspeech, one after the other, in processes that end with whoever watches."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ppspeech.errors import PpspeechError

LONGEST_LINE, MOST_LINES, FIRST_LINES = 4_000, 400, 40
"""Of what a job prints, that are kept: a line's characters, the last lines, and the first."""
PATIENCE = 15.0  # seconds that a job goes on with nobody watching, for a page that is loaded again
GRACE = 5.0  # seconds that a process has to end in order

READ = 2**16


@dataclass
class Job:
    """Some commands, run in a folder. `kind`: one job of a kind at a time. `about`: what was asked for, for pages."""

    name: str
    kind: str
    commands: tuple[tuple[str, ...], ...]
    folder: Path
    about: dict[str, Any]
    keep: Callable[["Job"], None] = lambda _: None  # what is to be kept of it, where it comes to its end
    first: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    told: int = 0  # lines so far, of which the last are kept
    state: str = "running"  # then `done`, `failed` or `stopped`
    watchers: int = 0
    _unwatched: float = field(default_factory=time.monotonic)
    _process: asyncio.subprocess.Process | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _asked_to_stop: bool = False

    def plain(self) -> dict[str, Any]:
        """What a page may know of it."""
        return {"name": self.name, "kind": self.kind, "state": self.state, "about": self.about}

    async def run(self) -> None:
        """Run all commands, until one fails or it is stopped."""
        try:
            for command in self.commands:
                if self._asked_to_stop or await self._command(command) != 0:
                    self.state = "stopped" if self._asked_to_stop else "failed"
                    return
            if not self._asked_to_stop:
                self.keep(self)
            self.state = "stopped" if self._asked_to_stop else "done"
        except asyncio.CancelledError:
            self.state = "stopped"
            raise
        except OSError as error:
            self.state = "failed"
            self.say(f"error: it cannot be run: {error.strerror}")
        finally:
            self._wake()

    async def stop(self) -> None:
        """End it and all that it started: by Ctrl-C, then by force."""
        self._asked_to_stop = True
        process = self._process
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if process is None or not _signal(process.pid, which):
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE)
                break
        if process is not None:
            _signal(process.pid, signal.SIGKILL)  # whoever of its group is left

    def say(self, line: str) -> None:
        """One more line, as it is: pages show it as text."""
        self.lines = [*self.lines, line[:LONGEST_LINE]][-MOST_LINES:]
        self.first = [*self.first, line[:LONGEST_LINE]][:FIRST_LINES]
        self.told += 1
        self._wake()

    async def watch(self, since: int = 0) -> AsyncGenerator[dict[str, Any], None]:
        """Lines and states as they come; while somebody watches, it goes on."""
        self.watchers += 1
        try:
            while True:
                fresh = self.lines[max(0, len(self.lines) - (self.told - since)) :]
                since, state, changed = self.told, self.state, self._changed
                yield {"lines": fresh, "state": state}
                if state != "running":
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), 5.0)
        finally:
            self.watchers -= 1
            self._unwatched = time.monotonic()

    @property
    def forgotten(self) -> bool:
        """Whether nobody has watched it for `PATIENCE`."""
        return self.watchers == 0 and time.monotonic() - self._unwatched > PATIENCE

    async def _command(self, command: Sequence[str]) -> int:
        program = (sys.executable, "-m", "ppspeech.studio.command", str(os.getpid()), *command)
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "MPLBACKEND": "Agg"}
        self._process = await asyncio.create_subprocess_exec(
            *program,
            cwd=self.folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        if self._asked_to_stop:  # while it was being started
            _signal(self._process.pid, signal.SIGKILL)
        try:
            await self._listen(self._process)
            return await self._process.wait()
        finally:
            _signal(self._process.pid, signal.SIGKILL)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        while data := await process.stdout.read(READ):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                self.say(line.decode(errors="replace").rstrip())
            rest = rest[-4 * LONGEST_LINE :]
        if rest:
            self.say(rest.decode(errors="replace"))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _signal(group: int, which: signal.Signals) -> bool:
    """Tell a process and all of its group; False where there is none."""
    try:
        os.killpg(group, which)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Jobs:
    """All jobs of a studio. Raises PpspeechError, in words, for a second one of a kind that runs."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._count = 0

    def start(
        self,
        kind: str,
        commands: Sequence[Sequence[str]],
        folder: Path,
        about: dict[str, Any],
        keep: Callable[[Job], None] = lambda _: None,
    ) -> Job:
        """Begin; the job is stopped when nobody watches it. `keep`: called when all commands have been done."""
        running = self.running(kind)
        if running is not None:
            raise PpspeechError(f"{running.about.get('title', kind)} is still going on: wait for it, or stop it")
        self._count += 1
        name = f"{kind}-{self._count}"
        job = Job(name, kind, tuple(map(tuple, commands)), folder, about, keep)
        self._jobs[name] = job
        self._tasks[name] = asyncio.get_running_loop().create_task(job.run())
        return job

    def running(self, kind: str) -> Job | None:
        """The one of a kind that runs, if any."""
        return next((job for job in self._jobs.values() if job.kind == kind and job.state == "running"), None)

    def latest(self, kind: str) -> Job | None:
        """The last one of a kind, if any."""
        return next((job for job in reversed(self._jobs.values()) if job.kind == kind), None)

    def named(self, name: str) -> Job:
        """One by its name."""
        if name not in self._jobs:
            raise PpspeechError("there is no such job: it may be of a studio that has ended")
        return self._jobs[name]

    async def end_forgotten(self) -> None:
        """Again and again: stop what nobody watches."""
        while True:
            await asyncio.sleep(1.0)
            for job in list(self._jobs.values()):
                if job.state == "running" and job.forgotten:
                    await job.stop()

    async def end(self) -> None:
        """Stop all of them, and wait until they are gone."""
        await asyncio.gather(*(job.stop() for job in self._jobs.values() if job.state == "running"))
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
