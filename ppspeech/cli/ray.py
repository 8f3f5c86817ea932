"""`--ray [ADDRESS]`: the option of every command whose work can be spread, and what an address is."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ppspeech.cluster import LOCAL

RAY = "--ray"

Ray = Annotated[
    str | None,
    typer.Option(
        RAY,
        metavar="[ADDRESS]",
        help="Spread the work over the cores of this machine, or over the Ray cluster at HOST:PORT.",
    ),
]


class SpreadCommand(TyperCommand):
    """A command in which `--ray` alone is `--ray local`: what follows it is its address only if it looks like one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any command's."""
        return super().parse_args(ctx, with_address(args))


def with_address(args: list[str]) -> list[str]:
    """Arguments in which every `--ray` has an address.

    >>> with_address(["--ray", "a.wav"]), with_address(["a.wav", "--ray", "head:6379"])
    (['--ray', 'local', 'a.wav'], ['a.wav', '--ray', 'head:6379'])
    """
    found = []
    for place, text in enumerate(args):
        found.append(text)
        if text == "--":
            return found + args[place + 1 :]
        following = args[place + 1] if place + 1 < len(args) else ""
        if text == RAY and following != LOCAL and (":" not in following or Path(following).exists()):
            found.append(LOCAL)
    return found
