"""Protocols by name: what each computes, what it gives away, and the programs of its parties.

A program takes its `Party` (who it is, and a channel to everyone it talks to), then its private inputs by position, as
JSON can hold them, then the public terms by name:

    @millionaires.party("alice")
    def alice(party: Party, wealth: int, *, bits: int = 32) -> str: ...

The same program runs in memory (`run_in_memory`), between processes and over TLS (`ppspeech party`).
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, TypeVar

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.network import Limits, run_in_threads
from ppspeech.network.group import Group, Identity
from ppspeech.registry import Registry

Program = TypeVar("Program", bound=Callable[..., Any])
Result = TypeVar("Result")


@dataclass(frozen=True)
class Party:
    """Who runs a program: its role, and a channel to everyone it talks to.

    Where several hold one role, a seat is the role and a number: `party 0`, `party 1`, …; elsewhere it is the role.

    `channels` are by seat, to those we talk to; `names`, what people call them, has everyone who takes part, in order.
    `group`: the file by which all have found each other, with our `identity`; None in memory and between two.
    """

    role: str
    channels: Mapping[str, Channel]
    seat: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    group: Group | None = None
    identity: Identity | None = None

    def __post_init__(self) -> None:
        seat = self.seat or self.role
        object.__setattr__(self, "seat", seat)
        if not self.names:
            object.__setattr__(self, "names", {each: each for each in (seat, *self.channels)})

    @classmethod
    def met(cls, channels: Mapping[str, Channel], group: Group, identity: Identity) -> "Party":
        """The member of a group that this identity is, with channels by name to those it talks to."""
        name = next(member.name for member in group.members if member.pin == identity.pin)
        seats = dict(zip(group.names, seats_of([member.role for member in group.members]), strict=True))
        by_seat = {seats[other]: channel for other, channel in channels.items()}
        names = {seat: each for each, seat in seats.items()}
        return cls(group.member(name).role, by_seat, seats[name], names, group, identity)

    @property
    def channel(self) -> Channel:
        """To the only one we talk to. Raises `PpspeechError` if there are several."""
        if len(self.channels) != 1:
            raise PpspeechError(f"{self.seat} talks to {', '.join(self.channels) or 'nobody'}: say to whom")
        return next(iter(self.channels.values()))

    def seats(self, role: str) -> list[str]:
        """The seats of all who hold a role, ourselves included, in order."""
        held = [seat for seat in self.names if seat == role or seat.rpartition(" ")[0] == role]
        return sorted(held, key=lambda seat: (len(seat), seat))

    @property
    def place(self) -> int:
        """Our number among those who hold our role, from 0."""
        return self.seats(self.role).index(self.seat)

    def channels_to(self, role: str) -> dict[int, Channel]:
        """To the others who hold a role, by their number."""
        return {place: self.channels[seat] for place, seat in enumerate(self.seats(role)) if seat in self.channels}


class _ReachedError(BaseException):
    """A rehearsal has come to its first message; no program catches it."""


class _Nobody:
    """Where a channel will be."""

    def send(self, *_: Any, **__: Any) -> NoReturn:
        raise _ReachedError

    def receive(self, *_: Any, **__: Any) -> NoReturn:
        raise _ReachedError


NOBODY: Channel = _Nobody()


def rehearse(program: "Bound", party: Party) -> None:
    """Run a program to its first message, with `NOBODY` at the end of every channel.

    Whatever it refuses about its own input and terms it so refuses before anyone has come to meet us.
    """
    with suppress(_ReachedError):
        program(party)


def seats_of(roles: Sequence[str]) -> list[str]:
    """The seats of parties with these roles, in the same order.

    >>> seats_of(["curator", "party", "party"])
    ['curator', 'party 0', 'party 1']
    """
    several, taken, seats = Counter(roles), Counter[str](), []
    for role in roles:
        seats.append(f"{role} {taken[role]}" if several[role] > 1 else role)
        taken[role] += 1
    return seats


def run_in_memory(
    programs: Sequence[tuple[str, Callable[[Party], Result]]], hub: str | None = None, limits: Limits | None = None
) -> list[Result]:
    """Run all parties of a protocol as threads of this process.

    `programs`: the role and the program of each; close over its inputs and terms. `hub`: the role that all others talk
    to; None for everyone to everyone. Returns what they returned, in order. Raises the first error of a party that is
    not merely another's end.

    >>> greet = lambda party: party.channel.send(1, b"42")
    >>> run_in_memory([("ann", greet), ("bob", lambda party: int(party.channel.receive(1, 2)))])
    [None, 42]
    """
    roles = [role for role, _ in programs]
    seats = seats_of(roles)
    names = {seat: seat for seat in seats}

    def take_part(place: int, channels: Mapping[int, Channel]) -> Result:
        role, program = programs[place]
        known = {
            seats[other]: channel for other, channel in sorted(channels.items()) if hub in (None, role, roles[other])
        }
        return program(Party(role, known, seats[place], names))

    return run_in_threads([partial(take_part, place) for place in range(len(programs))], limits)


class RegisteredProtocol:
    """A protocol that can be run by name; `register_protocol` makes one.

    `functionality`: what an honest third party would compute for the parties, and who learns it. `leakage`: what else
    anyone learns. `assumptions`: under what this holds. `terms`: a dataclass whose fields are public terms that every
    program takes by name, where one exists. `parties`: the programs by role.
    """

    def __init__(
        self, name: str, *, functionality: str, leakage: str, assumptions: str, terms: type | None = None
    ) -> None:
        self.name = name
        self.functionality = functionality
        self.leakage = leakage
        self.assumptions = assumptions
        self.terms = terms
        self.parties: dict[str, Callable[..., Any]] = {}

    def party(self, role: str) -> Callable[[Program], Program]:
        """A decorator that enters a program as that of `role`, which must not be taken."""

        def enter(program: Program) -> Program:
            if role in self.parties:
                raise PpspeechError(f"protocol {self.name!r} has a party {role!r} already; choose another role")
            self.parties[role] = program
            return program

        return enter

    def program(self, role: str) -> Callable[..., Any]:
        """The program of a role. Raises `PpspeechError` if there is none."""
        if role not in self.parties:
            raise PpspeechError(
                f"{self.name} has the roles {', '.join(self.parties)}; choose one of them, got {role!r}"
            )
        return self.parties[role]

    def bind(self, role: str, inputs: Sequence[Any] = (), terms: Mapping[str, Any] | None = None) -> "Bound":
        """One party's program to be run once the others are met; refuses inputs and terms it does not take."""
        program, named = self.program(role), dict(terms or {})
        wanted, known = self._inputs(program), self._terms(program)
        if not len(_needed(wanted)) <= len(inputs) <= len(wanted):
            raise PpspeechError(
                f"{role} of {self.name} brings {', '.join(wanted) or 'no input'}: got {len(inputs)} inputs"
            )
        if unknown := sorted(set(named) - set(known)):
            raise PpspeechError(
                f"{self.name} has no term {', '.join(unknown)}: its terms are {', '.join(known) or 'none'}"
            )
        if missing := [each for each in _needed(known) if each not in named]:
            raise PpspeechError(f"{self.name} needs the term {', '.join(missing)}: all parties agree on it in advance")
        if self._open(program) and self.terms is not None:
            fields = inspect.signature(self.terms).parameters
            try:
                self.terms(**{name: value for name, value in named.items() if name in fields})
            except (TypeError, AttributeError) as error:  # a value of another type than its term
                raise PpspeechError(f"the terms of {self.name}: {error}") from None
        return lambda party: program(party, *inputs, **named)

    def describe(self) -> str:
        """What people should know about it."""
        return "\n".join(
            (
                f"{self.name}, between {' and '.join(self.parties)}",
                f"  computes: {self.functionality}",
                f"  leaks:    {self.leakage}",
                f"  assumes:  {self.assumptions}",
            )
        )

    def describe_programs(self) -> str:
        """What each role brings, and the public terms that all agree on: what people need to run it."""
        lines: list[str] = []
        for role, program in self.parties.items():
            lines.append(f"  {role} brings: {', '.join(map(written, self._inputs(program).values())) or 'nothing'}")
        return "\n".join([*lines, f"  terms: {', '.join(map(written, self.all_terms.values())) or 'none'}"])

    @property
    def all_terms(self) -> dict[str, inspect.Parameter]:
        """The public terms of all roles by name."""
        return {name: each for program in self.parties.values() for name, each in self._terms(program).items()}

    def _inputs(self, program: Callable[..., Any]) -> dict[str, inspect.Parameter]:
        """Private inputs by name."""
        parameters = list(inspect.signature(program).parameters.values())[1:]
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return {each.name: each for each in parameters if each.kind in positional}

    def _terms(self, program: Callable[..., Any]) -> dict[str, inspect.Parameter]:
        """Public terms by name."""
        parameters = inspect.signature(program).parameters.values()
        terms = {each.name: each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
        if self._open(program) and self.terms is not None:
            terms |= inspect.signature(self.terms).parameters
        return terms

    def _open(self, program: Callable[..., Any]) -> bool:
        """Whether the program takes the fields of `terms` beside those it names."""
        parameters = inspect.signature(program).parameters.values()
        return self.terms is not None and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)


Bound = Callable[[Party], Any]


def _needed(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The names of those without a default."""
    return [name for name, each in parameters.items() if each.default is inspect.Parameter.empty]


def written(parameter: inspect.Parameter) -> str:
    """A parameter as people write it: its name, its type and what it is by default."""
    kind = parameter.annotation
    said = kind.__name__ if isinstance(kind, type) and not getattr(kind, "__args__", ()) else str(kind)
    said = "array" if said.startswith("numpy.ndarray") else re.sub(r"\b(typing|collections\.abc)\.", "", said)
    typed = "" if kind in (inspect.Parameter.empty, Any) else f": {said}"
    default = parameter.default
    return f"{parameter.name}{typed}" + ("" if default is inspect.Parameter.empty else f" = {default!r}")


PROTOCOLS: Registry[RegisteredProtocol] = Registry("protocol", __package__ or "")


def register_protocol(
    name: str, *, functionality: str, leakage: str, assumptions: str, terms: type | None = None
) -> RegisteredProtocol:
    """Enter a protocol under `name`; its parties then enter with the `party` decorator of what is returned.

    `terms`: a dataclass of public terms, for programs that take them as `**terms`. Raises `PpspeechError` if the name
    is taken, or one of the statements is empty.

    >>> coin = register_protocol("doc_coin", functionality="a coin, to both", leakage="nothing", assumptions="none")
    >>> @coin.party("caller")
    ... def caller(party: Party, side: str, *, tries: int = 1):
    ...     party.channel.send(1, side.encode())
    >>> print(coin.describe())
    doc_coin, between caller
      computes: a coin, to both
      leaks:    nothing
      assumes:  none
    >>> print(coin.describe_programs())
      caller brings: side: str
      terms: tries: int = 1
    """
    statements = {"functionality": functionality, "leakage": leakage, "assumptions": assumptions}
    for what, said in statements.items():
        if not said.strip():
            raise PpspeechError(f"protocol {name!r} must state its {what}; write 'nothing' where there is none")
    return PROTOCOLS.enter(name, RegisteredProtocol(name, **statements, terms=terms))
