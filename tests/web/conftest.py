"""The client that runs in a page, under node: what these tests need, and why they are left out where it is missing."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
WEB = TOP / "web"
PAGE = TOP / "ppspeech" / "service" / "page"


@pytest.fixture(scope="session")
def node() -> str:
    """The program `node`."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("the client of the page runs under node, which is not here")
    return found


@pytest.fixture(scope="session")
def packages(node: str) -> str:
    """`node`, where what the client is built with is installed."""
    if not (WEB / "node_modules").is_dir():
        pytest.skip("web/node_modules is not here: `make web` installs what the client is built with")
    return node


@pytest.fixture(scope="session")
def built(packages: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as the build makes it now; its own tests are in `web/build/test`."""
    folder = tmp_path_factory.mktemp("built")
    run_node(packages, "build.mjs", str(folder), "--tests")
    return folder / "client.js"


def run_node(node: str, *arguments: str, given: Any = None, cwd: Path = WEB) -> str:
    done = subprocess.run(
        [node, *arguments], cwd=cwd, input=json.dumps(given), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
