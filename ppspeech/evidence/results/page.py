"""The page of results, `docs/results/index.md`, written from the store alone."""

from collections.abc import Sequence

from ppspeech.evidence.results.forms import form_of, interval_text, peer_text, ratio_text
from ppspeech.evidence.results.shown import Row, Shown, rows_of
from ppspeech.evidence.results.store import Result, Store
from ppspeech.figures import Figure

HEAD = """# Results

<!-- Written by `ppspeech report` from the files beside this page: do not edit, `ppspeech report --check` notices. -->

Every figure here was printed by the command above it, and stored with `--store`. Run the command to measure again.

Intervals are of 95 %. One over draws or trials says how much a result varies from run to run, on the same test data.
One over utterances, clips, words or rows (Clopper and Pearson) takes them for independent, which is optimistic where a
few people said them all. One over people says what others may expect. The notes below "All figures" say which it is. A
ratio above 1 means that we are better than the peer in the same run. Times are the best of a few runs unless a note
says otherwise; a figure without an interval is a single measurement, exact, or a bound, or did not vary at all.
"""
OTHERS = "Other measurements"
SPECIAL = set("&\\|*`[]$~<")
"""What Markdown and MyST would read something into."""


def written_page(store: Store, shown: Shown) -> str:
    """Markdown (MyST). Raises PpspeechError if something is to be shown that is not stored."""
    shown.check(store)
    by_command = {result.provenance.command.removesuffix(" --quick"): result for result in store}
    parts, machines = [HEAD], {_where(result) for result in store}
    if len(machines) == 1:
        parts.append(f"Measured on {machines.pop()}.\n")
        machines = set()
    for group in shown.groups:
        there = [each for each in group.commands if each.command.removesuffix(" --quick") in by_command]
        if there:
            parts.append(f"## {group.title}\n")
        for each in there:
            result = by_command.pop(each.command.removesuffix(" --quick"))
            parts += _section(result, each.about, rows_of(shown, each.command), tell_where=bool(machines))
    if by_command:
        parts.append(f"## {OTHERS}\n")
        for command, result in by_command.items():
            parts += _section(result, f"`{command}`", (), tell_where=bool(machines))
    return "\n".join(parts)


def _where(result: Result) -> str:
    told = result.provenance.versions
    names = ", ".join(f"{name} {told[name]}" for name in ("python", "torch", "numpy") if name in told)
    return f"{result.provenance.machine}" + (f"; {names}" if names else "")


def _section(result: Result, about: str, rows: Sequence[Row], *, tell_where: bool) -> list[str]:
    told = result.provenance
    said = [f"`{told.command}`", f"{told.date} in {_duration(told.seconds)}"]
    said += [f"machine load {told.load:.1f} before"] if told.load is not None and told.load >= 0.5 else []
    said += [f"on {_where(result)}"] if tell_where else []
    quick = ["**The small version of the measurement (`--quick`).**\n"] if told.quick else []
    first = [(row.what, row.form, result.by_metric[row.metric]) for row in rows if row.metric in result.by_metric]
    every = [(f"`{figure.metric}`", "", figure) for figure in result.figures]
    parts = [f"### {about}\n", f"{', '.join(said)}\n", *quick]
    if first:
        parts.append(_table(first))
    title = f"All {len(every)} figures" if len(every) > 1 else "The figure"
    return [*parts, f":::{{dropdown}} {title}", _table(every, noted=True), ":::\n"]


def _table(rows: Sequence[tuple[str, str, Figure]], *, noted: bool = False) -> str:
    """With the columns that are not empty."""
    names = ("metric" if noted else "what", "figure", "95 % interval", "peer", "ratio", "note")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for what, asked, figure in rows:
        form = form_of(figure, asked)
        told = (interval_text(figure, form), peer_text(figure, asked), ratio_text(figure), figure.note or "")
        shown = (form.text(figure.value), *(told if noted else (*told[:-1], "")))
        for column, cell in zip(columns.values(), (what, *map(plain, shown)), strict=True):
            column.append(cell)
    kept = {name: column for name, column in columns.items() if any(column)}
    lines = [list(kept), ["---"] * len(kept), *zip(*kept.values(), strict=True)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plain(text: str) -> str:
    """As it is, also where Markdown would read something into it.

    >>> print(plain("a|b *c* <d>"))
    a&#124;b &#42;c&#42; &#60;d>
    """
    return " ".join("".join(f"&#{ord(each)};" if each in SPECIAL else each for each in text).split())


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
