"""Protocols by name: what each computes, what it gives away, and the programs of its parties."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.registry import Registry

Program = TypeVar("Program", bound=Callable[..., Any])


@dataclass(frozen=True)
class Party:
    """Who runs a program: its role, and a channel to everyone else, by role.

    Where several hold one role, a seat is the role and a number: `party 0`, `party 1`, … (see `seats`).

    Attributes:
        role: our own.
        channels: to the others, by seat.
        seat: our own; the role, where nobody else holds it.
    """

    role: str
    channels: Mapping[str, Channel]
    seat: str = ""

    @property
    def channel(self) -> Channel:
        """To the only other party.

        Raises:
            PpspeechError: if there are several.
        """
        if len(self.channels) != 1:
            raise PpspeechError(f"{self.role} talks to {', '.join(self.channels) or 'nobody'}: say to whom")
        return next(iter(self.channels.values()))

    def seats(self, role: str) -> list[str]:
        """The seats of everyone with a role, ourselves included, in order."""
        own = [self.seat or self.role] if self.role == role else []
        others = [seat for seat in self.channels if seat == role or seat.rpartition(" ")[0] == role]
        return sorted(own + others, key=lambda seat: (len(seat), seat))


class RegisteredProtocol:
    """A protocol that can be run by name; `register_protocol` makes one.

    Attributes:
        name: what people and HELLOs call it.
        functionality: what an honest third party would compute for the parties, and who learns it.
        leakage: what else anyone learns.
        assumptions: under what this holds.
        parties: the programs by role. Each takes a channel (or, with more than two parties, a mapping from role to
            channel), its private inputs by position, and the public parameters by name.
    """

    def __init__(self, name: str, *, functionality: str, leakage: str, assumptions: str) -> None:
        self.name = name
        self.functionality = functionality
        self.leakage = leakage
        self.assumptions = assumptions
        self.parties: dict[str, Callable[..., Any]] = {}

    def party(self, role: str) -> Callable[[Program], Program]:
        """A decorator that enters a program as that of `role`, which must not be taken."""

        def enter(program: Program) -> Program:
            if role in self.parties:
                raise PpspeechError(f"protocol {self.name!r} has a party {role!r} already; choose another role")
            self.parties[role] = program
            return program

        return enter

    def describe(self) -> str:
        """What people should know before they run it."""
        return "\n".join(
            (
                f"{self.name}, between {' and '.join(self.parties) or 'nobody yet'}",
                f"  computes: {self.functionality}",
                f"  leaks:    {self.leakage}",
                f"  assumes:  {self.assumptions}",
            )
        )


PROTOCOLS: Registry[RegisteredProtocol] = Registry("protocol", __package__ or "")


def register_protocol(name: str, *, functionality: str, leakage: str, assumptions: str) -> RegisteredProtocol:
    """Enter a protocol under `name`; its parties then enter with the `party` decorator of what is returned.

    Args:
        name: what people and HELLOs call it.
        functionality: what an honest third party would compute for the parties, and who learns it.
        leakage: what else anyone learns.
        assumptions: under what this holds.

    Raises:
        PpspeechError: if the name is taken, or one of the statements is empty.

    >>> coin = register_protocol("doc_coin", functionality="a coin, to both", leakage="nothing", assumptions="none")
    >>> @coin.party("caller")
    ... def caller(channel, *, side):
    ...     channel.send(1, side.encode())
    >>> print(coin.describe())
    doc_coin, between caller
      computes: a coin, to both
      leaks:    nothing
      assumes:  none
    """
    statements = {"functionality": functionality, "leakage": leakage, "assumptions": assumptions}
    for what, said in statements.items():
        if not said.strip():
            raise PpspeechError(f"protocol {name!r} must state its {what}; write 'nothing' where there is none")
    return PROTOCOLS.enter(name, RegisteredProtocol(name, **statements))
