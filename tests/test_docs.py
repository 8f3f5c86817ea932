"""What the documents say is true: imports work, files are there, commands and options exist, examples run."""

import doctest
import importlib
import itertools
import math
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from scipy.stats import norm

from ppspeech.bundle.statement import in_words
from ppspeech.cli import app
from ppspeech.cli.train import STAGES, shipped_recipes
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.privacy import Guarantee, Relation, gaussian_sigma
from ppspeech.protocols import PROTOCOLS, Kind
from ppspeech.training.together import terms_of

TOP = Path(__file__).parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]
DOCUMENTS += sorted(str(path.relative_to(TOP)) for path in (TOP / "docs").rglob("*.md"))
FENCE = re.compile(r"^ *```([^\n`]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
PURE = Guarantee(kind="pure", epsilon=1.0, relation=Relation("speaker", "add_remove"))
SPAN = re.compile(r"`([^`]+)`")
DOOR = re.compile(r"`(ppspeech(?:\.\w+)*)`(?: \(([^)]*)\))?")
FOLDERS = "ppspeech|tests|configs|docs|notebooks"


def spans(text: str) -> list[str]:
    """What stands in code type within sentences and tables, be it broken over two lines."""
    paragraphs = re.split(r"\n\s*\n", FENCE.sub("", text))
    return [" ".join(span.split()) for each in paragraphs for span in SPAN.findall(each)]


def blocks(text: str, language: str) -> list[str]:
    """Code blocks in one language."""
    return [code for kind, code in FENCE.findall(text) if kind == language]


def imported(text: str) -> list[str]:
    """The import statements of Python blocks and spans."""
    code = "\n".join([*blocks(text, "python"), *spans(text)])
    return re.findall(r"^(?:from ppspeech[\w.]* import [\w, ]+|import ppspeech[\w.]*)$", code, re.MULTILINE)


def offered(text: str) -> list[tuple[str, str]]:
    """Doors named in sentences, each with the names said to be behind it: `ppspeech.room` (…, `Name`)."""
    found = []
    for door, behind in DOOR.findall(FENCE.sub("", text)):
        found.append((door, ""))
        found += [(door, name) for name in SPAN.findall(behind) if name.isidentifier()]
    return found


def files(text: str) -> list[str]:
    """Paths of the project."""
    every = spans(text) + [word for code in blocks(text, "console") for word in code.split()]
    words = [re.split("#|::", word.rstrip(".,;:)"))[0] for each in every for word in each.split()]
    linked = re.findall(r"\]\(((?!http)[^)#]+)(?:#[^)]*)?\)", text)
    named = [word for word in words if re.match(rf"({FOLDERS})/", word) or re.fullmatch(r"[\w/]+\.py", word)]
    return [word for word in named if not re.search(r"[*{…]", word)] + linked


def commands(text: str) -> list[list[str]]:
    """Command lines of `ppspeech`, word by word."""
    lines = [line.strip() for code in blocks(text, "console") for line in code.splitlines()]
    lines += [part for span in spans(text) for part in re.split(r", (?=ppspeech )", span)]
    split = [
        shlex.split(line.split("#")[0].replace("…", ""))
        for line in lines
        if re.match(r"(\.venv/bin/)?ppspeech [a-z-]+", line)
    ]
    return [words[1:] for words in split]


def unknown(words: list[str]) -> str | None:
    """What the command line would not take: a command, or an option of one."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return words[0]
        command, words = command.commands[words[0]], words[1:]
    if command.name == "train" and "words" in {parameter.name for parameter in command.params}:
        # A recipe; what follows belongs to Lightning's command line.
        recipe = next((word for word in words if word not in STAGES), "RECIPE")
        return None if recipe in {*shipped_recipes(), "RECIPE"} else recipe
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    if not command.context_settings.get("allow_interspersed_args", True):  # what follows belongs to a recipe
        words = list(itertools.takewhile(lambda word: word.startswith("-"), words))
    return next((word for word in words if word.startswith("--") and word not in options), None)


def resolve(door: str, name: str) -> None:
    """Import a door and take a name from it, as a reader would.

    Raises:
        ImportError: if there is no such door or name.
    """
    try:
        module: Any = importlib.import_module(door)
    except ImportError:
        room, _, last = door.rpartition(".")
        module = getattr(importlib.import_module(room), last, None)
        if module is None:
            raise
    if name and not hasattr(module, name):
        raise ImportError(f"{door} has no {name}")


def run_imports(text: str) -> None:
    """Everything that a document imports or says can be imported."""
    for statement in imported(text):
        exec(statement, {})
    for door, name in offered(text):
        resolve(door, name)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_imports_work(document: str) -> None:
    run_imports((TOP / document).read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_are_there(document: str) -> None:
    places = TOP, (TOP / document).parent, TOP / "ppspeech"
    named = files((TOP / document).read_text())
    assert not [name for name in named if not any((place / name).exists() for place in places)]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_options_exist(document: str) -> None:
    for words in commands((TOP / document).read_text()):
        assert unknown(words) is None, f"{' '.join(words)}: {unknown(words)}"


def failed_examples(name: str, text: str) -> list[str]:
    """What goes wrong in the examples of a document, which are one session."""
    session = "\n".join(blocks(text, "pycon"))
    example = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(example, out=told.append)
    return told


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if "```pycon" in (TOP / name).read_text()])
def test_examples_run(document: str) -> None:
    text = (TOP / document).read_text()
    assert ">>> " in "".join(blocks(text, "pycon"))
    assert not failed_examples(document, text)


def test_a_wrong_example_is_seen() -> None:
    assert not failed_examples("truth", "```pycon\n>>> 1 + 1\n2\n\n```")
    assert failed_examples("lie", "```pycon\n>>> 1 + 1\n3\n\n```")


def trade_off(epsilon: float, delta: float = 1e-5, false_positives: float = 0.01) -> str:
    """A row of the table in docs/guides/epsilon.md: what (epsilon, delta) allows, what one Gaussian release gives."""
    right = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    found = min(math.exp(epsilon) * false_positives + delta, 1 - math.exp(-epsilon) * (1 - delta - false_positives))
    shift = 1 / gaussian_sigma(epsilon, delta)
    gaussian = norm.cdf(shift / 2), norm.cdf(norm.ppf(false_positives) + shift)
    return f"| {epsilon:g} | " + " | ".join(f"{100 * rate:.1f} %" for rate in (right, found, *gaussian)) + " |"


def test_what_an_epsilon_means_is_computed() -> None:
    page = (TOP / "docs" / "guides" / "epsilon.md").read_text()
    shown = page.split("<!-- trade-off -->\n")[1].split("\n<!-- end -->")[0]
    rows = [trade_off(epsilon) for epsilon in (0.1, 0.5, 1, 2, 4, 8)]
    assert shown.splitlines()[2:] == rows, "write this instead:\n" + "\n".join(rows)
    assert "is right at most 73.1 %" in in_words(PURE)  # the second column, as bundles say it
    assert rows[2].startswith("| 1 | 73.1 %")


def test_the_documents_are_read() -> None:
    """Or else the checks above would hold for anything."""
    assert len(imported((TOP / "README.md").read_text())) >= 1
    text = "\n".join((TOP / document).read_text() for document in DOCUMENTS)
    assert len({door for door, _ in offered(text)}) >= 10
    assert len([name for _, name in offered(text) if name]) >= 4
    assert len(files(text)) >= 6
    assert len({words[0] for words in commands(text)}) >= 15


@pytest.mark.parametrize(
    "lie",
    [
        "```python\nfrom ppspeech.audio import Nothing\n```",
        "`from ppspeech.nowhere import Mfcc`",
        "`ppspeech.audio` (`Mfcc`, `Nothing`)",
        "`ppspeech.nowhere` (things)",
    ],
)
def test_a_wrong_import_is_seen(lie: str) -> None:
    with pytest.raises(ImportError):
        run_imports(lie)


@pytest.mark.parametrize(
    "lie", ["ppspeech sing clip.wav", "ppspeech bench --louder", "ppspeech filter sing", "ppspeech train sing"]
)
def test_a_wrong_command_is_seen(lie: str) -> None:
    assert [unknown(words) for words in commands(f"`ppspeech {lie}`")] != [None]


def test_a_missing_file_is_seen() -> None:
    assert files("`ppspeech/nowhere.py`, [x](docs/no.png)") == ["ppspeech/nowhere.py", "docs/no.png"]


def test_extras_that_are_named_are_there() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    texts = [(TOP / name).read_text() for name in DOCUMENTS]
    texts += [path.read_text() for path in (TOP / "ppspeech").rglob("*.py")]
    named = {extra for text in texts for extra in re.findall(r"ppspeech\[(\w+)\]", text)}
    assert {"notebooks", "peers"} <= named <= set(project["optional-dependencies"])


def test_terms_in_documents_can_be_agreed_on() -> None:
    """The example of a group's file has terms that its protocol takes."""
    (example,) = blocks((TOP / "docs" / "guides" / "how_to.md").read_text(), "yaml")
    group = yaml.safe_load(example)
    assert {party["role"] for party in group["parties"].values()} == set(PROTOCOLS[group["protocol"]].parties)
    assert group["hub"] in group["parties"]
    terms_of(group["protocol"], group["params"])


def test_the_unit_of_systemd_starts_what_there_is() -> None:
    (unit,) = blocks((TOP / "docs" / "guides" / "deploy.md").read_text(), "ini")
    (start,) = re.findall(r"^ExecStart=\S*/ppspeech (.*)$", unit, re.MULTILINE)
    assert unknown(shlex.split(start)) is None


def test_threats_are_told_of_every_command_that_meets_others() -> None:
    text = (TOP / "docs" / "guides" / "threats.md").read_text()
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        options = {option for parameter in command.params for option in parameter.opts}
        if options & {"--server", "--connect", "--out"}:
            assert f"ppspeech {name}" in text, name


# docs/reference/architecture.md


ARCHITECTURE = TOP / "docs" / "reference" / "architecture.md"


MESSAGES = {kind.name: kind.meaning for kinds in (CryptoKind, Kind) for kind in kinds}


def received() -> str:
    """The table of what messages are to whoever receives them, by the folder whose programs send them."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted((TOP / "ppspeech").rglob("*.py")):
        room, *rest = path.relative_to(TOP / "ppspeech").parts
        if room in {"crypto", "protocols"}:
            where = found.setdefault(f"{room}/{rest[0]}", {})
            names = re.findall(r"\bKind\.([A-Z_]+)\b", path.read_text())
            where |= dict.fromkeys(MESSAGES[name] for name in names)
    rows = [f"| `{where}` | {'; '.join(meanings)} |" for where, meanings in found.items() if meanings]
    return "\n".join(["| in | a party receives |", "|---|---|", *rows])


def test_who_sees_what_is_what_the_messages_say() -> None:
    shown = ARCHITECTURE.read_text().split("<!-- received -->\n")[1].split("\n<!-- end -->")[0]
    assert shown == received(), f"write this instead:\n{received()}"
    assert "masked ciphertexts" in shown


def test_walks_are_short() -> None:
    """Ten files each, two where a step is two small ones."""
    section = ARCHITECTURE.read_text().split("## Six walks")[1].split("\n## ")[0]
    walks = re.split(r"^\*\*", section, flags=re.MULTILINE)[1:]
    assert len(walks) == 6
    for walk in walks:
        steps = re.findall(r"^\d+\. ", walk, re.MULTILINE)
        spine = re.findall(r"`([\w/]+\.py)`", walk)
        assert 5 <= len(steps) <= len(spine) <= 10, f"{walk.splitlines()[0]}: {len(steps)} steps, {len(spine)} files"


def test_it_is_short() -> None:
    """Two pages of about seventy lines, tables and pictures apart."""
    prose = [line for line in FENCE.sub("", ARCHITECTURE.read_text()).splitlines() if line and not line.startswith("|")]
    assert len(prose) <= 110
