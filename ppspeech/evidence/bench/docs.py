"""The documentation as a site: how many pages it has, and what its builder warns of.

Needs the source tree and the extra `docs`; --quick takes about 50 s.
"""

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.figures import Figure

TOP = Path(__file__).parents[3]


@BENCHES.register("docs")
def run(quick: bool) -> list[Figure]:
    """Build the site in a folder that goes away, as `make docs` does. `quick` is the same: there is one site."""
    del quick
    if not (TOP / "docs" / "conf.py").is_file():
        raise PpspeechError(f"the site is built from the source tree, and {TOP} is none: run it in a checkout")
    if find_spec("sphinx") is None:
        raise PpspeechError('the site is built by Sphinx: pip install "ppspeech[docs]"')
    with tempfile.TemporaryDirectory() as folder:
        pages, warnings = build(Path(folder) / "site")  # the builder leaves files beside it
    return [
        Figure("docs.pages", pages, "pages", note="documents and notebooks"),
        Figure("docs.warnings", len(warnings), "warnings", note="; ".join(warnings[:3])),
    ]


def build(folder: Path, source: Path = TOP / "docs") -> tuple[int, list[str]]:
    """Build the site of `source` into `folder`: how many documents it was made of, and a line each warning.

    Raises PpspeechError if there is no site in the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "warnings.txt"
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-w", str(told), str(source), str(folder)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise PpspeechError(f"the site could not be built: {done.stderr.strip()[-1000:]}")
    return len(list((folder / ".doctrees").rglob("*.doctree"))), warned(told.read_text())


def warned(text: str) -> list[str]:
    r"""The warnings and errors in what Sphinx wrote down, each on its line; what belongs to one may be indented below.

    >>> warned("docs/a.md:3: WARNING: no such page\n  more\ndocs/b.md:1: ERROR: x\n")
    ['docs/a.md:3: WARNING: no such page', 'docs/b.md:1: ERROR: x']
    """
    return [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL|SEVERE): ", line)]
