"""Commands as processes of their own, without waiting for imports: forks of one that has imported the package.

Programs that fork, and servers, cannot run inside a test, whose process has used thread pools.
"""

import multiprocessing
import os
import runpy
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[1]
PRELOADED = ["ppspeech.cli", "ppspeech.training", "ppspeech.training.together", "ppspeech.service"]


@dataclass(frozen=True)
class Running:
    """A process and what it prints."""

    process: BaseProcess
    files: tuple[Path, Path]

    @property
    def stdout(self) -> str:
        """So far."""
        return self.files[0].read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """So far."""
        return self.files[1].read_text(errors="replace")

    def end(self, seconds: float = 300.0) -> int:
        """Wait for its end; its exit code."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode

    def stop(self) -> None:
        """End it, gently at first."""
        if self.process.is_alive():
            self.process.terminate()
            self.end(10.0)


def start(
    command: str | list[str], folder: Path, *, python: bool = False, environment: Mapping[str, str] | None = None
) -> Running:
    """Run a command line, `ppspeech …` or `python FILE …`, or Python code, in a folder."""
    number = len(list(folder.glob(".*.out")))
    files = folder / f".{number}.out", folder / f".{number}.err"
    for file in files:
        file.touch()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    given = dict(os.environ) | dict(environment or {})
    process: Any = context.Process(target=_be, args=(command, folder, files, python, given))
    process.start()
    return Running(process, files)


def _be(
    command: str | list[str], folder: Path, files: tuple[Path, Path], python: bool, environment: dict[str, str]
) -> None:
    """Be the process: what was forked is as if it had just started."""
    for standard, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), standard)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if python:
        exec(compile(str(command), "<step>", "exec"), {"__name__": "__main__"})
        return
    words = shlex.split(command) if isinstance(command, str) else command
    if words[0] == "ppspeech":
        sys.argv = [str(Path(sys.executable).with_name("ppspeech")), *words[1:]]  # as a shell that found it
        from ppspeech.cli import main

        main()
    else:
        sys.argv = words[1:]
        runpy.run_path(str(TOP / words[1]), run_name="__main__")
