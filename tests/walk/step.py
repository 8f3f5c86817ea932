"""One thing that a new user does, and what must hold then."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Step:
    """One thing that is done, and what must hold.

    `makes`: files that must then be there. `goes_on`: a server, which runs until the stage is over. `slow`: only with
    --slow. `needs`: a corpus or table without which the step is left out. `python`: `run` is Python. `told`: that
    it does not end with 0 is said where documents show it.
    """

    name: str
    run: str
    says: str = ""
    code: int = 0
    makes: tuple[str, ...] = ()
    goes_on: bool = False
    slow: bool = False
    needs: str = ""
    python: bool = False
    told: bool = False

    def filled(self, known: Mapping[str, str]) -> str:
        """The command with what earlier steps have told."""
        filled = self.run
        for name, value in known.items():
            filled = filled.replace("{" + name + "}", value)
        return filled


def python(name: str, code: str, says: str = "", **more: object) -> Step:
    """A step in Python."""
    return Step(name, dedent(code), says, python=True, **more)  # type: ignore[arg-type]
