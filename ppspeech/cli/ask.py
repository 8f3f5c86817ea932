"""`ppspeech ask`: how many are so? Questions about a table or corpus, for as long as its budget lasts."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.data.tables import Columns, Predicate
    from ppspeech.privacy import KeptBudget

PART = 10  # of a budget, that a question costs by default
MOST_STATEMENTS = 3  # of a session: eight cells
USUAL_QUESTIONS = 2000
SURE = 0.95

Answered = Callable[["Predicate"], dict[str, Any]]


def ask(
    table: Annotated[str, typer.Argument(help="A CSV file, a folder with a manifest, or a known corpus or table.")],
    epsilon: Annotated[
        float | None, typer.Option(help="What all questions ever may cost together; fixed by the first of them.")
    ] = None,
    query: Annotated[list[str] | None, typer.Option(help="A question; may be given several times.")] = None,
    queries: Annotated[Path | None, typer.Option(help="A file of questions, one a line.")] = None,
    each: Annotated[
        float | None, typer.Option(help="What a question costs, or a session with --about; a tenth, or all, of it.")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(help="NAME: STATEMENT, up to three; then a session of questions about the names, paid once."),
    ] = None,
    questions: Annotated[int, typer.Option(help="So many that a session states its error for.")] = USUAL_QUESTIONS,
    who: Annotated[str, typer.Option(help="The column that says whose a row is; `speaker` where there is one.")] = "",
    rows: Annotated[bool, typer.Option("--rows", help="Count rows, and protect a row and not a person.")] = False,
    budget: Annotated[Path | None, typer.Option(help="The budget's file; by default beside the data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a question.")] = False,
) -> None:
    """Ask how many people (or rows) are so, and get a number with noise that hides each of them.

    A question compares columns with values: `age > 60 and word == "yes"`, `18 <= age < 30 or not label in ("a", "b")`.
    Each costs a part of the budget, which is kept in a file: who comes later goes on with what is left, and when
    nothing is left nothing is answered. Without --query and --queries, questions are read from standard input. People
    count once, however many rows they have. How many there are is public.

    With --about, questions combine up to three statements: `--about "old: age > 60" --about "yes: word == 'yes'"`, then
    `old and not yes`. One payment opens a session in which only hard questions are counted: those that what was
    answered before does not tell (the median mechanism). It ends with the command.

    Examples: `ppspeech ask adult --epsilon 1 --query 'age > 60 and sex == "Female"'`, `ppspeech ask survey.csv
    --queries questions.txt --json`, `ppspeech ask my_corpus --epsilon 1 --about "old: age > 60" --about "yes: word ==
    'yes'"`
    """
    from ppspeech.data.tables import parse_predicate, read_columns
    from ppspeech.privacy import KeptBudget, Relation

    scripted = [parse_predicate(text) for text in _scripted(query, queries)]
    statements = _statements(about or [])
    columns = read_columns(table, who, rows=rows)
    for statement in statements.values():
        statement.check(columns.columns)
    for question in scripted:  # all of them, before any is paid for
        question.check(statements or columns.columns, statements=bool(statements))
    relation = Relation(columns.unit, "replace")
    kept = KeptBudget(budget or columns.kept, columns.key, relation, epsilon=epsilon)
    if not as_json:
        Console().print(
            f"{columns.name}: {columns.units:,} {columns.unit}s; a budget of {kept.epsilon:g} for {relation}, of which "
            f"{round(kept.left, 6):g} is left; columns {', '.join(columns.columns)}"
        )
    answer = _session(columns, kept, statements, each, questions) if statements else _counts(columns, kept, each)
    if query or queries:
        for question in scripted:
            _show(answer(question), as_json)
        return
    for text in _typed(as_json):
        try:
            _show(answer(parse_predicate(text)), as_json)
        except PpspeechError as error:
            Console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"))


def _counts(columns: "Columns", kept: "KeptBudget", each: float | None) -> Answered:
    """Every question is paid for, and answered with noise of its own."""
    from ppspeech.privacy import Count

    cost = kept.epsilon / PART if each is None else each
    mechanism = Count(epsilon=cost, relation=kept.account.relation)

    def answer(question: "Predicate") -> dict[str, Any]:
        are_so = columns.rows_that(question)
        told = kept.release(mechanism, are_so, columns.who).value
        return {
            "question": question.text,
            "count": min(max(told, 0), columns.units),
            "within": mechanism.within(SURE),
            "epsilon": cost,
            "left": round(kept.left, 6),
        }

    return answer


def _session(
    columns: "Columns", kept: "KeptBudget", statements: "dict[str, Predicate]", each: float | None, questions: int
) -> Answered:
    """One payment, then questions about the named statements."""
    import numpy as np
    import torch

    from ppspeech.privacy import MedianMechanism

    held = np.stack([columns.units_that(statement) for statement in statements.values()])
    shifts = np.arange(len(statements))[:, None]
    mechanism = MedianMechanism(
        epsilon=(kept.left or kept.epsilon) if each is None else each,
        cells=2 ** len(statements),
        rows=columns.units,
        relation=kept.account.relation,
        questions=questions,
    )
    if mechanism.error >= 1:
        raise PpspeechError(
            f"with epsilon = {mechanism.epsilon:.3g} the answers about {columns.units:,} {columns.unit}s could be off "
            "by all of them, and nothing was paid: ask without --about, of more people, or with a larger --epsilon"
        )
    kept.spend(mechanism.event)
    session = mechanism.open(torch.from_numpy((held.astype(np.int64) << shifts).sum(axis=0)))
    cells = np.arange(mechanism.cells)
    truths = {name: (cells >> place & 1).astype(np.bool_) for place, name in enumerate(statements)}

    def answer(question: "Predicate") -> dict[str, Any]:
        told = session.ask(torch.from_numpy(question(truths)))
        return {
            "question": question.text,
            "count": round(told.value * columns.units),
            "within": math.ceil(mechanism.error * columns.units),
            "hard": told.hard,
            "hard_left": session.hard_left,
            "left": round(kept.left, 6),
        }

    return answer


def _statements(about: list[str]) -> "dict[str, Predicate]":
    from ppspeech.data.tables import parse_predicate

    if len(about) > MOST_STATEMENTS:
        raise PpspeechError(f"a session is about at most {MOST_STATEMENTS} statements, got {len(about)}")
    found = {}
    for text in about:
        name, colon, statement = text.partition(":")
        name = name.strip()
        if not colon or not name.isidentifier() or name in found:
            raise PpspeechError(f"a statement is NAME: STATEMENT, each name once, such as old: age > 60, got {text!r}")
        found[name] = parse_predicate(statement)
    return found


def _scripted(query: Iterable[str] | None, file: Path | None) -> list[str]:
    asked = list(query or ())
    if file is None:
        return asked
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PpspeechError(f"cannot read the questions {file}: {error}") from None
    return asked + [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _typed(as_json: bool) -> Iterator[str]:
    """Lines from standard input, with a prompt where somebody types them."""
    while True:
        if sys.stdin.isatty() and not as_json:
            Console().print("how many are so? ", end="")
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line


def _show(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(row))
        return
    if "hard" in row:
        paid = f"{'hard' if row['hard'] else 'easy'}, {row['hard_left']} hard ones left"
    else:
        paid = f"cost {row['epsilon']:g}, {row['left']:g} left"
    Console().print(f"{row['question']}: {row['count']:,} (95 %: within {row['within']:,}); {paid}")
