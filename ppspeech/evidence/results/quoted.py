"""Figures that documents quote, between marks that readers do not see: what stands there comes from the store.

`<!-- figure: fsdd.hmm.accuracy percent -->99.0 %<!-- end -->`: after the metric may stand which part of the figure is
meant (`value`, the default, `interval`, `low`, `high`, `peer`, `ratio`), and a form as in `shown.yaml`. What begins
with `=` follows from figures by arithmetic (`computed`). What is in code type or a code block is an example, and stays.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ppspeech.errors import PpspeechError
from ppspeech.evidence.results.computed import computed
from ppspeech.evidence.results.forms import Form, form_of, interval_text, ratio_text
from ppspeech.evidence.results.store import Store
from ppspeech.figures import Figure

BEGIN = "<!-- figure:"
MARK = re.compile(r"<!-- figure: ([^\n<>]*?) -->([^\n]*?)<!-- end -->")
CODE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1|`[^`\n]+`", re.DOTALL | re.MULTILINE)

PARTS: dict[str, Callable[[Figure, Form], str]] = {
    "value": lambda figure, form: form.text(figure.value),
    "interval": interval_text,
    "low": lambda figure, form: "" if figure.low is None else form.text(figure.low),
    "high": lambda figure, form: "" if figure.high is None else form.text(figure.high),
    "peer": lambda figure, form: "" if figure.peer_value is None else form.text(figure.peer_value),
    "ratio": lambda figure, _: ratio_text(figure),
}


@dataclass(frozen=True)
class Quote:
    """A quoted figure: where its text begins and ends, on which line, what is asked for, and what stands there."""

    start: int
    end: int
    line: int
    asked: str
    text: str

    def wanted(self, store: Store) -> str:
        """What should stand there. Raises PpspeechError where the store has no answer."""
        if self.asked.startswith("="):
            result = computed(self.asked, store)
            return form_of(result).text(result.value)
        metric, *words = self.asked.split() or [""]
        part = words.pop(0) if words and words[0] in PARTS else "value"
        if len(words) > 1:
            raise PpspeechError(f"a mark has a metric, one of {', '.join(PARTS)}, and a form; got {self.asked!r:.120}")
        _, figure = store.find(metric)
        found = PARTS[part](figure, form_of(figure, *words))
        if not found:
            raise PpspeechError(f"{metric} has no {part}")
        return found


def quotes(text: str) -> list[Quote]:
    """All of a document. Raises PpspeechError for a mark that is not closed on its line."""
    masked = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    found = [
        Quote(each.start(2), each.end(2), 1 + masked.count("\n", 0, each.start()), each[1].strip(), each[2])
        for each in MARK.finditer(masked)
    ]
    begun = [1 + masked.count("\n", 0, each.start()) for each in re.finditer(re.escape(BEGIN), masked)]
    nested = [quote.line for quote in found if BEGIN in quote.text]
    if len(begun) != len(found) or nested:
        lines = nested or sorted(set(begun) - {quote.line for quote in found}) or begun
        raise PpspeechError(f"line {lines[0]}: a mark `{BEGIN} METRIC -->` ends with `<!-- end -->` on its line")
    return [Quote(each.start, each.end, each.line, each.asked, text[each.start : each.end]) for each in found]


def rewritten(text: str, store: Store) -> str:
    """The document with what the store gives between its marks. Raises PpspeechError where it gives nothing."""
    for quote in reversed(quotes(text)):
        try:
            text = text[: quote.start] + quote.wanted(store) + text[quote.end :]
        except PpspeechError as wrong:
            raise PpspeechError(f"line {quote.line}: {wrong}") from None
    return text


def problems_of(text: str, store: Store) -> list[str]:
    """Where a document says something else than the store, a sentence each."""
    try:
        found = quotes(text)
    except PpspeechError as wrong:
        return [str(wrong)]
    said = []
    for quote in found:
        try:
            wanted = quote.wanted(store)
        except PpspeechError as wrong:
            said.append(f"line {quote.line}: {wrong}")
            continue
        if wanted != quote.text:
            said.append(f"line {quote.line}: {quote.asked} is quoted as {quote.text!r}, the store has {wanted!r}")
    return said


def unmarked(text: str) -> list[str]:
    """Rows of tables with a column "figure" that has a number which is not quoted from the store."""
    found, place = [], None
    for line in CODE.sub(lambda each: each[0].replace("|", " "), text).splitlines():
        if not line.startswith("|"):
            place = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if place is None:
            headings = [cell.lower() for cell in cells]
            place = headings.index("figure") if "figure" in headings else -1
        elif 0 <= place < len(cells) and re.search(r"\d", MARK.sub("", cells[place])):
            found.append(line)
    return found
