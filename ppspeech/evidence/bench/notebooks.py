"""How long the tutorial notebooks take, each from a fresh kernel and an empty cache of voices and features.

Needs the source tree and the extra `notebooks`; --quick takes about 10 s.
"""

import os
import tempfile
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine, run_seconds
from ppspeech.figures import Figure

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
QUICK = "new_mechanism"
CELL_SECONDS = 300  # after which a cell hangs


@BENCHES.register("notebooks")
def run(quick: bool) -> list[Figure]:
    """Run all notebooks, one after the other; their own asserts decide whether they ran well."""
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    if not paths:
        raise PpspeechError(f"the notebooks are in the source tree, and {NOTEBOOKS} has none: run it in a checkout")
    chosen = [path for path in paths if path.stem == QUICK] if quick else paths
    took = {path.stem: run_seconds(lambda path=path: execute(path)) for path in chosen}  # type: ignore[misc]
    each = ", ".join(f"{name} {seconds:.1f}" for name, seconds in took.items())
    kept = f"{len(took)} of {len(paths)} notebooks" if quick else f"{len(took)} notebooks"
    return [Figure("notebooks.seconds", sum(took.values()), "s", note=f"{kept}: {each}; empty cache, {machine()}")]


def execute(path: Path) -> None:
    """Run a notebook as it is stored; what it shows is not kept.

    Raises PpspeechError with the error of the first cell that fails, or if nothing is installed that runs notebooks.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ModuleNotFoundError as missing:
        raise PpspeechError(
            f'{missing.name} is not installed, and runs notebooks: pip install "ppspeech[notebooks]"'
        ) from None
    cells = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as cache:
        where = {"metadata": {"path": str(path.parent)}}
        quiet = ["--log-level=ERROR"]  # of the kernel itself
        client = NotebookClient(cells, timeout=CELL_SECONDS, resources=where, extra_arguments=quiet)
        try:
            client.execute(env={**os.environ, "PPSPEECH_CACHE": cache})
        except CellExecutionError as error:
            raise PpspeechError(f"{path.name} does not run: {error.ename}: {error.evalue}") from None
        except (DeadKernelError, TimeoutError) as error:
            raise PpspeechError(f"{path.name} does not run: {error}") from None
