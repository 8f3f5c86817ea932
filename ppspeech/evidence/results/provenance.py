"""Where figures come from: which command, when, for how long, on what machine, with which versions."""

import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from ppspeech import __version__
from ppspeech.errors import PpspeechError
from ppspeech.figures import Figure
from ppspeech.registry import listed

COMMAND = re.compile(r"ppspeech (bench|reproduce) ([a-z0-9_-]+)( --quick)?")
PACKAGES = {"bench": "ppspeech.evidence.bench", "reproduce": "ppspeech.evidence.experiments"}
PARTS = ("torch", "numpy", "scipy")
WORDS = re.compile(r"[^\x00-\x1f\x7f/\\@]{1,80}")
"""What a machine or version may be called: no path, nobody at a host."""


@dataclass(frozen=True)
class Provenance:
    """Of the figures of one run.

    Attributes:
        command: `ppspeech bench NAME` or `ppspeech reproduce NAME`, with `--quick` where it was the small version.
        date: of the day, as 2026-11-18.
        seconds: that it took.
        machine: cores, architecture and memory; no name of a host or a person.
        versions: of Python and of the packages that compute.
        load: of the machine before the run, one minute's mean; None where nobody looked.
    """

    command: str
    date: str
    seconds: float
    machine: str
    versions: Mapping[str, str] = field(default_factory=dict)
    load: float | None = None

    def __post_init__(self) -> None:
        known_command(self.command)
        try:
            date.fromisoformat(self.date)
        except (TypeError, ValueError):
            raise PpspeechError(f"the date of a run is written as 2026-11-18, got {self.date!r:.80}") from None
        if not _number(self.seconds) or not 0 <= self.seconds < 1e9:
            raise PpspeechError(f"a run takes some seconds, got {self.seconds!r:.80}")
        if self.load is not None and not (_number(self.load) and 0 <= self.load < 1e6):
            raise PpspeechError(f"the load of a machine is 0 or more, got {self.load!r:.80}")
        given = self.versions if isinstance(self.versions, Mapping) else {"": self.versions}
        for text in (self.machine, *given, *given.values()):
            if not isinstance(text, str) or not WORDS.fullmatch(text):
                raise PpspeechError(f"machines and versions are described in a few words without a path: {text!r:.80}")

    @property
    def name(self) -> str:
        """Of the file: `bench-keyword`, `reproduce-fsdd`, `bench-network-quick`."""
        return self.command.removeprefix("ppspeech ").replace(" --", "-").replace(" ", "-")

    @property
    def quick(self) -> bool:
        """Whether it was the small version of the command."""
        return self.command.endswith(" --quick")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known_command(command: Any) -> str:
    """A command whose figures can be stored. Raises PpspeechError for another one."""
    match = COMMAND.fullmatch(command) if isinstance(command, str) else None
    if match is None:
        raise PpspeechError(
            f"results are of `ppspeech bench NAME` or `ppspeech reproduce NAME`, with --quick or not: {command!r:.80}"
        )
    kind, name = match[1], match[2]
    if name not in _names(kind):
        raise PpspeechError(f"there is no `ppspeech {kind} {name}`: `ppspeech {kind}` lists what there is")
    return match[0]


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(listed(PACKAGES[kind]))


def machine() -> str:
    """This one, in words: `2 cores, x86_64, 24 GB`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{cores} core{'s' * (cores > 1)}, {platform.machine()}, {memory:.0f} GB"


def versions() -> dict[str, str]:
    """Of what computes here."""
    found = {part: version(part).partition("+")[0] for part in PARTS}
    return {"ppspeech": __version__, "python": platform.python_version(), **found}


def measured(command: str, work: Callable[[], list[Figure]]) -> tuple[Provenance, list[Figure]]:
    """Run, and say where the figures come from."""
    known_command(command)
    load, day, began = os.getloadavg()[0], datetime.now(UTC).date().isoformat(), time.perf_counter()
    figures = work()
    seconds = round(time.perf_counter() - began, 1)
    return Provenance(command, day, seconds, machine(), versions(), round(load, 2)), figures
