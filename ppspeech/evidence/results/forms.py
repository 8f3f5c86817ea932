"""How a number is written for people: percent, times, seconds, bytes, or a few digits."""

import math
import re
from dataclasses import dataclass

from ppspeech.errors import PpspeechError
from ppspeech.figures import Figure

ASKED = re.compile(r"(percent|fraction|number)(?::([0-6]))?")


@dataclass(frozen=True)
class Form:
    """A factor, decimals (None: as many as three digits need), and what stands behind the number."""

    factor: float = 1.0
    decimals: int | None = None
    suffix: str = ""

    def number(self, value: float) -> str:
        """Without what stands behind it.

        >>> Form().number(0.03214), Form(100, 1).number(0.99), Form().number(12345.6), Form().number(7.1e-8)
        ('0.0321', '99.0', '12,346', '7.1e-8')
        """
        scaled = value * self.factor
        if scaled == 0:
            return "0"
        if self.decimals is not None:
            return f"{scaled:,.{self.decimals}f}"
        if float(scaled).is_integer() and abs(scaled) < 1e9:
            return f"{int(scaled):,}"
        size = math.floor(math.log10(abs(scaled)))
        if not -5 < size < 9:
            return re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", f"{scaled:.1e}")
        return f"{scaled:,.{max(0, 2 - size)}f}"

    def text(self, value: float) -> str:
        """With it."""
        return self.number(value) + self.suffix


def form_of(figure: Figure, asked: str = "") -> Form:
    """The form that was asked for, `percent`, `fraction` or `number` with decimals as in `percent:2`; else by the unit.

    Raises:
        PpspeechError: if there is no such form, or if it does not fit the unit.
    """
    if asked:
        match = ASKED.fullmatch(asked)
        if match is None:
            raise PpspeechError(f"a form is percent, fraction or number, as percent:2 with decimals; got {asked!r:.40}")
        if figure.unit and match[1] != "number":
            raise PpspeechError(f"{figure.metric} is in {figure.unit} and no {match[1]}")
        usual = {"percent": 1, "fraction": 3}.get(match[1])
        decimals = int(match[2]) if match[2] else usual
        if match[1] == "percent":
            return Form(100.0, decimals, " %")
        return Form(1.0, decimals, f" {figure.unit}" if figure.unit else "")
    size = abs(figure.value)
    if figure.unit in {"s", "ms"}:
        seconds = size if figure.unit == "s" else size / 1e3
        long = seconds >= 0.1
        return Form((1.0 if long else 1e3) / (1.0 if figure.unit == "s" else 1e3), None, " s" if long else " ms")
    if figure.unit == "B":
        power = min(3, max(0, math.floor(math.log10(size) / 3))) if size else 0
        return Form(10.0 ** (-3 * power), None, f" {('B', 'kB', 'MB', 'GB')[power]}")
    if figure.unit == "x":
        return Form(suffix="x")
    return Form(suffix=f" {figure.unit}" if figure.unit else "")


def interval_text(figure: Figure, form: Form) -> str:
    """Both ends, or nothing; nothing also where they are the same, as that would say that the value is certain."""
    if figure.low is None or figure.high is None or figure.low == figure.high:
        return ""
    return f"{form.number(figure.low)} to {form.text(figure.high)}"


def peer_text(figure: Figure, asked: str = "") -> str:
    """What the peer has, in the same form or unit, or nothing."""
    if figure.peer is None or figure.peer_value is None:
        return figure.peer or ""
    theirs = Figure(figure.metric, figure.peer_value, figure.unit)
    return f"{figure.peer}: {form_of(theirs, asked).text(figure.peer_value)}"


def ratio_text(figure: Figure) -> str:
    """How much better, or nothing."""
    if figure.ratio is None:
        return ""
    return f"{figure.ratio:.2g}x" if 0.01 <= figure.ratio < 100 else f"{Form().number(figure.ratio)}x"
