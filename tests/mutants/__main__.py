"""`make mutants`: every mutant, one at a time, in a copy of the tree; which of them the tests notice.

    python -m tests.mutants                     all of them, some minutes
    python -m tests.mutants m08 m09             those whose names contain one of these
    python -m tests.mutants privacy             those of the privacy layer
    python -m tests.mutants --json figures.json

Exits with status 1 if one survives.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

COPIED = ("ppspeech", "tests", "pyproject.toml", "README.md", "docs", "configs", "Makefile")
LONGEST = 900  # seconds; a mutant that hangs a test has been noticed
GROUPS = {"active": "killed", "privacy": "caught"}  # and what is said of a mutant that a test notices


def check_tests(mutants: list[Mutant], root: Path) -> None:
    """Raises RuntimeError unless all tests pass on the unchanged copy: or else whatever fails would count as a kill."""
    for test in sorted({test for mutant in mutants for test in mutant.tests}):
        if run_tests((test,), root):
            raise RuntimeError(f"{test} fails where nothing was changed: mend it before mutants are judged by it")


def is_killed(mutant: Mutant, root: Path) -> bool:
    """Whether one of its tests fails on a copy of the tree with the change; the copy is as before afterwards."""
    kept = {edit.file: (root / edit.file).read_text() for edit in mutant.edits}
    try:
        for edit in mutant.edits:
            edit.apply(root)
        return run_tests(mutant.tests, root)
    finally:
        for file, source in kept.items():
            (root / file).write_text(source)


def run_tests(tests: tuple[str, ...], root: Path) -> bool:
    """Whether a test fails, or none comes to an end in time. Raises RuntimeError if pytest could not run them."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    environment = os.environ | {"PYTHONPATH": str(root)}
    try:
        ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return True
    if ran.returncode not in {0, 1}:
        raise RuntimeError(f"pytest could not run {tests}:\n{ran.stdout[-2000:]}")
    return ran.returncode == 1


def copy_tree(root: Path) -> None:
    """The tree as it is now, without what was generated."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        elif source.exists():
            shutil.copy(source, root / name)


def counted(group: str, chosen: list[Mutant], survivors: list[str]) -> list[dict[str, object]]:
    """The figures of one group, if any of it was tried."""
    own = [each.name for each in chosen if each.name.startswith("privacy ") == (group == "privacy")]
    killed = len(own) - len(set(own) & set(survivors))
    counts = {GROUPS[group]: killed, "total": len(own)} if own else {}
    return [{"metric": f"{group}.mutants.{name}", "value": n, "unit": "mutants"} for name, n in counts.items()]


def main() -> int:
    """Run, show, and write what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Which security mutants the tests kill."
    )
    parser.add_argument("names", nargs="*", help="parts of names; all mutants without any")
    parser.add_argument("--json", type=Path, help="write the figures here, one JSON object a line")
    asked = parser.parse_args()
    chosen = [each for each in MUTANTS if not asked.names or any(part in each.name for part in asked.names)]
    console, table = Console(), Table("mutant", "breaks", "tests", "")
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        check_tests(chosen, Path(folder))
        for each in chosen:
            killed = is_killed(each, Path(folder))
            survivors += [] if killed else [each.name]
            console.print(f"{'killed' if killed else 'SURVIVED'}  {each.name}", markup=False, highlight=False)
            table.add_row(each.name, each.breaks, " ".join(each.tests), "killed" if killed else "SURVIVED")
    console.print(table)
    figures = [figure for group in GROUPS for figure in counted(group, chosen, survivors)]
    lines = "".join(json.dumps(figure) + "\n" for figure in figures)
    console.print(lines, end="", markup=False, highlight=False)
    if asked.json:
        asked.json.write_text(lines)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
