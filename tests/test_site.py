"""The documentation is a site that builds without a warning, without a network, and says what the package says."""

import doctest
import html
import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from sphinx.util.inventory import InventoryFile

from ppspeech.cli import app
from ppspeech.cli.party import protocols
from ppspeech.evidence.bench.docs import build, warned

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, list[str]]:
    folder = tmp_path_factory.mktemp("documents") / "site"
    return folder, *build(folder)


@pytest.fixture
def made() -> Iterator[str]:
    """The modules that write pages, where Sphinx finds them."""
    sys.path.insert(0, str(DOCS))
    yield "made"
    sys.path.remove(str(DOCS))


def test_it_builds_without_a_warning(site: tuple[Path, int, list[str]]) -> None:
    _, pages, warnings = site
    assert not warnings, "\n".join(warnings)
    sources = [*DOCS.rglob("*.md"), *(TOP / "notebooks").glob("*.ipynb")]
    assert pages == len(sources)


def test_a_warning_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "docs"
    shutil.copytree(DOCS / "made", source / "made")
    shutil.copytree(DOCS / "_static", source / "_static")
    shutil.copy(DOCS / "conf.py", source)
    (source / "index.md").write_text("# Start\n\n[no such page](nowhere.md)\n")
    pages, warnings = build(tmp_path / "site", source)
    assert pages == 1
    assert [line for line in warnings if "nowhere.md" in line]
    assert warned("") == []


def test_a_browser_fetches_nothing(site: tuple[Path, int, list[str]]) -> None:
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"((?:https?:)?//[^\"]+)\"")
    assert loaded.findall('<script src="https://elsewhere/x.js"></script>')
    seen = 0
    for page in site[0].rglob("*.html"):
        assert not loaded.findall(page.read_text()), page
        seen += 1
    assert seen >= site[1]
    for style in site[0].rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import\s+[\"'](https?:)?//", style.read_text()), style


def documented(folder: Path) -> set[str]:
    found = InventoryFile.loads((folder / "objects.inv").read_bytes(), uri="")
    return {name for kind, names in found.data.items() if kind.startswith("py:") for name in names}


def test_every_door_shows_what_it_offers_and_nothing_else(site: tuple[Path, int, list[str]], made: str) -> None:
    doors = importlib.import_module(f"{made}.doors").doors()
    known = documented(site[0])
    for door in doors:
        offered = {f"{door}.{name}" for name in importlib.import_module(door).__all__ if not name.startswith("__")}
        beneath = {name for name in known if name.rpartition(".")[0] == door and name not in doors}
        assert offered == beneath, door


def test_the_doors_of_the_readme_and_all_rooms_have_a_page(made: str) -> None:
    doors = set(importlib.import_module(f"{made}.doors").doors())
    rooms = {f"ppspeech.{path.parent.name}" for path in (TOP / "ppspeech").glob("*/__init__.py")}
    assert rooms - {"ppspeech.cli", "ppspeech.evidence", "ppspeech.studio"} <= doors
    readme = set(re.findall(r"`(ppspeech(?:\.[a-z_]+)+)`", (TOP / "docs/reference/api/index.md").read_text()))
    assert {name for name in readme if (TOP / name.replace(".", "/") / "__init__.py").is_file()} <= doors


def text_of(page: Path) -> str:
    """What a reader sees of a page, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


def test_threats_are_those_that_protocols_state(site: tuple[Path, int, list[str]], made: str) -> None:
    statements = importlib.import_module(f"{made}.statements")
    shown = text_of(site[0] / "guides" / "threats.html")
    assert len(statements.listed()) == len(protocols()) >= 40
    for protocol in statements.listed():
        clauses = statements.split(protocol.assumptions)
        assert sum(len(clause) + 2 for clause in clauses) == len(protocol.assumptions) + 2, "a clause is lost"
        for said in (protocol.name, protocol.functionality, protocol.leakage, *clauses, *protocol.parties):
            assert " ".join(said.split()) in shown, f"{protocol.name}: {said}"


def test_every_command_is_shown_with_its_options(site: tuple[Path, int, list[str]]) -> None:
    shown = text_of(site[0] / "reference" / "commands.html")
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", {"": command})
        for word, each in below.items():
            assert f"ppspeech {name} {word}".strip() in shown
            for option in (opt for parameter in each.params for opt in parameter.opts if opt.startswith("--")):
                assert option in shown or option == "--help", f"{name} {word} {option}"


@pytest.mark.parametrize("module", ["doors", "statements"])
def test_examples_of_what_writes_pages(module: str, made: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"{made}.{module}"))
    assert tried > 0
    assert failed == 0
