"""What follows from stored figures by arithmetic: `= 1e6 * keyword.viterbi.bytes / 1e9; GB` in a mark.

Numbers, metrics, + - * / and parentheses; behind the semicolon the unit of what comes out. Times are in the unit in
which they are stored.
"""

import ast
import math
import operator
import re
from collections.abc import Callable

from ppspeech.errors import PpspeechError
from ppspeech.evidence.results.store import Store
from ppspeech.figures import Figure

METRIC = re.compile(r"(?<![\w.])[a-z][a-z0-9_]*(?:[.:-][a-z0-9_]+)+")
OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def computed(asked: str, store: Store) -> Figure:
    """The figure of an expression.

    Raises PpspeechError for one that cannot be read, names what is not stored, or has no finite value.
    """
    expression, _, unit = asked.removeprefix("=").partition(";")
    numbers = METRIC.sub(lambda name: f"({store.find(name[0])[1].value!r})", expression)
    try:
        value = _value(ast.parse(numbers.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, OverflowError, RecursionError):
        value = math.nan
    if not math.isfinite(value):
        raise PpspeechError(f"what is computed has numbers, metrics, + - * / and parentheses; got {asked!r:.120}")
    return Figure("computed", value, unit.strip())


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATIONS:
            return OPERATIONS[type(operation)](_value(left), _value(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
    return math.nan
