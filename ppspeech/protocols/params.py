"""Public sizes as they travel: a dataclass as what JSON can hold, and back from what a peer proposes."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Self

from ppspeech.errors import RangeError


class Params:
    """A frozen dataclass of numbers, texts and tuples of them, which checks itself where it is made."""

    __slots__ = ()
    WHAT: ClassVar[str]
    """What its sizes are those of, for who proposes others."""

    def to_params(self) -> dict[str, Any]:
        """As public parameters of a session: what JSON can hold."""
        return {name: _listed(value) for name, value in asdict(self).items()}  # type: ignore[call-overload]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """What a peer proposes, checked. Raises RangeError for anything that is not a shape this party agrees to."""
        try:
            return cls(**{name: _tupled(value) for name, value in params.items()})
        except (TypeError, ValueError, IndexError) as error:
            raise RangeError(f"not the shape of {cls.WHAT}: {error}") from None


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(_tupled(each) for each in value) if isinstance(value, list) else value
