"""Sound from the microphone, by the recorder that the system has."""

import shutil
import subprocess
from collections.abc import Iterator

import numpy as np

from ppspeech.audio.sound import Samples
from ppspeech.errors import AudioError

CHUNK_SECONDS = 0.1


def find_recorder() -> str:
    """The path of the recorder. Raises AudioError if there is none."""
    recorder = shutil.which("arecord")
    if recorder is None:
        raise AudioError("no recorder on this machine: install `arecord` (ALSA utilities), or give a sound file")
    return recorder


def record(seconds: float, rate: int) -> Iterator[Samples]:
    """Chunks of samples `(samples,)` in [-1, 1] as they are recorded, for so many seconds; needs `arecord`."""
    sound = ("-q", "-t", "raw", "-f", "S16_LE", "-c", "1")
    command = [find_recorder(), *sound, "-r", str(rate), "-d", str(round(seconds))]
    size = 2 * round(rate * CHUNK_SECONDS)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        assert process.stderr is not None
        while data := process.stdout.read(size):
            samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768)
            yield samples
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise AudioError(f"the recorder failed: {said or process.returncode}")
