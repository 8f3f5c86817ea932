"""Features of a corpus by one process, and by two workers of a Ray cluster on this machine: the same files, sooner.

Needs ray (the extra scale) and two cores; --quick takes about 20 s.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ppspeech.audio import MfccConfig, write_audio
from ppspeech.cluster import HERE, Pool, pool
from ppspeech.data import FeatureStore, Utterance
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine, threads
from ppspeech.figures import Figure

WORKERS = 2
SOUNDS, QUICK = 4_000, 400
SECONDS = 3


@BENCHES.register("scale-ray")
def run(quick: bool) -> list[Figure]:
    """Fill empty stores from recordings on disk, and compare all files byte for byte before a time is believed.

    The cluster is up, its workers have imported what they need, and the system has the recordings in memory, for both.
    """
    config = MfccConfig.wideband()
    with TemporaryDirectory() as folder, threads(1):
        sounds = _recordings(Path(folder), QUICK if quick else SOUNDS)
        alone, one = _filled(Path(folder, "one"), config, sounds, HERE)
        with _started() as (workers, start_up):
            FeatureStore(config, Path(folder, "warm")).fill(sounds[: 64 * WORKERS], workers)
            together, two = _filled(Path(folder, "two"), config, sounds, workers)
    if one != two:
        raise PpspeechError("two workers wrote other files than one process")
    setting = f"{len(sounds):,} recordings of {SECONDS} s, files alike to the byte; {machine()}"
    return [
        Figure("scale.features.ray2.speedup", alone / together, "x", note=f"1 process against 2 workers; {setting}"),
        Figure("scale.features.ray1.rate", len(sounds) / alone, "1/s", note=f"recordings, by one process; {setting}"),
        Figure("scale.features.ray2.rate", len(sounds) / together, "1/s", note=f"recordings, 2 workers; {setting}"),
        Figure("scale.features.ray2.start_s", start_up, "s", note="until a cluster on this machine takes work"),
    ]


def _recordings(folder: Path, count: int) -> list[Utterance]:
    generator = torch.Generator().manual_seed(0)
    sounds = [Utterance(folder / f"{place}.wav", speaker="nobody") for place in range(count)]
    for sound in sounds:
        write_audio(sound.path, 0.1 * torch.randn(SECONDS * 16_000, generator=generator).clamp(-5, 5), 16_000)
    return sounds


def _filled(folder: Path, config: MfccConfig, sounds: list[Utterance], workers: Pool) -> tuple[float, dict[str, bytes]]:
    """Seconds, and all that was written."""
    start = time.perf_counter()
    FeatureStore(config, folder).fill(sounds, workers)
    seconds = time.perf_counter() - start
    return seconds, {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.npy")}


@contextmanager
def _started() -> Iterator[tuple[Pool, float]]:
    start = time.perf_counter()
    with pool("local", WORKERS) as workers:
        yield workers, time.perf_counter() - start
