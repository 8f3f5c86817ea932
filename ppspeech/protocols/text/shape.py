"""What is public of a search in a text: how many lines, how long, which way, how large a pattern, and what is told."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from ppspeech.errors import RangeError
from ppspeech.protocols.params import Params

Way = Literal["classes", "automaton", "garbled"]
"""A series of classes of symbols, in a few rounds; an automaton on shares, a round a symbol; a garbled one, in one."""
Tells = Literal["found", "count", "lines", "places"]
"""Whether any line matches; how many do; which; where in them matches begin."""
Receiver = Literal["seeker", "keeper"]

WAYS: tuple[Way, ...] = get_args(Way)
TELLS: tuple[Tells, ...] = get_args(Tells)

GROUP = 7
"""Classes are padded to a multiple of so many."""
MOST_CLASSES = 63
MOST_ON_SHARES, MOST_GARBLED = 64, 1024
"""States of an automaton."""
LEAST_STATES = 16
"""Smaller automata are padded to it."""
MOST_SYMBOLS = 1 << 22
MOST_WIDTH = 4_096
MOST_PREPARED = 1 << 28
"""Bytes of pads that are made at a time: longer texts are searched in portions."""
MOST_MESSAGE = 1 << 24
MOST_GARBLED_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class TextShape(Params):
    """Sizes of a search: nothing here depends on a symbol of the text, or on more of a pattern than its size.

    Attributes:
        lines: rows of the text, some of which may be empty.
        width: symbols of a row, the end of the line among them.
        bits: of a symbol.
        way: how it is searched.
        size: classes of the pattern, or states of its automaton, rounded up.
        tells: what the receiver learns.
        to: who that is.

    Raises RangeError for sizes that this party does not agree to.
    """

    WHAT: ClassVar[str] = "a text"

    lines: int
    width: int
    bits: int
    way: Way
    size: int
    tells: Tells = "lines"
    to: Receiver = "seeker"

    def __post_init__(self) -> None:
        for name, least, most in (("lines", 1, MOST_SYMBOLS), ("width", 2, MOST_WIDTH), ("bits", 1, 8)):
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
                raise RangeError(f"{name} must lie in {least}..{most}, got {given!r}")
        if self.symbols > MOST_SYMBOLS:
            raise RangeError(
                f"a text has up to {MOST_SYMBOLS:,} symbols with what fills its rows, got {self.symbols:,}"
            )
        if self.way not in WAYS or self.tells not in TELLS or self.to not in get_args(Receiver):
            raise RangeError(
                f"a search goes by {', '.join(WAYS)} and tells {', '.join(TELLS)} to {' or '.join(get_args(Receiver))},"
                f" got {self.way!r}, {self.tells!r}, {self.to!r}"
            )
        size = self.size
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise RangeError(f"a size is a whole number, got {size!r}")
        if self.way == "classes":
            if size % GROUP or size > MOST_CLASSES:
                raise RangeError(f"classes are padded to {GROUP}, {2 * GROUP}, … {MOST_CLASSES}, got {size}")
            return
        most = MOST_GARBLED if self.way == "garbled" else MOST_ON_SHARES
        if size & (size - 1) or not 2 <= size <= most:
            raise RangeError(f"states by {self.way} are padded to 2, 4, 8, … {most}, got {size}")
        if self.way == "garbled" and self.garbled_bytes > MOST_GARBLED_BYTES:
            raise RangeError(
                f"a garbled automaton of {size} states for {self.symbols:,} symbols has {self.garbled_bytes:,} bytes, "
                f"more than {MOST_GARBLED_BYTES:,}: ask for a pattern of up to {MOST_ON_SHARES} states, or less text"
            )

    @property
    def symbols(self) -> int:
        """Of all rows."""
        return self.lines * self.width

    @property
    def state_bits(self) -> int:
        """Of a state."""
        return self.size.bit_length() - 1

    @property
    def garbled_bytes(self) -> int:
        """Of all cells."""
        return (self.symbols * self.size << self.bits) * 16

    @property
    def answer_bits(self) -> int:
        """What an answer tells, at the most."""
        told = {"found": 1, "count": (self.lines + 1).bit_length(), "lines": self.lines, "places": self.symbols}
        return told[self.tells]

    @property
    def backward(self) -> bool:
        """Whether rows are read from their ends."""
        return self.tells == "places" and self.way != "classes"

    @property
    def portions(self) -> list["TextShape"]:
        """The same search in parts of as many lines as are prepared at a time."""
        entry = 1 << self.bits
        if self.way == "garbled":
            pads, message = 16 * entry, 16 * self.size * entry // self.width
        elif self.way == "classes":
            pads, message = 8 * entry + 32 * self.size, -(-self.size // 8) * entry + 5 * self.size
        else:
            residues = -(-((self.state_bits + 1) << max(0, self.state_bits + self.bits - 8)) // 64)
            pads, message = 2048 * residues, 2048 * residues // self.width
        each = max(1, min(MOST_PREPARED // pads, MOST_MESSAGE // max(1, message)) // self.width)
        counts = [min(each, self.lines - at) for at in range(0, self.lines, each)]
        return [replace(self, lines=count) for count in counts]
