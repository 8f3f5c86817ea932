"""The house rules of imports: which room may know which, and that the front door is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ppspeech"

FLOORS = (
    {"cli", "bench", "reproduce"},
    {"training", "encrypted"},
    {"protocols", "bundle"},
    {"models", "filters", "privacy", "data"},
    {"network", "audio", "crypto"},
)
"""From the top down: a room may import rooms on lower floors, and nothing above."""

SAME_FLOOR = {("cli", "bench"), ("cli", "reproduce"), ("reproduce", "bench")}
SAME_FLOOR |= {("filters", "models"), ("filters", "privacy")}
"""Neighbours that may be imported: the command line fronts the other two; attackers on filters are models, and noise
after a filter is a mechanism."""

WITHOUT_TORCH = {"crypto", "network"}


def rooms() -> list[str]:
    return sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists())


def imports(source: str, package: str) -> set[str]:
    """Every module named in an import statement, those inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            found.add(base + (node.module or ""))
            found |= {f"{base}{node.module}.{alias.name}" for alias in node.names if node.module == "ppspeech"}
    return found


def floor(room: str) -> int:
    return next(i for i, level in enumerate(FLOORS) if room in level)


def violations(room: str, sources: dict[str, str]) -> list[str]:
    wrong = []
    for name, source in sources.items():
        for module in imports(source, f"ppspeech.{room}"):
            parts = module.split(".")
            if parts[0] == "torch" and room in WITHOUT_TORCH:
                wrong.append(f"{name} imports {module}: {room} knows no torch")
            if parts[0] != "ppspeech" or len(parts) < 2 or not any(parts[1] in level for level in FLOORS):
                continue
            other = parts[1]
            if other != room and floor(other) <= floor(room) and (room, other) not in SAME_FLOOR:
                wrong.append(f"{name} imports {module}")
    return wrong


@pytest.mark.parametrize("room", rooms())
def test_imports_go_down(room: str) -> None:
    assert any(room in level for level in FLOORS), f"{room} is not in the plan of the house"
    sources = {str(p.relative_to(PACKAGE)): p.read_text() for p in (PACKAGE / room).rglob("*.py")}
    assert not violations(room, sources)


def test_root_modules_know_no_room() -> None:
    for path in set(PACKAGE.glob("*.py")) - {PACKAGE / "__main__.py"}:
        known = {m.split(".")[1] for m in imports(path.read_text(), "ppspeech") if m.startswith("ppspeech.")}
        assert not known & set().union(*FLOORS), path.name


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("audio", "from ppspeech.data import Corpus"),
        ("models", "def f():\n    import ppspeech.privacy.laplace"),
        ("privacy", "from ppspeech import models"),
        ("data", "from ..training import x"),
        ("crypto", "import torch.nn"),
    ],
)
def test_the_check_sees_a_wrong_import(room: str, source: str) -> None:
    assert violations(room, {"made_up.py": source})


def test_importing_the_package_is_light() -> None:
    program = (
        "import sys, time\n"
        "start = time.perf_counter()\n"
        "import ppspeech\n"
        "took = time.perf_counter() - start\n"
        "heavy = {'torch', 'torchaudio', 'tenseal', 'opacus', 'numpy', 'pytorch_lightning'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert took < 0.3, took\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_help_does_not_load_torch() -> None:
    program = "import sys\nimport ppspeech.cli\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
