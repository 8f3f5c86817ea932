"""Private grep, and walks on a secret graph: the automaton of one party, the symbols of the other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.text.alphabet import alphabet_of
from ppspeech.protocols.text.automaton import walks
from ppspeech.protocols.text.search import Sought, read_found, search
from ppspeech.protocols.text.shape import TextShape

ASSUMPTIONS = (
    "both follow the protocol for a right answer. A {keeper} that does not learns nothing more. A {seeker} that does "
    "not can ask about another automaton of the same size, and learns what it says in as many bits. Diffie-Hellman on "
    "ed25519, AES a random permutation, SHA-256 an oracle"
)

grep = register_protocol(
    "grep",
    functionality="whether, how many, which lines of the keeper's text match the seeker's regular expression, or where "
    "matches begin, to the one that the terms name",
    leakage="sizes alone: lines and their width, rounded up; whether the pattern is a series of classes, and how many, "
    "rounded up to 7, or how many states its automaton has, rounded up to a power of two",
    assumptions=ASSUMPTIONS.format(keeper="keeper", seeker="seeker"),
)
walk = register_protocol(
    "walk",
    functionality="which of the walker's walks, letters one after the other, exist in the owner's graph and end at a "
    "goal of it, to the one that the terms name",
    leakage="sizes alone: how many walks, the longest, letters, and nodes rounded up to a power of two",
    assumptions=ASSUMPTIONS.format(keeper="walker", seeker="owner"),
)


def _run(party: Party, side: Side, shape: TextShape, own: Any) -> Any:
    setup = PairSetup.agree(party.channel, side)
    with setup.session(party.channel):
        told = search(party.channel, setup, shape, own)
    return None if told is None else read_found(shape, told)


@grep.party("seeker")
def seek(party: Party, pattern: str, *, shape: Mapping[str, Any], alphabet: str = "letters") -> Any:
    """The seeker's whole program; `shape` has a `TextShape`'s attributes."""
    chosen, letters = _agreed(shape, alphabet)
    sought = Sought.of(str(pattern), letters, chosen.tells, chosen.way)
    return _run(party, Side.FIRST, chosen, sought)


@grep.party("keeper")
def keep(party: Party, lines: list[str], *, shape: Mapping[str, Any], alphabet: str = "letters") -> Any:
    """The keeper's whole program."""
    chosen, letters = _agreed(shape, alphabet)
    if not all(isinstance(line, str) for line in lines):
        raise RangeError("a text is a list of lines")
    return _run(party, Side.SECOND, chosen, letters.rows(list(lines), chosen.width, chosen.lines))


def _agreed(shape: Mapping[str, Any], alphabet: str) -> tuple[TextShape, Any]:
    letters = alphabet_of(alphabet)
    chosen = TextShape.from_params({"bits": letters.bits, **shape})
    if chosen.bits != letters.bits:
        raise RangeError(f"a symbol of {alphabet} has {letters.bits} bits, got {chosen.bits}")
    return chosen, letters


@walk.party("owner")
def own_graph(
    party: Party, edges: list[list[Any]], start: str, goals: list[str], *, letters: list[str], shape: Mapping[str, Any]
) -> Any:
    """The owner's whole program. `edges`: from, letter, to; nodes have any names. `letters`: all there are."""
    chosen = _walked(letters, shape)
    nodes = {name: number for number, name in enumerate(dict.fromkeys([start, *goals, *_ends(edges)]))}
    numbered = [(nodes[source], _number(letters, letter), nodes[target]) for source, letter, target in edges]
    graph = walks(numbered, [nodes[goal] for goal in goals], nodes[start], len(nodes), 1 << chosen.bits)
    return _run(party, Side.FIRST, chosen, Sought(None, graph))


@walk.party("walker")
def take_walks(party: Party, taken: list[list[str]], *, letters: list[str], shape: Mapping[str, Any]) -> Any:
    """The walker's whole program. `taken`: walks, each a list of letters."""
    chosen = _walked(letters, shape)
    rows = np.zeros((chosen.lines, chosen.width), np.int64)
    rows[len(taken) :, 1:] = 1  # no walk: a letter after its end
    if len(taken) > chosen.lines:
        raise RangeError(f"{chosen.lines} walks were agreed on, got {len(taken)}")
    for row, steps in zip(rows, taken, strict=False):
        if len(steps) >= chosen.width:
            raise RangeError(f"walks have up to {chosen.width - 1} letters here, got {len(steps)}")
        row[: len(steps)] = [_number(letters, letter) for letter in steps]
    return _run(party, Side.SECOND, chosen, rows)


def _walked(letters: list[str], shape: Mapping[str, Any]) -> TextShape:
    if not 1 <= len(letters) <= 255 or len(set(letters)) < len(letters):
        raise RangeError(f"there are 1 to 255 different letters, got {len(letters)}")
    chosen = TextShape.from_params({"way": "automaton", **shape, "bits": len(letters).bit_length()})
    if chosen.way == "classes" or chosen.tells == "places":
        raise RangeError("walks are told of as a whole, and their graph is an automaton")
    return chosen


def _number(letters: list[str], letter: str) -> int:
    if letter not in letters:
        raise RangeError(f"the letters are {', '.join(letters[:20])}; got {letter!r:.40}")
    return letters.index(letter) + 1


def _ends(edges: list[list[Any]]) -> list[str]:
    if not all(len(edge) == 3 for edge in edges):
        raise RangeError("an edge is [from, letter, to]")
    return [name for source, _, target in edges for name in (source, target)]
