"""`ppspeech attack`: people who cheat, against servers and clients as they are, over TLS.

An attack is a hostile client of a real server, or a hostile server of a real client, that tries to get what it wants
and measures what it got. Each is entered by its own file with `@attack`, and each wins where the defense it is aimed
at is taken out (`tests/evidence/attacks`): an attack that cannot win would show nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ppspeech.bundle import load_bundle
from ppspeech.evidence.attacks.target import NotHereError, Target
from ppspeech.registry import Registry

Task = Literal["words", "sentences", "speakers", "networks"]
Verdict = Literal["failed", "WON", "stated", "not tried"]


@dataclass(frozen=True, slots=True)
class Gain:
    """What an attack got.

    Attributes:
        gained: how much, in `unit`; 0 where it got nothing.
        tries: how often it tried.
        won: whether it got more than is stated that anyone can get.
        note: what happened, in words.
    """

    gained: float
    unit: str
    tries: int
    won: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: what it wants, against models of which task, and how it tries.

    `stated`: what it gets is told in the protocols' statements and in `docs/theory/asking.md`; it is run to show how
    much that is, and wins only if it gets more.
    """

    name: str
    wants: str
    tasks: tuple[Task, ...]
    run: Callable[[Target], Gain]
    stated: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attack ended; `gain` is None where it was not tried, and `why` says why."""

    attack: Attack
    gain: Gain | None
    why: str = ""

    @property
    def verdict(self) -> Verdict:
        """In a word."""
        if self.gain is None:
            return "not tried"
        if self.gain.won:
            return "WON"
        return "stated" if self.attack.stated else "failed"


ATTACKS: Registry[Attack] = Registry("attack", "ppspeech.evidence.attacks")


def attack(
    name: str, wants: str, *, tasks: tuple[Task, ...] = ("words",), stated: bool = False
) -> Callable[[Callable[[Target], Gain]], Callable[[Target], Gain]]:
    """A decorator that enters a function as the attack `name`."""

    def enter(run: Callable[[Target], Gain]) -> Callable[[Target], Gain]:
        ATTACKS.enter(name, Attack(name, wants, tasks, run, stated))
        return run

    return enter


def run_attack(name: str, target: Target) -> Outcome:
    """Try one attack. Raises PpspeechError for a name that is none; what the target does not offer is not tried."""
    chosen = ATTACKS[name]
    if target.task not in chosen.tasks:
        return Outcome(chosen, None, f"it is against {' and '.join(chosen.tasks)}")
    try:
        return Outcome(chosen, chosen.run(target))
    except NotHereError as missing:
        return Outcome(chosen, None, str(missing))


def attack_bundle(path: Path, model: str | None, quick: bool, name: str) -> Outcome:
    """Try one attack on a server of its own that serves this bundle, wherever this runs."""
    with Target(load_bundle(path), None, model, quick) as target:
        return run_attack(name, target)


__all__ = ["ATTACKS", "Attack", "Gain", "NotHereError", "Outcome", "Target", "attack", "attack_bundle", "run_attack"]
