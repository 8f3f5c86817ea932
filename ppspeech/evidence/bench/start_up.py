"""How long the command line takes to say what it can do: help and lists, each in a process of its own.

Needs nothing; --quick takes about 10 s.
"""

import os
import subprocess
import sys

from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.figures import Figure

ASKED = {
    "help": ("--help",),
    "command_help": ("serve", "--help"),
    "bench_list": ("bench",),
    "reproduce_list": ("reproduce",),
    "party_list": ("party",),
    "corpus_list": ("corpus", "list"),
    "info": ("info",),
}


@BENCHES.register("start-up")
def run(quick: bool) -> list[Figure]:
    """Time fresh processes, from their start to their end."""
    repeats = 2 if quick else 10
    note = f"fresh process, best of {repeats}, {machine()}"
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}

    def ask(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "ppspeech", *words], env=alone, capture_output=True, check=True)  # noqa: S603

    return [
        Figure(f"cli.{name}_s", best_seconds(lambda words=words: ask(*words), repeats), "s", note=note)  # type: ignore[misc]
        for name, words in ASKED.items()
    ]
