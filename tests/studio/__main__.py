"""Take the pictures of `docs/guides/studio.md`: the pages, driven as somebody would, on built-in data alone.

`python -m tests.studio` takes some minutes: it trains, attacks filters, and lets parties compute.
"""

import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from ppspeech.data import load_corpus
from ppspeech.studio import Places, Studio
from tests.studio.running import running
from tests.web.browser import browser, new_page, write_wave

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES = 120_000


def take(page: Any, name: str, height: int = 1150) -> None:
    """The page as it is now, in few colors."""
    page.set_viewport_size({"width": 1100, "height": height})
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    path = PICTURES / f"studio_{name}.png"
    page.screenshot(path=str(path))
    Image.open(path).convert("RGB").quantize(48).save(path, optimize=True)
    assert path.stat().st_size < MOST_BYTES, f"{path} has {path.stat().st_size} bytes"
    print(path)


def go(page: Any, studio: Studio, name: str, ready: str) -> None:
    page.goto(f"http://{studio.address}/{name}")
    page.wait_for_selector(ready, state="attached")


def done(page: Any) -> None:
    page.click("#start")
    page.wait_for_selector("#stop:visible")
    page.wait_for_selector("#start:enabled")
    assert not page.is_visible("#error"), page.inner_text("#error")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        microphone = Path(folder, "said.wav")
        said = next(each for each in load_corpus("synthetic", seed=2) if each.word == "seven")
        write_wave(microphone, said.waveform(16_000), 16_000)
        with running(Places(Path(folder, "work"))) as studio, browser(microphone) as opened:
            page = new_page(opened)
            page.goto(studio.entrance)
            page.wait_for_url("**/speak")
            go(page, studio, "train", "#recipe option")
            for power in (-2, 0, 3):
                page.fill("#epsilon", str(power))
                done(page)
            take(page, "train", 1500)
            for _ in range(3):
                page.locator("#runs button").first.click()
                page.locator("#runs button:disabled").first.wait_for(state="detached")
            go(page, studio, "models", "#left option")
            take(page, "models")
            go(page, studio, "together", "#table option")
            done(page)
            take(page, "together")
            go(page, studio, "filters", "#recipe option")
            for power in (-2, 3, 0):
                page.fill("#rho", str(power))
                done(page)
            page.reload()
            page.wait_for_selector("#bars .meter")
            take(page, "filters")
            go(page, studio, "speak", "#bundle option")
            page.click("#serve:enabled")
            page.click("#record:enabled")
            page.wait_for_selector("#answer:visible")
            take(page, "speak", 1250)


if __name__ == "__main__":
    main()
