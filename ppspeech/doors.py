"""Rooms that open what is asked for and no more.

A room says what it offers by imports under `TYPE_CHECKING`, which type checkers and readers see; whoever takes a name
from it has that one import made, and nothing else. So a client of words loads no code of training, and needs none of
the packages that only training needs.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ppspeech.errors import MissingPackageError


def door(room: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room: what its imports under `TYPE_CHECKING` name, and the rooms within it.

    Raises AttributeError for what the room does not offer, MissingPackageError for what needs a package that is not
    installed.
    """

    def __getattr__(name: str) -> Any:
        found = _offered(room).get(name)
        try:
            if found is not None:
                value = getattr(import_module(found[0]), found[1])
            elif not name.startswith("_") and find_spec(f"{room}.{name}") is not None:
                return import_module(f"{room}.{name}")
            else:
                raise AttributeError(f"{room} has no {name!r}")
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] in {"ppspeech", ""}:
                raise
            raise MissingPackageError(f"{room}.{name}", missing.name) from None
        setattr(sys.modules[room], name, value)
        return value

    return __getattr__


@cache
def _offered(room: str) -> dict[str, tuple[str, str]]:
    """Module and name there of all that a room imports under `TYPE_CHECKING`."""
    import ast

    spec = find_spec(room)
    assert spec is not None
    source = getattr(spec.loader, "get_source")(room)  # noqa: B009 - of every loader of source, and of no protocol
    offered: dict[str, tuple[str, str]] = {}
    for block in ast.parse(source).body:
        match block:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                for line in body:
                    if isinstance(line, ast.ImportFrom) and line.module is not None:
                        offered |= {each.asname or each.name: (line.module, each.name) for each in line.names}
    return offered
