"""The house rules of imports: which room may know which, and that the front door is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ppspeech"

FLOORS = (
    {"cli", "studio"},
    {"evidence"},
    {"training", "service"},
    {"bundle", "protocols"},
    {"filters"},
    {"data", "models", "privacy"},
    {"audio", "crypto", "network"},
)
"""From the top down: a room may import rooms on lower floors, and nothing above or beside it."""

EVIDENCE_IS_FOR = {"cli"}
"""No product room imports what only shows that it works."""

WITHOUT_TORCH = {"crypto", "network"}


def rooms() -> list[str]:
    return sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists())


def is_opened(node: ast.ImportFrom, name: str) -> bool:
    """Whether `from room import name` takes a file or folder instead of what the door offers under that name."""
    if node.module == "ppspeech":
        return True
    door = PACKAGE.parent.joinpath(*(node.module or "").split("."), "__init__.py")
    return (
        door.is_file() and f'"{name}",' not in door.read_text().replace("]", ",") and is_module(f"{node.module}.{name}")
    )


def imports(source: str, package: str) -> set[str]:
    """Every module named in an import statement, those inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            found.add(base + (node.module or ""))
            found |= {f"{base}{node.module}.{alias.name}" for alias in node.names if is_opened(node, alias.name)}
    return found


def floor(room: str) -> int:
    return next(i for i, level in enumerate(FLOORS) if room in level)


def is_module(name: str) -> bool:
    """Whether a dotted name is a file of the package, not a folder: only folders are doors."""
    return PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py").is_file()


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
            if other == room:
                continue
            if floor(other) <= floor(room):
                wrong.append(f"{name} imports {module}: imports go down")
            if other == "evidence" and room not in EVIDENCE_IS_FOR:
                wrong.append(f"{name} imports {module}: no product room knows the evidence")
            if is_module(module):
                wrong.append(f"{name} imports {module}: enter by the door {module.rpartition('.')[0]}")
    return wrong


@pytest.mark.parametrize("room", rooms())
def test_imports_go_down_and_through_doors(room: str) -> None:
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
        ("protocols", "from ppspeech.bundle import Bundle"),
        ("training", "from ppspeech.evidence.published import large_margin"),
        ("training", "from ppspeech.models.hmm.bank import HiddenMarkovModel"),
        ("training", "from ppspeech.models.hmm import bank"),
        ("cli", "from ppspeech.storage import atomic_write\nfrom ppspeech.audio.mfcc import Mfcc"),
        ("models", "def f():\n    import ppspeech.privacy.mechanisms.laplace"),
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
