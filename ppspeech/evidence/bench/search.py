"""A secret pattern in 100,000 characters: automata of 16 and 64 states, 14 classes, and a garbled one, beside `re`.

Needs nothing.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ppspeech.arrays import Residues, Whole
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.shares import in_session
from ppspeech.evidence.bench.two_parties import Timed, certificates, measure, processor_seconds
from ppspeech.figures import Figure
from ppspeech.protocols.text import ALPHABETS, Sought, Tells, TextShape, Way, prepare, read_found, search, search_costs

LETTERS = ALPHABETS["letters"]
LINES, WIDTH = 1_250, 80
COMMON = "the of and a to in is that for it as was with be by on not he i this are or his from at which but have an had"
MEETING = in_session(Side.FIRST), in_session(Side.SECOND)
"""The seeker, whose time counts, is the first party."""


@dataclass(frozen=True)
class Case:
    """A pattern, how large its search is, and in how many lines."""

    name: str
    pattern: str
    size: int
    lines: int = LINES
    tells: Tells = "lines"


CASES = (
    Case("q16", "(not|for) [a-h]+ (the|that|this)", 16),
    Case("q64", "(which|that|this).{0,3} (not|with|was) (he|his|had|in)", 64),
    Case("literal", "h[aei]. .{3} [a-m]..[^x]f", 14, tells="places"),
    Case("garbled", "(which|that|from|the|a).{2,6} (not|was|is|had)( (he|his|in))?", 128, lines=10),
)


@BENCHES.register("search")
def run(quick: bool) -> list[Figure]:
    """Measure every pattern, offline and online apart; the lines found must be those that `re` finds."""
    repeats = 2 if quick else 7
    with certificates() as tls:
        jobs = {case.name: job(case) for case in CASES}
        measured = measure(list(jobs.values()), repeats, meet=MEETING, tls=tls)
        busy = {name: processor_seconds(each, repeats, meet=MEETING, tls=tls) for name, each in jobs.items()}
    figures = []
    for case in CASES:
        found = measured[case.name]
        what = f"{case.lines * WIDTH:,} characters, {shape_of(case).way} of {case.size}, tells {case.tells}"
        note = f"{what}; two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
        in_the_clear = plain_seconds(case, repeats)
        figures.append(Figure.less(f"grep.{case.name}.s", found.total, "s", "re", in_the_clear, note))
        figures += found.figures(f"grep.{case.name}", "total_s", note)[1:]
        figures.append(Figure(f"grep.{case.name}.cpu_s", busy[case.name], "s", note="of both parties' processors"))
    return figures


def made_text(lines: int) -> list[str]:
    """Common words in random order, cut at the width."""
    rng = np.random.default_rng(7)
    return [" ".join(rng.choice(COMMON.split(" "), 40))[: WIDTH - 1] for _ in range(lines)]


def shape_of(case: Case) -> TextShape:
    """What is public of a case."""
    sought = Sought.of(case.pattern, LETTERS, case.tells, None if case.name == "literal" else "automaton")
    way: Way | None = "garbled" if case.name == "garbled" else None
    return replace(sought.shape(case.lines, WIDTH, LETTERS.bits, case.tells, way=way), size=case.size)


def plain_seconds(case: Case, repeats: int) -> float:
    """Python's `re` on the same lines."""
    compiled, text = re.compile(case.pattern), made_text(case.lines)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        expected(case, compiled, text)
        times.append(time.perf_counter() - began)
    return min(times)


def expected(case: Case, compiled: "re.Pattern[str]", text: list[str]) -> list[object]:
    """What the seeker is to learn."""
    if case.tells == "places":
        ahead = re.compile(f"(?={compiled.pattern})")
        return [(number, match.start()) for number, line in enumerate(text) for match in ahead.finditer(line)]
    return [number for number, line in enumerate(text) if compiled.search(line)]


def job(case: Case) -> Timed:
    """One search, as two parties do it."""
    shape, text = shape_of(case), made_text(case.lines)
    sought = Sought.of(case.pattern, LETTERS, shape.tells, shape.way)
    rows: Whole = LETTERS.rows(text, shape.width, shape.lines)
    wanted, costs = expected(case, re.compile(case.pattern), text), search_costs(shape)

    def seek(setup: PairSetup, channel: Channel) -> Callable[[], Residues | None]:
        engine = prepare(channel, setup, shape)
        return lambda: search(channel, setup, shape, sought, engine)

    def hold(setup: PairSetup, channel: Channel) -> Callable[[], object]:
        engine = prepare(channel, setup, shape)
        return lambda: search(channel, setup, shape, rows, engine)

    def right(told: Residues) -> bool:
        return bool(wanted) and read_found(shape, told) == wanted

    return Timed(case.name, seek, hold, right, sum(cost.total_bytes for cost in costs))
