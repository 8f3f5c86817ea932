"""Threads beside a busy process: training with the default setting against every other setting, in one run.

Needs the corpus fsdd.
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
import sys, time
import pytorch_lightning as lightning
from ppspeech.data import SpeechDataModule
from ppspeech.training import WordModels, quiet_lightning
quiet_lightning()
voices = SpeechDataModule("fsdd", split="official", batch_size=256)
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
trainer = lightning.Trainer(max_epochs=int(sys.argv[1]), accelerator="cpu", **quiet)
start = time.perf_counter()
trainer.fit(WordModels(), datamodule=voices)
print(time.perf_counter() - start)
"""
"""Word models of FSDD, as `ppspeech train keyword_hmm --data.corpus fsdd --data.split official` has them."""


@BENCHES.register("threads")
def run(quick: bool) -> list[Figure]:
    """Measure; `quick` trains for fewer epochs, once. The settings take turns, and the features are ready."""
    epochs, rounds = (2, 1) if quick else (8, 3)
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
