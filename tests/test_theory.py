"""What the theory pages state is numbered, cited by numbers that exist, and checked by tests that are there."""

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr

from ppspeech.crypto.lattice import LatticeParameters
from ppspeech.evidence.published.projections import PublishedWishart
from ppspeech.filters.certified import named_by_codes, named_in_ball
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ppspeech.privacy.convex.bounds import large_margin_head
from ppspeech.privacy.mechanisms.johnson_lindenstrauss import ProjectionEvent
from tests.test_docs import commands, unknown

TOP = Path(__file__).parents[1]
FOLDER = TOP / "docs" / "theory"
PAGES = {"release": 1, "asking": 2, "together": 3, "filters": 4}
"""Pages, and what their numbers begin with."""

KINDS = "Definition|Theorem|Lemma|Proposition|Corollary|Correction|Limit"
HEADING = re.compile(rf"^\((\w+)-(\d+)\)=\n### (\d)\.(\d+) ({KINDS}) \(.+\)$", re.MULTILINE)
ANY_HEADING = re.compile(r"^### .*$", re.MULTILINE)
LINK = re.compile(r"\[(\d\.\d+)\]\(#(\w+)-(\d+)\)")
NUMBERED = rf"(?:(?:{KINDS})s? )?\d\.\d+"
CITATION = re.compile(rf"({NUMBERED}(?:(?:,| and| to) {NUMBERED})*) (?:in|of) `?docs/theory/(\w+)\.md`?")
PATH = re.compile(r"docs/theory/(\w+)\.md")
PARTS = ("*Printed.*", "*Why it fails.*", "*What holds.*")


@dataclass(frozen=True)
class Statement:
    """One numbered statement of a page: `text` is what stands below its heading."""

    page: str
    number: str
    kind: str
    text: str


def statements(page: str, text: str) -> list[Statement]:
    """The statements of a page, in their order."""
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        Statement(page, f"{match[3]}.{match[4]}", match[5], text[match.end() : end])
        for match, end in zip(found, ends, strict=True)
    ]


@cache
def pages() -> dict[str, str]:
    """The texts of the pages, by name."""
    return {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.md"))}


@cache
def known() -> dict[tuple[str, str], str]:
    """The kind of every statement there is, by page and number."""
    return {(each.page, each.number): each.kind for name in PAGES for each in statements(name, pages()[name])}


def wrong_numbers(page: str, text: str) -> list[str]:
    """Headings without anchor, number or kind; numbers out of order, twice, or of another page."""
    found = HEADING.findall(text)
    wrong = [line for line in ANY_HEADING.findall(text) if not re.match(rf"### \d\.\d+ ({KINDS}) \(.+\)$", line)]
    if len(found) + len(wrong) < len(ANY_HEADING.findall(text)):
        wrong.append("a heading has no anchor")
    for place, (name, anchor, first, second, _) in enumerate(found, start=1):
        if (name, int(anchor), int(first), int(second)) != (page, place, PAGES[page], place):
            wrong.append(f"({name}-{anchor})= {first}.{second} stands in the place of {PAGES[page]}.{place}")
    return wrong


def named(text: str, label: str) -> list[str]:
    """What stands in code type in the paragraph that begins with a label."""
    paragraph = re.search(rf"^{label}:\s(.*?)\n(?:\n|$)", text + "\n", re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`]+)`", paragraph[1]) if paragraph else []


def wrong_parts(statement: Statement) -> list[str]:
    """Files and tests that a statement names and that are not there; parts that it lacks."""
    files, tests = named(statement.text, "In the code"), named(statement.text, "Checked by")
    wrong = [name for name in files if not (TOP / name).is_file()]
    wrong += [name for name in tests if not is_test(name)]
    wrong += [] if files else ["no file"]
    wrong += [] if tests else ["no test"]
    if statement.kind == "Correction":
        wrong += [part for part in PARTS if statement.text.count(f"\n{part} ") != 1]
    return wrong


def is_test(name: str) -> bool:
    """Whether `file::function` is a test function that exists."""
    path, _, function = name.partition("::")
    return function.startswith("test_") and path.startswith("tests/") and function in functions(path)


@cache
def functions(path: str) -> frozenset[str]:
    """The functions of a file; none if there is no such file."""
    if not (TOP / path).is_file():
        return frozenset()
    tree = ast.parse((TOP / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def wrong_citations(text: str) -> list[str]:
    """Citations and links of statements that are not there, or are of another kind; pages that do not exist."""
    flat = re.sub(r"\s+#?\s*", " ", text)
    wrong = [page for page in PATH.findall(flat) if page not in pages()]
    for cited, page in CITATION.findall(flat):
        for kind, number in re.findall(rf"(?:({KINDS})s? )?(\d\.\d+)", cited):
            if (page, number) not in known() or kind not in ("", known()[page, number]):
                wrong.append(f"{kind} {number} in {page}".strip())
    for shown, page, number in LINK.findall(text):
        if shown != f"{PAGES.get(page)}.{number}" or (page, shown) not in known():
            wrong.append(f"[{shown}](#{page}-{number})")
    return wrong


def readers() -> list[Path]:
    """Whatever may cite a statement: documents, code, tests and notebooks, but not this file."""
    every = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "CHANGELOG.md"]
    for folder, ending in (("docs", "md"), ("ppspeech", "py"), ("tests", "py"), ("notebooks", "ipynb")):
        every += (TOP / folder).rglob(f"*.{ending}")
    return [path for path in every if path != Path(__file__)]


@pytest.mark.parametrize("page", PAGES)
def test_numbers_are_unique_and_in_order(page: str) -> None:
    assert not wrong_numbers(page, pages()[page])
    assert len(statements(page, pages()[page])) >= 15


@pytest.mark.parametrize("page", PAGES)
def test_code_and_tests_of_every_statement_are_there(page: str) -> None:
    wrong = {each.number: wrong_parts(each) for each in statements(page, pages()[page])}
    assert not {number: parts for number, parts in wrong.items() if parts}


def test_every_citation_resolves() -> None:
    wrong = {str(path.relative_to(TOP)): wrong_citations(path.read_text()) for path in readers()}
    assert not {path: found for path, found in wrong.items() if found}


def test_statements_are_cited_from_the_code() -> None:
    """Or else the check above would hold for anything."""
    code = [re.sub(r"\s+#?\s*", " ", path.read_text()) for path in (TOP / "ppspeech").rglob("*.py")]
    cited = {page for text in code for _, page in CITATION.findall(text)}
    assert cited == set(PAGES)
    assert sum(len(CITATION.findall(text)) for text in code) >= 40
    assert len(LINK.findall(pages()["release"])) >= 20


def test_all_corrections_are_listed() -> None:
    listed = {number for number, _, _ in LINK.findall(pages()["index"])}
    assert {number for (_, number), kind in known().items() if kind == "Correction"} <= listed


@pytest.mark.parametrize("page", [*PAGES, "index"])
def test_commands_exist(page: str) -> None:
    for words in commands(pages()[page]):
        assert unknown(words) is None, f"{' '.join(words)}: {unknown(words)}"


def moved_in_l1(features: int, records: int = 1_000) -> float:
    """Over the noise's scale: how far a label that turns moves logistic regression of one row along the diagonal."""

    def minimizer(label: int) -> float:
        found = minimize_scalar(
            lambda t: np.logaddexp(0, -label * t) / records + t * t, bounds=(-0.01, 0.01), options={"xatol": 1e-12}
        )
        return float(found.x)

    return (minimizer(1) - minimizer(-1)) * math.sqrt(features) * records / 2


def scale_tells(units: int, weights: int) -> float:
    """delta at epsilon = 1 of noise divided by how many there are: all gradients zero, one unit more or less."""
    return ProjectionEvent(weights, (units / (units - 1)) ** 2 - 1, False, Relation("record", "add_remove")).delta(1.0)


def chosen_under_replace() -> float:
    """The loss of a choice of two by counts 30 and 0, noise as if all moved one way, one row exchanged."""
    laws = [np.exp(counts) / np.exp(counts).sum() for counts in (np.array([30.0, 0.0]), np.array([29.0, 1.0]))]
    return float(np.abs(np.log(laws[0] / laws[1])).max())


ONE = gaussian_sigma(1.0, 1e-5)
FIGURES: list[tuple[str, str, Callable[[], str]]] = [
    ("1.2", "1.6e-4", lambda: f"{ndtr(0.5 / ONE - ONE) * 1e4:.1f}e-4"),
    ("1.3", "3.73063", lambda: f"{ONE:.5f}"),
    ("1.3", "1.36e-5", lambda: f"{gaussian_delta(9.0, 9 / math.sqrt(2 * math.log(1.25e5))) * 1e5:.2f}e-5"),
    ("1.7", "320", lambda: f"{gaussian_epsilon(1e-5, 80 / ONE):.0f}"),
    ("1.7", "3,052", lambda: f"{gaussian_epsilon(1e-5, 80 / gaussian_sigma(4.0, 1e-5)):,.0f}"),
    ("1.15", "2.00ε", lambda: f"{moved_in_l1(64):.2f}ε"),
    ("1.15", "2.77ε", lambda: f"{moved_in_l1(123):.2f}ε"),
    ("1.15", "5.00ε", lambda: f"{moved_in_l1(400):.2f}ε"),
    ("1.22", "2.83", lambda: f"{large_margin_head(2, 1, 0.5).sensitivity(2.0, 'add_remove'):.2f}"),
    ("1.22", "8.94", lambda: f"{large_margin_head(5, 1, 0.5).sensitivity(2.0, 'add_remove'):.2f}"),
    ("1.24", "0.627", lambda: f"{scale_tells(48, 6_240):.3f}"),
    ("1.24", "0.287", lambda: f"{scale_tells(1_000, 10**6):.3f}"),
    ("1.24", "1.2e-6", lambda: f"{scale_tells(480, 6_240) * 1e6:.1f}e-6"),
    ("1.27", "2.000", lambda: f"{chosen_under_replace():.3f}"),
    ("1.35", "0.283", lambda: f"{PublishedWishart(epsilon=1.0, features=3).ruled_out:.3f}"),
    ("2.6", "2^-100 (1 - 2^-14)", lambda: _power(sum(2.0 ** (14 - v) * 2.0 ** (2 * v - 128) for v in range(14)))),
    ("2.20", "239", lambda: str(LatticeParameters().leakable_bits)),
    ("2.20", "1,897", lambda: f"{math.ceil(2048 * 50 / 54):,}"),
    ("3.2", "2e-4", lambda: f"{200 * ((144 + 12 / math.sqrt(1e9)) / 2 + 12**4 / 24) / 1e9 * 1e4:.0f}e-4"),
    ("3.6", "1.11", lambda: f"{math.sqrt(123) / 10:.2f}"),
    ("4.4", "is 100 at", lambda: f"is {-np.logaddexp(0, 100) + 200 * expit(100):.0f} at"),
    ("4.11", "0.0905", lambda: f"{named_in_ball(60, 10, 1.0, 4.0):.4f}"),
    ("4.11", "0.0999", lambda: f"{named_by_codes(0.68, 10, 60, 10):.4f}"),
    ("4.11", "18 of 100", lambda: f"{100 / (1 + 9 * math.exp(-0.68)):.0f} of 100"),
]
"""Numbers of the pages that no other test has: statement, as it is shown, and how it is computed."""


def _power(value: float) -> str:
    return "2^-100 (1 - 2^-14)" if value == 2.0**-100 * (1 - 2.0**-14) else str(value)


@pytest.mark.parametrize(("number", "shown", "computed"), FIGURES, ids=[f"{at}-{shown}" for at, shown, _ in FIGURES])
def test_figures_are_what_is_computed(number: str, shown: str, computed: Callable[[], str]) -> None:
    page = next(name for name, first in PAGES.items() if number.startswith(f"{first}."))
    (statement,) = [each for each in statements(page, pages()[page]) if each.number == number]
    assert shown in re.sub(r"\s+", " ", statement.text)
    assert computed() == shown


TRUE = """(release-1)=
### 1.1 Theorem (x)

In the code: `ppspeech/privacy/relation.py`.

Checked by: `tests/test_theory.py::test_lies_about_numbers_are_seen`.
"""


@pytest.mark.parametrize(
    "lie",
    [
        TRUE.replace("1.1", "1.2"),
        TRUE.replace("release-1", "release-2"),
        TRUE.replace("release-1", "asking-1"),
        TRUE.replace("(release-1)=\n", ""),
        TRUE.replace("Theorem", "Hope"),
        TRUE + TRUE,
    ],
)
def test_lies_about_numbers_are_seen(lie: str) -> None:
    assert not wrong_numbers("release", TRUE)
    assert wrong_numbers("release", lie)


@pytest.mark.parametrize(
    "lie",
    [
        TRUE.replace("relation.py", "nowhere.py"),
        TRUE.replace("test_lies_about_numbers_are_seen", "test_nothing"),
        TRUE.replace("::test_lies_about_numbers_are_seen", ""),
        TRUE.replace("::test_lies_about_numbers_are_seen", "::statements"),
        TRUE.replace("tests/test_theory.py", "tests/test_nowhere.py"),
        TRUE.replace("In the code:", "Somewhere:"),
        TRUE.replace("Checked by:", "Believed by:"),
        TRUE.replace("Theorem", "Correction"),
    ],
)
def test_lies_about_code_and_tests_are_seen(lie: str) -> None:
    assert [wrong_parts(each) for each in statements("release", TRUE)] == [[]]
    assert [bool(wrong_parts(each)) for each in statements("release", lie)] == [True]


def test_a_correction_has_three_parts() -> None:
    said = "".join(f"\n\n{part} x" for part in PARTS)
    whole = TRUE.replace("Theorem", "Correction").replace("\n\nIn", f"{said}\n\nIn")
    for text, lacks in [(whole, []), *((whole.replace(part, ""), [part]) for part in PARTS)]:
        assert [wrong_parts(each) for each in statements("release", text)] == [lacks]


@pytest.mark.parametrize(
    "lie",
    [
        "Theorem 1.99 in docs/theory/release.md",
        "Lemma 1.3 in docs/theory/release.md",
        "Theorem 1.3 in docs/theory/asking.md",
        "Theorem 1.3 in `docs/theory/nowhere.md`",
        "see Theorems 1.3 and\n    1.99 in docs/theory/release.md",
        "(docs/theory/nowhere.md)",
        "[1.99](#release-99)",
        "[1.4](#release-3)",
        "[1.3](#asking-3)",
    ],
)
def test_lies_about_citations_are_seen(lie: str) -> None:
    true = "Theorem 1.3 in docs/theory/release.md, 1.3 and 1.4 in `docs/theory/release.md`, [1.3](#release-3)"
    assert not wrong_citations(true)
    assert wrong_citations(lie)
