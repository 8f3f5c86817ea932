"""Progress bars for long work, on standard error, and silent where nobody watches."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ppspeech.screen import Console

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over `items` behind a progress bar that vanishes when done."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield from progress.track(items, total=total, description=description)
