"""Directives that write Markdown."""

import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


class Written(SphinxDirective):
    """A directive whose content is Markdown that it writes; for pages in Markdown."""

    def text(self) -> str:
        """The Markdown that stands in its place."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The nodes of what was written."""
        lines = StringList(self.text().splitlines(), source=self.get_source_info()[0])
        box = nodes.Element()
        box.document = self.state.document
        self.state.nested_parse(lines, self.content_offset, box, match_titles=True)
        return box.children


def plain(text: str | None) -> str:
    """Text that is not Markdown but for its backticks: stars and brackets are those of mathematics and patterns."""
    parts = re.split(r"(`[^`]*`)", (text or "").rstrip())
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]*_^$<>\\])", r"\\\1", part) for part in parts)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown; cells are on one line, and a bar in one is escaped."""
    cells = [
        [" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in [heads, ["---"] * len(heads), *rows]
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
