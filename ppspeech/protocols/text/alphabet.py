"""Alphabets: what a text is folded to before it is searched, so that a symbol has few bits.

Both parties fold alike, and the alphabet is public. Letters lose case and marks (É is e, ß is ss, ﬁ is fi); what an
alphabet does not have becomes `OTHER`, which only `.` and classes such as `[^a]` match. Symbol 0 ends a line.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ppspeech.arrays import Whole
from ppspeech.errors import RangeError

END = 0
"""Of a line; what follows it in its row is this too."""
OTHER = "\N{REPLACEMENT CHARACTER}"
"""How a symbol for everything else is shown."""

_ARPABET = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH SIL"
_LETTERS = [*map(chr, range(ord("a"), ord("z") + 1))]
_DIGITS = [*map(str, range(10))]
_ALIKE = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2026": "..."}


@dataclass(frozen=True)
class Alphabet:
    """Symbols by number, from 1; the last is `OTHER`. `alike`: characters that stand for one of them. `spaced`: whether
    symbols are names, apart by spaces, in texts and patterns.
    """

    name: str
    about: str
    symbols: tuple[str, ...]
    alike: Mapping[str, str] = field(default_factory=dict)
    spaced: bool = False

    @property
    def bits(self) -> int:
        """Of a symbol, the end of a line among them."""
        return len(self.symbols).bit_length()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Of the symbols."""
        return {symbol: number for number, symbol in enumerate(self.symbols, start=1)}

    def fold(self, text: str) -> Whole:
        """A line as symbols, `(symbols,)`: as many as it has when folded.

        >>> letters = ALPHABETS["letters"]
        >>> letters.show(letters.fold("Zoë: 42 Straßen!"))
        'zoe\ufffd 00 strassen.'
        """
        other = self.numbers[OTHER]
        return np.array([self.numbers.get(symbol, other) for symbol in self._split(text)], np.int64)

    def show(self, symbols: Whole) -> str:
        """Symbols as text, without the end of the line."""
        return (" " if self.spaced else "").join(self.symbols[each - 1] for each in symbols.tolist() if each != END)

    def rows(self, lines: list[str], width: int, at_least: int) -> Whole:
        """Lines as rows of `width` symbols, `(at_least, width)`. Rows for which there is no line have something after
        their end, which no pattern matches. Raises RangeError for more lines, or a line that does not end in its row.
        """
        if len(lines) > at_least:
            raise RangeError(f"{at_least} lines were agreed on, got {len(lines)}")
        rows = np.zeros((at_least, width), np.int64)
        rows[len(lines) :, 1:] = self.numbers[OTHER]
        for number, line in enumerate(lines):
            folded = self.fold(line)
            if len(folded) >= width:
                raise RangeError(
                    f"line {number + 1} has {len(folded)} symbols, and rows of {width} hold {width - 1}: wrap the text "
                    "(`fold -s -w 80`), or agree on wider rows"
                )
            rows[number, : len(folded)] = folded
        return rows

    def _split(self, text: str) -> list[str]:
        if self.spaced:
            return [re.sub(r"\d+$", "", name) for name in text.upper().split()]
        spelled = "".join(_ALIKE.get(each, each) for each in text)
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", spelled).casefold())
        kept = (" " if each.isspace() else each for each in plain if not unicodedata.combining(each))
        return [self.alike.get(each, each) for each in kept]


_SENTENCES = dict.fromkeys("!?", ".")

ALPHABETS = {
    each.name: each
    for each in (
        Alphabet(
            "letters",
            "a to z, space, apostrophe, 0 for any digit, . for what ends a sentence",
            (*_LETTERS, " ", "'", "0", ".", OTHER),
            dict.fromkeys(_DIGITS, "0") | _SENTENCES,
        ),
        Alphabet(
            "text",
            "a to z, digits, space, punctuation",
            (*_LETTERS, *_DIGITS, " ", *"'.,-?!:;\"()@/&%+=#*_$[]<>", OTHER),
        ),
        Alphabet("dna", "a c g t (u is t), n, and - for a gap", (*"acgtn-", OTHER), {"u": "t"}),
        Alphabet(
            "phones",
            "the 39 phones of ARPABET without stress, and SIL, apart by spaces",
            (*_ARPABET.split(" "), OTHER),
            spaced=True,
        ),
    )
}


def alphabet_of(name: str) -> Alphabet:
    """The alphabet of a name. Raises RangeError where there is none."""
    if name not in ALPHABETS:
        raise RangeError(f"the alphabets are {', '.join(ALPHABETS)}; got {name!r}")
    return ALPHABETS[name]
