"""What people see: text is shown as it is, and nothing is cut off, on a terminal and in a pipe."""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import rich.console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

ENDLESS = 100_000  # columns of a pipe or a file: lines there are as long as they need to be

_MARKED = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


class Console(rich.console.Console):
    """Rich's console for text that others wrote: a name such as `x[red]:smile:.wav` is never read as markup or emoji.

    Nor do control characters reach the terminal, which others' names and words could steer. What is to be colored is a
    `Text`, or has a style. Lines are left to the terminal to wrap. Where a table has no
    room for its longest words, every row becomes a paragraph. A pipe or file has room, unless COLUMNS is set.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = ENDLESS

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """As Rich does, with a mark in place of every control character but tabs and line ends."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=segment.text.translate(_MARKED))

    def print(self, *objects: Any, **options: Any) -> None:
        """Print lines, or one table."""
        if not (objects and isinstance(objects[0], Table)):
            super().print(*objects, **options)
        elif self._fit(objects[0]):
            super().print(objects[0], soft_wrap=False)
        else:
            self._print_paragraphs(objects[0])

    def _fit(self, table: Table) -> bool:
        """Give every column room for its longest word, then share what is left; Rich alone would cut long words.

        False where there is no such room, even with columns close together.
        """
        endless = self.options.update(width=ENDLESS)
        if self.measure(table, options=endless).minimum > self.width:
            table.padding, table.show_edge = 0, False
        spare = self.width - self.measure(table, options=endless).minimum
        if spare < 0:
            return False
        sizes = [
            [Measurement.get(self, endless, cell) for cell in (column.header, *column.cells)]
            for column in table.columns
        ]
        widths = [max(size.minimum for size in column) for column in sizes]
        wanted = [max(size.maximum for size in column) for column in sizes]
        for _ in range(min(spare, sum(wanted) - sum(widths))):
            narrowest = min((at for at in range(len(widths)) if widths[at] < wanted[at]), key=widths.__getitem__)
            widths[narrowest] += 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        return True

    def _print_paragraphs(self, table: Table) -> None:
        if table.title:
            super().print(table.title, style="italic")
        headings = [str(column.header) for column in table.columns]
        for cells in zip(*(column.cells for column in table.columns), strict=True):
            for heading, cell in zip(headings, cells[len(cells) - len(headings) :], strict=True):
                if str(cell):
                    super().print(Text.assemble((f"{heading}: " if heading else "", "bold"), cell))
            super().print()
        if table.caption:
            super().print(table.caption, style="dim")


def speak_any_language() -> None:
    """Let standard output and error take any text: what a name is spelled with is no reason to stop.

    Where the locale knows ASCII alone the bytes are UTF-8, which is what file names there are written in, and bytes
    that are no text are given back as they came.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if codecs.lookup(stream.encoding).name in {"ascii", "utf-8"}:
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")
            else:
                stream.reconfigure(errors="backslashreplace")
