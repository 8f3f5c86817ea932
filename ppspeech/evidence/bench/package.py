"""What an installation takes: the wheel, all that it requires, and what a client loads before it can ask.

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
from ppspeech.licenses import licenses

TOP = Path(__file__).parents[3]

LOADED = """
import sys, time
began = time.process_time()
from ppspeech import connect
print(time.process_time() - began)
print(*sys.modules)
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
    sizes = {each.name: _bytes(each.name) for each in licenses() if each.needed_for == "core"}
    vendor = sum(_bytes(each.name) for each in licenses() if each.kind == "vendor" and each.needed_for == "core")
    runs = [_imported() for _ in range(2 if quick else 5)]
    of_client = {name: sizes[name] for name in _distributions(runs[0][1]) & set(sizes)}
    largest = sorted(of_client, key=lambda name: -of_client[name])[:5]
    note = f"files of installed packages, {sys.platform}, Python {sys.version_info.major}.{sys.version_info.minor}"
    return [
        Figure("package.wheel_kb", size / 1e3, "kB", note="without what it requires"),
        Figure("package.full_mb", sum(sizes.values()) / 1e6, "MB", note=f"{note}; {len(sizes)} packages"),
        Figure("package.cuda_mb", vendor / 1e6, "MB", note=f"{note}: of these, for graphics cards; with torch"),
        Figure("package.client_mb", sum(of_client.values()) / 1e6, "MB", note=f"{note}; most: {', '.join(largest)}"),
        Figure("package.client_import_s", min(each[0] for each in runs), "s", note=f"processor time, {machine()}"),
    ]


def _imported() -> tuple[float, set[str]]:
    """How long `from ppspeech import connect` takes, and the top-level modules it loads."""
    command = [sys.executable, "-c", LOADED]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()  # noqa: S603
    return float(said[0]), {name.partition(".")[0] for name in said[1].split()}


def _distributions(modules: set[str]) -> set[str]:
    known = metadata.packages_distributions()
    return {name.lower().replace("_", "-") for module in modules for name in known.get(module, ())}


def _bytes(name: str) -> int:
    files = metadata.files(name) or []
    return sum(path.stat().st_size for path in map(Path, map(str, (each.locate() for each in files))) if path.is_file())
