"""The house rules: which room may know which, how full a folder may be, one name for one idea, a light front door."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ppspeech"

FLOORS = (
    {"cli"},
    {"studio"},
    {"evidence"},
    {"training", "service"},
    {"bundle", "protocols"},
    {"filters"},
    {"data", "models", "privacy"},
    {"audio", "crypto", "network", "cluster"},
)
"""From the top down: a room may import rooms on lower floors, and nothing above or beside it."""

EVIDENCE_IS_FOR = {"cli"}
"""No product room imports what only shows that it works."""

WITHOUT_TORCH = {"crypto", "network", "cluster"}

PEERS = {"phe", "hmmlearn", "cvxpy", "librosa", "diffprivlib", "opendp"}
"""Packages of the extras `peers` and `dev`: only evidence and tests run beside them."""


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
            if parts[0] in PEERS and room != "evidence":
                wrong.append(f"{name} imports {module}: peers are for the evidence")
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
    for path in set(PACKAGE.glob("*.py")) - {PACKAGE / "__main__.py", PACKAGE / "__init__.py"}:
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
        ("crypto", "import phe"),
    ],
)
def test_the_check_sees_a_wrong_import(room: str, source: str) -> None:
    assert violations(room, {"made_up.py": source})


def test_importing_the_package_is_light() -> None:
    program = (
        "import sys, ppspeech\n"
        "heavy = {'torch', 'torchaudio', 'tenseal', 'opacus', 'numpy', 'scipy', 'pytorch_lightning', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "rooms = [name for name in sys.modules if name.startswith('ppspeech.')]\n"
        "assert len(rooms) <= 3, rooms\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_rooms_are_opened_when_they_are_asked_for() -> None:
    """All of them, and nothing before; in a process of its own, for any other has opened some."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli", "evidence", "studio"}
    program = (
        "import sys, ppspeech\n"
        "assert 'ppspeech.privacy' not in sys.modules\n"
        f"for room in {sorted(rooms)}:\n"
        "    assert getattr(ppspeech, room).__name__ == 'ppspeech.' + room\n"
        "assert not hasattr(ppspeech, 'attic')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("given", "holds"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_waiting_threads_sleep_unless_told_otherwise(given: dict[str, str], holds: str) -> None:
    """OpenMP reads its settings when torch loads it: the package sets them before, also for `train.py`."""
    program = (
        "import sys, os, ppspeech.cli\n"
        "assert 'torch' not in sys.modules\n"
        f"assert os.environ['OMP_WAIT_POLICY'] == {holds!r}\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment | given)


def test_help_does_not_load_torch() -> None:
    program = "import sys\nimport ppspeech.cli\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# One name for one idea.


@cache
def trees() -> dict[str, ast.Module]:
    """The parsed sources of the package."""
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def wrong_registries(name: str, tree: ast.Module) -> list[str]:
    """Registries that are not the one in `ppspeech/registry.py`.

    A function called register may only enter something in a `Registry`; a class may not have such a method; and a
    module does not begin with an empty dict for others to fill.
    """
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("register"):
            body = ast.unparse(node)
            if ".register(" not in body and ".enter(" not in body:
                wrong.append(f"{name}: {node.name} keeps a list of its own")
        if isinstance(node, ast.ClassDef) and "Registry" in node.name:
            wrong.append(f"{name}: {node.name} is another registry")
    given = (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    empty = [node for node in given if isinstance(node.value, ast.Dict) and not node.value.keys]
    return wrong + [f"{name}: {ast.unparse(node)} is filled by others" for node in empty]


@pytest.mark.parametrize(
    "source",
    [
        "KNOWN: dict[str, int] = {}",
        "def register_thing(name):\n    def add(thing):\n        known[name] = thing\n    return add",
        "class Things:\n    def register(self, name):\n        self.known[name] = 1",
        "class ThingRegistry:\n    pass",
    ],
)
def test_the_check_sees_another_registry(source: str) -> None:
    assert wrong_registries("made_up.py", ast.parse(source))


ARRAYS = {"Reals", "Residues", "Whole", "Bits", "Bytes", "Words"}
"""The array types of `ppspeech/arrays.py`, and the old name of one."""


def aliases(tree: ast.Module) -> dict[str, str]:
    """Names that a module gives to array types."""
    given = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None]
    found = {ast.unparse(getattr(n, "target", None) or n.targets[0]): ast.unparse(n.value) for n in given}  # type: ignore
    return {name: value for name, value in found.items() if re.match(r"(np\.)?(NDArray|ndarray)\b", value)}


def test_array_types_are_defined_once() -> None:
    known = aliases(trees()["arrays.py"])
    assert known.keys() <= ARRAYS
    for name, tree in trees().items():
        if name != "arrays.py":
            again = {own: value for own, value in aliases(tree).items() if own in ARRAYS or value in known.values()}
            assert not again, f"{name} defines {again} again: import it from ppspeech.arrays"


IZE = (
    "anonym|author|categor|central|character|discret|emphas|equal|factor|final|general|initial|linear|local|maxim|memor|"
    "minim|normal|optim|organ|parameter|penal|personal|polar|quant|random|real|recogn|regular|serial|special|stabil|"
    "standard|summar|symmetr|synthes|token|util|vector|visual"
)
BRITISH = re.compile(
    rf"({IZE})is(e|ing|ation)|analys(e|ing)(?!s)|colour|favour|behaviour|neighbour|honour|enrol(?!l)|labell|modell|"
    r"licence|centre|(?<!s)metre|fibre|grey|defence|judgement|whilst",
    re.IGNORECASE,
)
"""Spellings that a name does not have: names are American, as Lightning's are."""


def names_given(tree: ast.Module) -> set[str]:
    """What a module calls its own: functions, classes, arguments, variables, attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


@pytest.mark.parametrize("name", ["normalised", "ENROLMENT", "colour", "recogniser", "neighbours", "personalise"])
def test_the_check_sees_british_names(name: str) -> None:
    assert BRITISH.search(name)


@pytest.mark.parametrize(
    "name", ["noise", "enrollment", "precise", "symmetric", "optimistic", "parameters", "analysis"]
)
def test_the_check_leaves_american_names_alone(name: str) -> None:
    assert not BRITISH.search(name)


SOURCES = ("ppspeech", "tests", "configs", "docs", "notebooks", "README.md", "CONTRIBUTING.md", "train.py", "Makefile")


def test_papers_are_cited_by_author_and_year() -> None:
    top = PACKAGE.parent
    texts = [path for each in SOURCES for path in ([top / each] if (top / each).is_file() else (top / each).rglob("*"))]
    number = re.compile("seed" + r"[ _-]?0\d", re.IGNORECASE)
    for path in texts:
        if path.suffix in {".py", ".md", ".yaml", ".ipynb", ".json", ""} and path.is_file():
            assert not number.search(path.read_text()), f"{path.relative_to(top)} cites a paper by a number of ours"


def units(tree: ast.Module) -> set[object]:
    """The units that figures are given in."""
    found: set[object] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Figure":
            given = node.args[2:3] + [word.value for word in node.keywords if word.arg == "unit"]
            found |= {unit.value for unit in given if isinstance(unit, ast.Constant)}
    return found


def test_accuracies_and_errors_are_fractions() -> None:
    for name, tree in trees().items():
        assert not units(tree) & {"%", "points", "percent"}, f"{name} gives a percentage: figures are fractions"
    assert units(ast.parse("Figure('a', 1, '%')\nFigure('b', 2, unit='s')")) == {"%", "s"}


CATALOGS = {"cli", "data/corpora", "privacy/mechanisms", "evidence/bench", "evidence/experiments"}
"""Folders of one file a thing, which may hold more than sixteen."""


def test_folders_of_parts_are_small() -> None:
    for folder in [PACKAGE, *(path.parent for path in PACKAGE.rglob("__init__.py"))]:
        name = folder.relative_to(PACKAGE).as_posix()
        parts = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
        assert len(parts) <= 16 or name in CATALOGS, f"{name} holds {len(parts)} files: {', '.join(parts)}"


CELL = re.compile(r".(Plan|Job|Offer|Client|Answer)$")  # of one task: what has no name before it is of all


def test_few_classes_are_cells_of_a_table() -> None:
    """{words, speakers, galleries} x {plan, job, offer, client, answer} is not a design: tasks are parameters."""
    cells = [
        f"{path}: {node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and CELL.search(node.name)
    ]
    assert len(cells) <= 9, cells


def test_there_is_one_registry() -> None:
    found = [each for name, tree in trees().items() if name != "registry.py" for each in wrong_registries(name, tree)]
    assert not found


def test_names_are_american() -> None:
    british = {
        f"{path}: {name}"
        for path, tree in trees().items()
        for name in names_given(tree) | {path}
        if BRITISH.search(name)
    }
    assert not british


def test_doors_that_open_on_demand_offer_what_they_say() -> None:
    """Every name can be had, and none is that of a file, which would stand in its way once it is imported."""
    opened = [path for path in PACKAGE.rglob("__init__.py") if "__getattr__ = door(__name__)" in path.read_text()]
    assert len(opened) >= 8
    for path in opened:
        room = import_module(".".join(path.parent.relative_to(PACKAGE.parent).parts))
        beside = {each.stem for each in path.parent.iterdir()}
        assert not beside & set(room.__all__), f"{room.__name__}: {beside & set(room.__all__)}"
        for name in room.__all__:
            assert getattr(room, name) is not None, name
        with pytest.raises(AttributeError, match="no 'nonesuch'"):
            room.nonesuch  # noqa: B018
