"""Threads beside a busy process: training with the default setting against every other setting, in one run.

Needs the corpus fsdd; --quick takes about 60 s.
"""

import os
import subprocess
import sys
from statistics import median

from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.figures import Figure

SETTINGS = {
    "default": {},
    "spinning": {"OMP_WAIT_POLICY": "ACTIVE"},
    "one_thread": {"OMP_NUM_THREADS": "1"},
}

TRAIN = """
import sys, tempfile, time
from ppspeech.recipes import find_recipe
from ppspeech.training import run_recipe
recipe = ["fit", "--config", str(find_recipe("keyword_hmm")), "--data.corpus", "fsdd", "--data.split", "official"]
quiet = ["--trainer.logger", "false", "--trainer.enable_progress_bar", "false", "--trainer.accelerator", "cpu"]
with tempfile.TemporaryDirectory() as folder:
    start = time.perf_counter()
    run_recipe([*recipe, *quiet, "--trainer.max_epochs", sys.argv[1], "--trainer.default_root_dir", folder])
    print(time.perf_counter() - start)
"""
"""Word models of FSDD, as `ppspeech train keyword_hmm --data.corpus fsdd --data.split official` trains them."""


@BENCHES.register("threads")
def run(quick: bool) -> list[Figure]:
    """Measure; the settings take turns, and the features are ready. `quick` trains one epoch, once: a rough look."""
    epochs, rounds = (1, 1) if quick else (4, 3)
    _seconds({}, 1)
    beside: dict[str, list[float]] = {name: [] for name in SETTINGS}
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            for _ in range(rounds):
                for name, setting in SETTINGS.items():
                    beside[name].append(_seconds(setting, epochs))
        finally:
            busy.kill()
    found = {name: median(seconds) for name, seconds in beside.items()}
    best = min((name for name in found if name != "default"), key=found.__getitem__)
    note = f"{epochs} epochs beside one busy process, median of {rounds}; {machine()}"
    return [
        Figure.less("threads.default_s", found["default"], "s", best, found[best], note),
        *(Figure(f"threads.{name}_s", found[name], "s", note=note) for name in SETTINGS if name != "default"),
        Figure("threads.default_over_best", found["default"] / min(found.values()), "x", note="1 is the best there is"),
    ]


def _seconds(setting: dict[str, str], epochs: int) -> float:
    """What a process with this setting, and no other about threads, says that its training took."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "MKL_"))}
    command = [sys.executable, "-c", TRAIN, str(epochs)]
    done = subprocess.run(command, env=plain | setting, check=True, capture_output=True, text=True)  # noqa: S603
    return float(done.stdout.split()[-1])
