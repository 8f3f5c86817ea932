"""What is public of a graph of beliefs: who is linked to whom, how strongly, and how long messages go round.

A node i is + or -, with prior log odds h_i that it alone knows; an edge says by exp(J s s') how alike its ends are.

    λ_{i→j} = f_J(h_i + Σ_{k ≠ j} λ_{k→i}),     b_i = h_i + Σ_k λ_{k→i},
    f_J(x) = 2 artanh(tanh J tanh(x / 2))       by sums: on trees b_i are the log odds of i given everything
    f_J(x) = sign(J) max(-2|J|, min(2|J|, x))   by minima: of the likeliest of all states

On graphs with cycles this is `rounds` rounds of loopy belief propagation, and no more is claimed. With damping d,
λ ← λ' + d (λ - λ'). All numbers have `fraction` bits after the point, in a ring that holds them for certain. Theorem
3.15 in docs/theory/together.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import ClassVar, Literal, get_args

import numpy as np

from ppspeech.arrays import Reals, Residues, Whole
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import Lines
from ppspeech.errors import RangeError
from ppspeech.protocols.params import Params

Operation = Literal["sum", "min"]

MOST_NODES, MOST_EDGES, MOST_ROUNDS = 100_000, 100_000, 1_000
STRONGEST = 4.0
"""Coupling; at 4 two neighbors are the same but once in 3,000 times."""
PRIORS = (1, 2, 4, 8, 16)
"""Largest log odds of a prior: powers of two, so that shares cannot say more."""
MOST_BITS = 24
ERROR = 2.0**-9
"""Of a message, that lines are made for, as far as 256 of them go."""


@dataclass(frozen=True)
class BeliefShape(Params):
    """A graph and how messages go round on it.

    Attributes:
        nodes: how many, numbered from 0.
        edges: pairs of nodes.
        couplings: J of each edge.
        rounds: of messages.
        operation: of beliefs, `sum` for log odds, `min` for the likeliest state.
        damping: in eighths, 0 to 7.
        prior: the largest log odds that a node may have to begin with; what is beyond is cut.
        fraction: bits after the point.

    Raises RangeError for a graph that this party does not agree to, or numbers that no ring holds for certain.
    """

    WHAT: ClassVar[str] = "a graph of beliefs"

    nodes: int
    edges: tuple[tuple[int, int], ...]
    couplings: tuple[float, ...]
    rounds: int = 20
    operation: Operation = "sum"
    damping: int = 0
    prior: int = 4
    fraction: int = 11

    def __post_init__(self) -> None:
        for name, least, most in (
            ("nodes", 1, MOST_NODES), ("rounds", 1, MOST_ROUNDS), ("damping", 0, 7), ("fraction", 6, 12)
        ):  # fmt: skip
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
                raise RangeError(f"{name} must lie in {least}..{most}, got {given!r}")
        if self.operation not in get_args(Operation) or self.prior not in PRIORS:
            raise RangeError(
                f"messages go by sum or min, and priors are up to {PRIORS}; got {self.operation!r}, {self.prior!r}"
            )
        if len(self.edges) > MOST_EDGES or len(self.couplings) != len(self.edges):
            raise RangeError(
                f"a graph has up to {MOST_EDGES:,} edges with a coupling each, got {len(self.edges)} and "
                f"{len(self.couplings)}"
            )
        ends = self.ends
        if ends.size and (ends.min() < 0 or ends.max() >= self.nodes or (ends[:, 0] == ends[:, 1]).any()):
            raise RangeError(f"an edge joins two different nodes of 0 to {self.nodes - 1}")
        if len({(min(pair), max(pair)) for pair in ends.tolist()}) < len(ends):
            raise RangeError("two nodes are joined by one edge at the most: add up their couplings")
        if not all(isinstance(each, int | float) and 0 < abs(each) <= STRONGEST for each in self.couplings):
            raise RangeError(f"a coupling is not 0, and at most {STRONGEST:g} in size; leave an edge without one out")
        if self.ring.bits > MOST_BITS:
            raise RangeError(
                f"beliefs here need {self.ring.bits} bits, more than {MOST_BITS}: use weaker couplings, or fewer bits "
                "after the point"
            )

    @cached_property
    def ends(self) -> Whole:
        """Of the edges, `(edges, 2)`."""
        try:
            found = np.array(self.edges, np.int64).reshape(-1, 2)
        except (ValueError, TypeError, OverflowError):
            raise RangeError("an edge is a pair of nodes") from None
        if len(found) != len(self.edges):
            raise RangeError("an edge is a pair of nodes")
        return found

    @cached_property
    def reach(self) -> float:
        """The largest that anything can be, with what comparisons and damping need beside it."""
        sizes = 2 * np.abs(np.array(self.couplings, np.float64))
        total = np.zeros(self.nodes)
        for end in self.ends.T:
            np.add.at(total, end, sizes)
        strongest = float(sizes.max(initial=0.0))
        return max(self.prior + float(total.max()) + strongest, 4 * strongest) + 2.0 ** (2 - self.fraction)

    @property
    def ring(self) -> Ring:
        """The smallest that holds all, two steps of its lines apart from its lower end."""
        bits = self.fraction + 2
        while 2.0 ** (bits - 1 - self.fraction) * (1 - 4 / (1 << 6)) <= self.reach:
            bits += 1
        return Ring(bits)

    @property
    def narrow(self) -> Ring:
        """Of priors: whatever is shared in it is one."""
        return Ring(self.fraction + 1 + self.prior.bit_length() - 1)

    @cached_property
    def sources(self) -> Whole:
        """Of messages, `(2 edges,)`: first one way along all edges, then the other."""
        return self.ends.T.reshape(-1)

    @cached_property
    def targets(self) -> Whole:
        """Of messages, `(2 edges,)`."""
        return self.ends[:, ::-1].T.reshape(-1)

    @cached_property
    def against(self) -> Whole:
        """The message against each message."""
        return np.roll(np.arange(len(self.sources)), len(self.ends))

    @cached_property
    def strengths(self) -> tuple[Reals, Whole]:
        """All couplings there are, and which of them each message goes by."""
        every, which = np.unique(np.array(self.couplings, np.float64), return_inverse=True)
        return every, np.tile(which.reshape(-1), 2)

    @property
    def lines(self) -> Lines:
        """f of every coupling, by straight lines."""
        return _lines(tuple(self.strengths[0].tolist()), self.ring, self.fraction)

    @property
    def limits(self) -> Residues:
        """2|J| of each message, as residues."""
        every, which = self.strengths
        return np.rint(2 * np.abs(every) * 2.0**self.fraction).astype(np.uint64)[which]

    def encoded(self, priors: Reals) -> Whole:
        """Priors as whole numbers, within what they may be. Raises RangeError for what is no number."""
        given = np.asarray(priors, np.float64)
        if np.isnan(given).any():
            raise RangeError("a prior is a number: log odds")
        unit = 2.0**-self.fraction
        return np.rint(np.clip(given, unit - self.prior, self.prior - unit) / unit).astype(np.int64)

    def gathered(self, messages: Residues) -> Residues:
        """What comes to each node, `(nodes,)`: anybody's shares, mod 2^64."""
        total = np.zeros(self.nodes, np.uint64)
        np.add.at(total, self.targets, messages)
        return total


@lru_cache(maxsize=16)
def _lines(strengths: tuple[float, ...], ring: Ring, fraction: int) -> Lines:
    functions: list[Callable[[Reals], Reals]] = [partial(coupled, each) for each in strengths]
    for index in range(6, 8):
        found = Lines.of(functions, ring, fraction, index)
        if found.error <= ERROR:
            return found
    return Lines.of(functions, ring, fraction, 8)


def coupled(strength: float, x: Reals) -> Reals:
    """f_J by sums."""
    return np.asarray(2 * np.arctanh(np.tanh(strength) * np.tanh(x / 2)))


def clipped(strength: float, x: Reals) -> Reals:
    """f_J by minima."""
    return np.asarray(np.sign(strength) * np.clip(x, -2 * abs(strength), 2 * abs(strength)))


def beliefs_in_clear(shape: BeliefShape, priors: Reals) -> Reals:
    """The same rounds by somebody who knows all priors, with real numbers: log odds of every node."""
    every, which = shape.strengths
    function = coupled if shape.operation == "sum" else clipped
    own = np.clip(np.asarray(priors, np.float64), -shape.prior, shape.prior)
    messages = np.zeros(len(which))
    for _ in range(shape.rounds):
        came = own + np.bincount(shape.targets, messages, shape.nodes)
        inside = came[shape.sources] - messages[shape.against]
        after = np.empty_like(messages)
        for number, strength in enumerate(every):
            after[which == number] = function(strength, inside[which == number])
        messages = after + shape.damping / 8 * (messages - after)
    return np.asarray(own + np.bincount(shape.targets, messages, shape.nodes))
