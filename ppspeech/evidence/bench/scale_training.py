"""Training at scale: one process beside two on the same data, and memory against the size of a corpus on disk.

Both sides of a speedup run in one go, each process with one thread, on packed features that are made up: an epoch of
Baum-Welch, and steps of private gradients. The difference is that of the parameters, of the largest among them; of
private gradients, whose samples and noise are never the same twice, it is not asked. Memory is the peak of a process
that trains on a corpus and does nothing else; its growth is from the smallest corpus to the largest.

Needs nothing; --quick takes about 1 min.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppspeech.audio import GivenFeatures
from ppspeech.data import write_rows_packed
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.figures import Figure

WORDS, SPEAKERS, FEATURES, FRAMES, STATES = 10, 200, 26, 40, 8
SAMPLING, NOISE = 0.05, 1.0


@BENCHES.register("scale-training")
def run(quick: bool) -> list[Figure]:
    """Measure all of it; `quick` takes smaller corpora."""
    utterances, rounds = (2_000, 1) if quick else (20_000, 3)
    sizes = (2_000, 20_000) if quick else (10_000, 100_000, 1_000_000)
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = made_up(Path(folder) / "corpus", utterances)
        for what, name in (("em", "Baum-Welch"), ("gradients", "private gradients")):
            pairs = [(trained(corpus, what, 1), trained(corpus, what, 2)) for _ in range(rounds)]
            one, two = (min(pair[side][0]["seconds"] for pair in pairs) for side in (0, 1))
            about = f"{name}, {utterances:,} utterances of {FRAMES} frames, a thread a process, {machine()}"
            found += [
                Figure(f"scale.ddp2.{what}.one_s", one, "s", note=about),
                Figure(f"scale.ddp2.{what}.two_s", two, "s", note=about),
                Figure(f"scale.ddp2.{what}.speedup", one / two, "x", note=about),
            ]
            if what == "em":
                (alone,), (first, second) = pairs[0]
                found += differences(alone["state"], first["state"], second["state"])
        slower = min(figure.value for figure in found if figure.metric.endswith("speedup"))
        found.append(Figure("scale.ddp2.speedup", slower, "x", note="the less of the two"))
        return [*found, *memory(Path(folder), sizes)]


def memory(folder: Path, sizes: Sequence[int]) -> list[Figure]:
    """The peak of a process that trains on each of these corpora, which are removed after, and its growth."""
    found: list[Figure] = []
    for size in sizes:
        big = made_up(folder / f"of_{size}", size)
        (told,) = trained(big, "em", 1)
        on_disk = sum(path.stat().st_size for path in big.iterdir()) / 1e6
        note = f"an epoch of Baum-Welch, {on_disk:,.0f} MB of features on disk, {told['seconds']:.0f} s"
        found.append(Figure(f"scale.memory.{size}.peak_mb", told["peak_mb"], "MB", note=note))
        shutil.rmtree(big)
    note = f"peak with {sizes[-1]:,} utterances over that with {sizes[0]:,}"
    return [*found, Figure("scale.memory.growth_mb", found[-1].value - found[0].value, "MB", note=note)]


def differences(alone: dict[str, Tensor], first: dict[str, Tensor], second: dict[str, Tensor]) -> list[Figure]:
    """How far two processes are from one, and from each other, of the largest parameter."""
    away = apart = 0.0
    for name, value in alone.items():
        finite = value.isfinite()
        scale = float(value[finite].abs().max().clamp_min(1.0)) if bool(finite.any()) else 1.0
        if bool(finite.any()):
            away = max(away, float((first[name][finite] - value[finite]).abs().max()) / scale)
        apart = max(apart, 0.0 if torch.equal(first[name], second[name]) else 1.0)
    return [
        Figure("scale.ddp2.difference", away, note="two processes from one, of the largest parameter, float32"),
        Figure("scale.ddp2.ranks_differ", apart, note="0: both processes end with the same bits"),
    ]


def made_up(folder: Path, utterances: int) -> Path:
    """A packed corpus of vectors about a center a word and state, never more than one of them in memory."""
    generator = np.random.default_rng(0)
    centers = generator.normal(0, 2, (WORDS, FRAMES, FEATURES)).astype(np.float32)

    def rows() -> Iterator[tuple[Tensor, tuple[int, ...]]]:
        for place in range(utterances):
            word, speaker = place % WORDS, (place // WORDS) % SPEAKERS
            noise = generator.standard_normal((FRAMES, FEATURES), dtype=np.float32)
            yield torch.from_numpy(centers[word] + noise), (word, speaker, -1, -1, 0)

    width = len(str(SPEAKERS))
    names = {"word": tuple(f"w{i}" for i in range(WORDS)), "speaker": tuple(f"s{i:0{width}}" for i in range(SPEAKERS))}
    write_rows_packed(
        folder, "made up", 16_000, GivenFeatures(given=FEATURES), names | {"emotion": (), "gender": ()}, rows()
    )
    return folder


def trained(corpus: Path, what: str, processes: int) -> list[dict[str, Any]]:
    """What each process says of a training: seconds, peak memory and parameters."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for rank in range(processes):
            more = {"OMP_NUM_THREADS": "1", "LOCAL_RANK": str(rank), "NODE_RANK": "0", "WORLD_SIZE": str(processes)}
            more |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            command = [sys.executable, "-m", f"{__package__}.scale_training_run"]
            words = [str(corpus), what, str(processes), f"{folder}/{rank}.pt"]
            one = subprocess.Popen([*command, *words], env=os.environ | more, stdout=subprocess.PIPE)  # noqa: S603
            started.append(one)
        said = [each.communicate()[0] for each in started]
        if any(each.returncode for each in started):
            raise PpspeechError(f"training {what} in {processes} processes failed: see above")
        states = [torch.load(f"{folder}/{rank}.pt") for rank in range(processes)]
    return [json.loads(line.splitlines()[-1]) | {"state": state} for line, state in zip(said, states, strict=True)]
