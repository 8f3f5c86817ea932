"""A real browser for tests, with a microphone that hears a file."""

import shutil
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
)  # fmt: skip


def browser_here() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


needs_browser = pytest.mark.skipif(browser_here() is None, reason="no browser here: apt-get install chromium")


@contextmanager
def browser(microphone: Path, *flags: str) -> Iterator[Any]:
    """A browser whose microphone hears what is in a file when it is opened, again and again."""
    from playwright.sync_api import sync_playwright

    hears = f"--use-file-for-fake-audio-capture={microphone}"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser_here(), args=[*FLAGS, hears, *flags])
        try:
            yield opened
        finally:
            opened.close()


def write_wave(
    path: Path, samples: Sequence[float] | np.ndarray, rate: int, before: float = 0.3, after: float = 2.0
) -> None:
    """A sound with silence around it: a browser opens its microphone a moment before it listens."""
    sound = np.concatenate([np.zeros(rate // 2), np.asarray(samples, float), np.zeros(2 * rate)])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((32767 * sound.clip(-1, 1)).astype("<i2").tobytes())
