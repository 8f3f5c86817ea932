"""What all tests share: the data folder, a private cache, and seeds."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder


def pytest_configure() -> None:
    """Be like any shell: one that starts us in the background makes us ignore Ctrl-C, and our children too; have it
    back. And no width of a terminal is inherited: output goes to pipes.
    """
    os.environ.pop("COLUMNS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "tests/walk/test_walk.py",
    "tests/test_site.py",
    "tests/cli/test_every_protocol.py",
    "tests/training/audit/test_canary_runs.py",
    "tests/cli/test_cli.py",
    "tests/test_notebooks.py",
    "tests/cli",
    "tests/training",
    "tests/service",
)
"""Files and folders that take longest: begun first, so that no process works on one when the others have ended."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, the rest as it comes."""

    def rank(item: pytest.Item) -> int:
        return next((place for place, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))

    items.sort(key=rank)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora; tests that ask for it are skipped where there is none."""
    try:
        return data_folder()
    except CorpusError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests never read or fill the user's cache; all processes of a run share one of their own."""
    own = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PPSPEECH_CACHE", str((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"))
        yield
