"""Words of unseen people in a real browser, through its microphone: how long one takes after the last sound, of which
the page's own work, how much is downloaded, whether the words are Python's, and the page's number-theoretic transform.

Needs the corpus fsdd, and Chromium with Playwright (`apt-get install chromium`, `pip install 'ppspeech[dev]'`).
"""

import gzip
import shutil
import statistics
import tempfile
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.figures import Figure

if TYPE_CHECKING:
    from ppspeech.bundle import Bundle
    from ppspeech.data import Utterance

PATIENCE = 200  # seconds
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
)  # fmt: skip

ASK = """() => new Promise((done) => {
    const error = document.getElementById("error");
    new MutationObserver(() => error.hidden || done({ error: error.textContent })).observe(error, { attributes: true });
    const told = ({ detail }) => done({ ...detail, samples: [...detail.samples] });
    document.addEventListener("answer", told, { once: true });
    document.getElementById("record").click();
})"""
"""Press the button, and wait for an answer or for what went wrong."""

TRANSFORM = """async (runs) => {
    const script = await (await fetch("client.js")).text();
    const bytes = Uint8Array.from(atob(/AGFzbQ[A-Za-z0-9+/=]+/.exec(script)[0]), (each) => each.charCodeAt(0));
    const { instance } = await WebAssembly.instantiate(bytes);
    const { memory, begin, forward, inverse, heap } = instance.exports;
    const at = (heap() + 15) & ~15;
    memory.grow(1);
    begin();
    const x = new BigUint64Array(memory.buffer, at, 2048);
    for (let i = 0; i < 2048; i++) x[i] = BigInt(i * i);
    forward(at);
    inverse(at);
    if (x.some((value, i) => value !== BigInt(i * i))) return null;
    let best = Infinity;
    for (let round = 0; round < 10; round++) {
        const began = performance.now();
        for (let run = 0; run < runs; run++) forward(at);
        best = Math.min(best, (performance.now() - began) / runs);
    }
    return 1000 * best;
}"""
"""Microseconds of one transform, by the page's own module; null where it is not undone."""


@BENCHES.register("browser")
def run(quick: bool) -> list[Figure]:
    """Train on all people but some, serve, and let a browser hear clips of those."""
    missing = what_is_missing()
    if missing:
        raise PpspeechError(f"bench browser needs {missing}")
    from ppspeech.service import serve

    with tempfile.TemporaryDirectory() as folder:
        bundle, clips = _trained(Path(folder), 3 if quick else 10)
        microphone = Path(folder, "said.wav")
        write_wave(microphone, *clips[0])
        with serve(bundle, web="127.0.0.1:0", budget=None) as server, browser(microphone) as opened:
            page = new_page(opened)
            page.goto(server.web)
            page.wait_for_selector("#record:enabled")
            transform = page.evaluate(TRANSFORM, 200 if quick else 1000)
            words = [_ask(page, microphone, clip) for clip in clips]
    return _figures(bundle, words, transform)


def what_is_missing() -> str | None:
    """Why no browser can be driven here, in words; None if one can."""
    if browser_here() is None:
        return f"a browser ({', '.join(BROWSERS)}): apt-get install chromium"
    return None if find_spec("playwright") else "playwright, which drives a browser: pip install 'ppspeech[dev]'"


def browser_here() -> str | None:
    """A browser of this machine."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browser(microphone: Path) -> Iterator[Any]:
    """A browser whose microphone hears what is in a file when it is opened, again and again."""
    from playwright.sync_api import sync_playwright

    hears = f"--use-file-for-fake-audio-capture={microphone}"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser_here(), args=[*FLAGS, hears])
        try:
            yield opened
        finally:
            opened.close()


def new_page(opened: Any) -> Any:
    """A page as of somebody who has compared the pin, on a machine that may have other things to do."""
    page = opened.new_context(ignore_https_errors=True).new_page()
    page.set_default_timeout(1000 * PATIENCE)
    return page


def write_wave(path: Path, samples: Any, rate: int) -> None:
    """A sound `(samples,)` with silence around it: a browser opens its microphone a moment before it listens."""
    sound = np.concatenate([np.zeros(rate // 2), np.asarray(samples, np.float64), np.zeros(2 * rate)])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((32767 * sound.clip(-1, 1)).astype("<i2").tobytes())


def page_kilobytes() -> float:
    """All files of the page and its client, each compressed, in thousands of bytes."""
    from ppspeech.service.page import page_files

    files = page_files(None)
    return sum(len(gzip.compress(file.body)) for path, file in files.items() if path != "/index.html") / 1000


def _trained(folder: Path, count: int) -> "tuple[Bundle, list[tuple[Any, int]]]":
    """Words of most people, released without a promise, and clips of the others, of different words."""
    import pytorch_lightning as lightning

    from ppspeech.bundle import load_bundle
    from ppspeech.data import SpeechDataModule
    from ppspeech.training import WordModels, quiet_lightning, release

    quiet_lightning()
    people = SpeechDataModule("fsdd", {}, split="speaker", test=0.2, batch_size=256)
    people.setup()
    model = WordModels(states=8, covariance="diagonal")
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
    lightning.Trainer(max_epochs=4, enable_progress_bar=False, **quiet).fit(model, datamodule=people)
    release(model, folder / "words", not_private=True)
    bundle = load_bundle(folder / "words")
    rate = _rate(bundle)
    chosen: dict[str, Utterance] = {}
    for clip in people.parts["test"].corpus:
        chosen.setdefault(str(clip.word), clip)
    return bundle, [(clip.waveform(rate), rate) for clip in list(chosen.values())[:count]]


def _rate(bundle: "Bundle") -> int:
    assert bundle.config.mfcc is not None
    return bundle.config.mfcc.sample_rate


def _ask(page: Any, microphone: Path, clip: tuple[Any, int]) -> dict[str, Any]:
    write_wave(microphone, *clip)
    page.wait_for_selector("#record:enabled")
    said: dict[str, Any] = page.evaluate(ASK)
    if "error" in said:
        raise PpspeechError(f"the page could not ask: {said['error']}")
    return said


def _figures(bundle: "Bundle", words: Sequence[dict[str, Any]], transform: float | None) -> list[Figure]:
    """From what the page said of each word; what Python says is of the samples that the page heard."""
    if transform is None:
        raise PpspeechError("the page's transform is not undone by its inverse")
    rate = _rate(bundle)
    same = [each["value"] == bundle.recognize(np.asarray(each["samples"], np.float32), rate).value for each in words]
    where = f"Chromium and server on one machine over TLS, FSDD, {machine()}"
    note = f"median of {len(words)} words of unseen people, {where}"
    totals, work = ([each[name] for each in words] for name in ("totalMs", "workMs"))
    return [
        Figure("browser.word.total_ms", statistics.median(totals), "ms", note=f"after the last sound, {note}"),
        Figure("browser.client.work_ms", statistics.median(work), "ms", note=f"offline and online, {note}"),
        Figure("browser.bundle_kb", page_kilobytes(), "kB", note="page and client, each file compressed by gzip"),
        Figure.share("browser.agreement", sum(same), len(same), "clips", note="the bundle in the clear says the same"),
        Figure("browser.ntt_us", transform, "us", note=f"n = 2048, one prime of 50 bits, WebAssembly, {machine()}"),
    ]
