"""JSON that is taken literally: exact fields and types, no key twice, no NaN, nothing guessed, nothing imported."""

import json
import math
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ppspeech.errors import BundleError, PpspeechError

Value = TypeVar("Value")

LARGEST_INTEGER = 1_000_000
"""No size in a bundle comes near it; a larger one is a mistake or an attempt to exhaust the reader."""

LONGEST_TEXT = 2_000
LONGEST_WORD = 64

_SECRET = re.compile(rf"-----BEGIN|[A-Za-z0-9+/=_-]{{{LONGEST_WORD + 1},}}")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """The object in a JSON file. Raises BundleError for anything else, a key twice, or a number that is not finite."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a number")

    def finite(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            refuse(digits)
        return value

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key appears twice")
        return found

    try:
        plain = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite, object_pairs_hook=once)
    except (ValueError, RecursionError) as damaged:
        raise BundleError(f"{name} is not JSON that can be read: {damaged}") from None
    if not isinstance(plain, dict):
        raise BundleError(f"{name} must hold one JSON object, got {type(plain).__name__}")
    return plain


def write_json(plain: Mapping[str, Any]) -> bytes:
    """Readable and reproducible: the same values give the same bytes."""
    return (json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_text(name: str, text: Any, *, longest: int = LONGEST_TEXT) -> str:
    """Refuse what is not a short printable text, or has what looks like a key: a run of over 64 letters and digits."""
    if not isinstance(text, str) or not text.strip() or len(text) > longest or _UNPRINTABLE.search(text):
        shown = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise BundleError(f"{name} must be printable text of 1 to {longest} characters, got {shown}")
    if _SECRET.search(text):
        raise BundleError(f"{name} holds something that looks like a key or encoded data: it does not belong here")
    return text


def to_plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON values; tuples become lists."""
    plain: dict[str, Any] = _listed(asdict(value))
    return plain


def from_plain(kind: type[Value], plain: Any, name: str) -> Value:
    """A dataclass from JSON values: exactly its fields, each of exactly its type, or BundleError is raised.

    Texts are printable and not empty, but for fields whose metadata have `empty`.
    """
    known = {field.name: field.metadata for field in fields(kind)}  # type: ignore[arg-type]
    wanted = set(known)
    if not isinstance(plain, Mapping) or set(plain) != wanted:
        given = set(plain) if isinstance(plain, Mapping) else set()
        raise BundleError(
            f"{name} needs exactly the fields {', '.join(sorted(wanted)) or '(none)'}: missing "
            f"{', '.join(sorted(wanted - given)) or 'none'}, unknown {', '.join(sorted(given - wanted)) or 'none'}"
        )
    hints = get_type_hints(kind)
    values = {
        field: _typed(plain[field], hints[field], f"{name}.{field}", "empty" in known[field])
        for field in sorted(wanted)
    }
    try:
        return kind(**values)
    except BundleError:
        raise
    except (PpspeechError, ValueError, TypeError, OverflowError) as refused:
        raise BundleError(f"{name}: {refused}") from None


def _typed(value: Any, hint: Any, name: str, may_be_empty: bool = False) -> Any:
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        (hint,) = (option for option in options if option is not type(None))
        return _typed(value, hint, name, may_be_empty)
    if origin is Literal:
        if any(value == option and type(value) is type(option) for option in options):
            return value
        raise BundleError(f"{name} must be one of {', '.join(map(str, options))}, got {value!r}")
    if origin is tuple:
        if not isinstance(value, list):
            raise BundleError(f"{name} must be a list, got {type(value).__name__}")
        return tuple(_typed(item, options[0], f"{name}[{index}]", may_be_empty) for index, item in enumerate(value))
    if hasattr(hint, "__dataclass_fields__"):
        return from_plain(hint, value, name)
    if hint is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if hint is float or type(value) is not hint:
        raise BundleError(f"{name} must be of type {getattr(hint, '__name__', hint)}, got {value!r:.80}")
    if hint is int and abs(value) > LARGEST_INTEGER:
        raise BundleError(f"{name} must be at most {LARGEST_INTEGER}, got {value!r:.80}")
    if hint is str and not (may_be_empty and not value):
        check_text(name, value)
    return value


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple | list) else value
