"""Peers are extras: without them everything is listed, and what runs beside one says what to install."""

import subprocess
import sys

import pytest

BLOCKED = """
import builtins
import sys

load = builtins.__import__


def without_peers(name, where=None, *others, **named):
    # For us alone: what else is installed may use a peer where it finds one.
    ours = str((where or {}).get("__name__")).startswith("ppspeech")
    if ours and name.partition(".")[0] in {"phe", "hmmlearn", "cvxpy", "librosa", "diffprivlib"}:
        raise ModuleNotFoundError(f"no {name}", name=name.partition(".")[0])
    return load(name, where, *others, **named)


builtins.__import__ = without_peers
from ppspeech.cli import main
sys.argv[0] = "ppspeech"
main()
"""


def ppspeech(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["bench", "reproduce", "party"])
def test_everything_is_listed_without_peers(command: str) -> None:
    done = ppspeech(command)
    assert done.returncode == 0, done.stderr


def test_a_bench_without_its_peer_names_the_extra() -> None:
    done = ppspeech("bench", "features", "--quick")
    assert done.returncode == 2
    assert "librosa" in done.stderr
    assert "pip install 'ppspeech[peers]'" in " ".join(done.stderr.split())
