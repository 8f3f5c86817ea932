"""Random patterns of the dialect, and what Python's `re` finds in folded text."""

import random
import re
from typing import Any

from ppspeech.protocols.text import Alphabet, Tells

SYMBOLS = "abc "


def random_pattern(draw: random.Random, depth: int = 0) -> str:
    """Of few symbols, so that it is found now and then."""
    if depth > 2 or draw.random() < 0.4:
        one = ["a", "b", "c", " ", ".", "[ab]", "[^b]", "[a-c]", r"\w", r"\s", "x"]
        return draw.choice(one)
    inner = random_pattern(draw, depth + 1)
    whole = inner if len(inner) == 1 else f"(?:{inner})"
    kind = draw.random()
    if kind < 0.35:
        return inner + random_pattern(draw, depth + 1)
    if kind < 0.5:
        return f"(?:{inner}|{random_pattern(draw, depth + 1)})"
    if kind < 0.85:
        low = draw.randrange(4)
        counts = [f"{{{low}}}", f"{{{low},}}", f"{{{low},{low + draw.randrange(3)}}}"]
        return whole + draw.choice(["*", "+", "?", *counts])
    return draw.choice([f"^{inner}", f"{inner}$", f"(?:^|b){inner}", f"{inner}(?:c|$)"])


def random_lines(draw: random.Random, count: int, longest: int) -> list[str]:
    return ["".join(draw.choices(SYMBOLS, k=draw.randrange(longest + 1))) for _ in range(count)]


def expected(pattern: str, lines: list[str], alphabet: Alphabet, tells: Tells) -> Any:
    """By `re`, in the folded text."""
    compiled = re.compile(pattern)
    folded = [alphabet.show(alphabet.fold(line)) for line in lines]
    if tells == "places":
        return [(n, at) for n, line in enumerate(folded) for at in range(len(line)) if compiled.match(line, at)]
    found = [n for n, line in enumerate(folded) if compiled.search(line)]
    return {"lines": found, "count": len(found), "found": bool(found)}[tells]
