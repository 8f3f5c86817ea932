"""What was run here before: a folder each, with what was asked for and what came out, as the commands wrote it."""

import csv
import json
import math
import secrets
from pathlib import Path
from typing import Any

from ppspeech.errors import PpspeechError
from ppspeech.storage import atomic_write

ASKED, FIGURES, MESSAGES = "asked.json", "figures.jsonl", "messages.jsonl"
MOST_RUNS = 500


def new_run(work: Path, kind: str, asked: dict[str, Any]) -> Path:
    """A folder for a run of this kind."""
    folder = work / kind / secrets.token_hex(4)
    folder.mkdir(parents=True, mode=0o700)
    with atomic_write(folder / ASKED) as temporary:
        temporary.write_text(json.dumps(asked), "utf-8")
    return folder


def release_name(name: str, asked: dict[str, Any]) -> str:
    """What the bundle of a training is called."""
    promise = "plain" if asked["epsilon"] is None else f"eps{asked['epsilon']:g}"
    return f"{asked['recipe']}_{asked['corpus']}_{promise}_{name}"


def runs(work: Path, kind: str) -> list[dict[str, Any]]:
    """All runs of a kind, the oldest first: what was asked for, and figures by name where there are any."""
    folders = sorted((work / kind).glob("*/asked.json"), key=lambda path: path.stat().st_mtime)[-MOST_RUNS:]
    return [{"run": each.parent.name, **asked_of(each.parent), "figures": figures_of(each.parent)} for each in folders]


def asked_of(folder: Path) -> dict[str, Any]:
    """What was asked for."""
    return dict(json.loads((folder / ASKED).read_text("utf-8")))


def run_named(work: Path, kind: str, name: str) -> Path:
    """The folder of one of them. Raises PpspeechError for any other name, paths too."""
    known = {path.parent.name: path.parent for path in (work / kind).glob("*/asked.json")}
    if name not in known:
        raise PpspeechError(f"there is no run {name!r:.40}")
    return known[name]


def figures_of(folder: Path) -> dict[str, float]:
    """What a command measured: figures that it printed with --json, or the log of a training; without those of one that
    went astray, which are no numbers, and have no word in JSON.
    """
    found: dict[str, float] = {}
    if (folder / FIGURES).is_file():
        for line in (folder / FIGURES).read_text("utf-8").splitlines():
            plain = json.loads(line)
            found[plain["metric"]] = plain["value"]
    for log in sorted(folder.glob("runs/*/version_0/metrics.csv")):
        with log.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found |= {name: float(value) for name, value in row.items() if name.startswith("test_") and value}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def checkpoint_of(folder: Path) -> Path:
    """The last checkpoint of a training. Raises PpspeechError where it has none."""
    found = sorted(folder.glob("runs/*/version_0/checkpoints/*.ckpt"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise PpspeechError("this run has no checkpoint: it did not come to its end")
    return found[-1]


def keep_figures(folder: Path, lines: list[str]) -> None:
    """Of what commands printed with --json, the figures."""
    kept = [line for line in lines if line.startswith('{"metric"')]
    with atomic_write(folder / FIGURES) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in kept), "utf-8")
