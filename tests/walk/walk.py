"""The walk of a new user as a script: every stage in a folder of its own, every step a command and what must hold.

`python -m tests.walk` runs it and prints a table; `--slow` adds the long steps, `--json` prints figures for programs.
Every step is a process, as at a terminal.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder
from tests.fresh import TOP, Running, start
from tests.walk.step import Step
from tests.walk.steps import STAGES

PATIENCE = 120.0  # seconds for what a step prints when it goes on running


@dataclass(frozen=True)
class Outcome:
    """How one step went: `fault` is empty if all that must hold does."""

    step: Step
    fault: str
    seconds: float


@dataclass
class Walker:
    """Walks one stage: its folder, what earlier steps have told, and the processes that go on."""

    folder: Path
    known: dict[str, str] = field(default_factory=dict)
    going: list[Running] = field(default_factory=list)

    def take(self, step: Step) -> Outcome:
        """Run one step and look at what came of it."""
        started = time.perf_counter()
        environment = {"PPSPEECH_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1"}
        job = start(step.filled(self.known), self.folder, python=step.python, environment=environment)
        code = step.code
        if step.goes_on:
            self.going.append(job)
            while not re.search(step.says, job.stdout + job.stderr) and job.process.is_alive():
                if time.perf_counter() - started > PATIENCE:
                    break
                time.sleep(0.02)
        else:
            code = job.end()
        fault = self._fault(step, code, job.stdout + job.stderr)
        return Outcome(step, fault, time.perf_counter() - started)

    def _fault(self, step: Step, code: int, said: str) -> str:
        if "Traceback (most recent call last)" in said:
            return "a traceback: " + said.strip().splitlines()[-1]
        if code != step.code:
            return f"exit code {code}, not {step.code}: {said.strip()[-300:]}"
        if step.code == 2 and (errors := len(re.findall("error:|─ Error", said))) != 1:
            return f"an error is said once, not {errors} times: {said.strip()[-300:]}"
        found = re.search(step.says, said, re.DOTALL)
        if found is None:
            return f"{step.says!r} is not in: {said.strip()[-300:]}"
        if absent := [name for name in step.makes if not (self.folder / name).exists()]:
            return f"{', '.join(absent)} was not made"
        self.known |= found.groupdict()
        return ""

    def stop(self) -> None:
        """End what still goes on."""
        for job in self.going:
            job.stop()


@contextmanager
def stage_folder() -> Iterator[Path]:
    """A folder that a stage begins in: it sees the recipes."""
    folder = Path(tempfile.mkdtemp(prefix="walk-"))
    try:
        (folder / "configs").symlink_to(TOP / "configs")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def has_data(name: str) -> bool:
    """Whether a real corpus is there."""
    try:
        return (data_folder() / name).exists()
    except CorpusError:
        return False


def walk(stage: str, *, slow: bool) -> Iterator[Outcome]:
    """The steps of a stage in order; those that are long, or need a corpus that is absent, are left out."""
    with stage_folder() as folder:
        walker = Walker(folder)
        try:
            for step in STAGES[stage]:
                if (slow or not step.slow) and (not step.needs or has_data(step.needs)):
                    yield walker.take(step)
        finally:
            walker.stop()


def main(words: Sequence[str] | None = None) -> None:
    """Walk, print how it went, and exit with 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.walk", description=__doc__.split("\n")[0])
    parser.add_argument("stages", nargs="*", choices=[*STAGES, []], metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--slow", action="store_true", help="also the long steps")
    parser.add_argument("--json", action="store_true", help="figures, one JSON object a line; steps on standard error")
    chosen = parser.parse_args(words)
    outcomes: list[Outcome] = []
    told = sys.stderr if chosen.json else sys.stdout
    for stage in chosen.stages or STAGES:
        for outcome in walk(stage, slow=chosen.slow):
            outcomes.append(outcome)
            mark = "FAILS " if outcome.fault else "holds "
            print(f"{mark} {outcome.seconds:5.1f} s  {stage}: {outcome.step.name}", file=told, flush=True)
            if outcome.fault:
                print(f"         $ {outcome.step.run}\n         {outcome.fault}", file=told, flush=True)
    passed, total = sum(not outcome.fault for outcome in outcomes), len(outcomes)
    if chosen.json:
        for metric, value in (("passed", passed), ("total", total), ("seconds", sum(o.seconds for o in outcomes))):
            unit = "s" if metric == "seconds" else ""
            print(json.dumps({"metric": f"users.walk.{metric}", "value": value, "unit": unit}))
    else:
        print(f"{passed} of {total} steps hold, {sum(outcome.seconds for outcome in outcomes):.0f} s")
    sys.exit(passed < total)
