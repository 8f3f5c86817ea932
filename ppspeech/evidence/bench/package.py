"""What an installation takes: the wheel, what a client and what a server require, and how long a client's import takes.

Needs the source tree and hatchling; --quick takes about 10 s.
"""

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.figures import Figure
from ppspeech.licenses import NEEDED, licenses

TOP = Path(__file__).parents[3]

IMPORTED = """
import sys, time
began = time.process_time()
from ppspeech import connect
print(time.process_time() - began)
assert "torch" not in sys.modules
"""


@BENCHES.register("package")
def run(quick: bool) -> list[Figure]:
    """Build the wheel, add up files of installed packages, and import what a client imports, in fresh processes."""
    if not (TOP / "pyproject.toml").is_file():
        raise PpspeechError(f"the wheel is built from the source tree, and {TOP} is none: run it in a checkout")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        subprocess.run(command, cwd=TOP, check=True, capture_output=True)  # noqa: S603
        (wheel,) = Path(folder).glob("*.whl")
        size = wheel.stat().st_size
    every = [each for each in licenses() if each.needed_for in NEEDED]
    light = {each.name: _bytes(each.name) for each in every if each.needed_for == "core"}
    full = {each.name: _bytes(each.name) for each in every}
    vendor = sum(full[each.name] for each in every if each.kind == "vendor")
    largest = ", ".join(sorted(light, key=lambda name: -light[name])[:4])
    note = f"files of installed packages, {sys.platform}, Python {sys.version_info.major}.{sys.version_info.minor}"
    seconds = min(_import_seconds() for _ in range(2 if quick else 5))
    return [
        Figure("package.wheel_kb", size / 1e3, "kB", note="without what it requires"),
        Figure("package.client_mb", sum(light.values()) / 1e6, "MB", note=f"{note}; {len(light)}, most: {largest}"),
        Figure("package.full_mb", sum(full.values()) / 1e6, "MB", note=f"{note}; {len(full)}, with `ppspeech[full]`"),
        Figure("package.cuda_mb", vendor / 1e6, "MB", note=f"{note}: of these, for graphics cards; with torch"),
        Figure("package.client_import_s", seconds, "s", note=f"`from ppspeech import connect`, processor, {machine()}"),
    ]


def _import_seconds() -> float:
    command = [sys.executable, "-c", IMPORTED]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def _bytes(name: str) -> int:
    """Of a package's files, and of what they were compiled to."""
    files = metadata.files(name) or []
    return sum(path.stat().st_size for path in map(Path, map(str, (each.locate() for each in files))) if path.is_file())
