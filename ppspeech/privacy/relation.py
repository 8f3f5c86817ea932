"""Who is protected, and from what change: the relation that every statement of privacy is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_choice

Unit = Literal["frame", "utterance", "record", "speaker", "party"]
"""What one person's presence is counted in. `record` is one row of a table, `party` one holder of a data set."""

HOLDERS: Mapping[Unit, tuple[Unit, ...]] = MappingProxyType(
    {
        "frame": ("utterance", "speaker", "party"),
        "utterance": ("speaker", "party"),
        "record": ("speaker", "party"),
        "speaker": ("party",),
        "party": (),
    }
)
"""By unit, those that may hold several of it."""

Adjacency = Literal["add_remove", "replace"]
"""Neighboring data sets differ by one unit more or less, or by one unit exchanged for another (number public)."""


@dataclass(frozen=True, slots=True, order=True)
class Relation:
    """Which data sets are neighbors. Epsilons of different relations neither add nor compare.

    >>> print(Relation("speaker", "add_remove"))
    one speaker (add_remove)
    """

    unit: Unit
    adjacency: Adjacency

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, get_args(Unit))
        check_choice("adjacency", self.adjacency, get_args(Adjacency))

    def __str__(self) -> str:
        return f"one {self.unit} ({self.adjacency})"


ONE_ROW = Relation("record", "replace")
"""What tables that promise nothing would have to protect: a row of a table whose length is public."""


def check_relation(relation: Any) -> Relation:
    """Refuse what is not a relation: two words in its place, or nothing."""
    if not isinstance(relation, Relation):
        raise PrivacyError(f'a relation is needed, such as Relation("speaker", "add_remove"), got {relation!r}')
    return relation


def check_monotone(monotone: bool, relation: Relation) -> None:
    """Refuse the factor 2 that monotone values save where one unit leaves and another comes: some rise, some fall."""
    if monotone and relation.adjacency == "replace":
        raise PrivacyError(
            "monotone means that one more unit moves all values in one direction: under replace one may rise and "
            "another fall. Use add_remove, or leave monotone out"
        )


def relation_to_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they stand in files: the relation as its two words, `unit` and `adjacency`, in its place."""
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        plain |= {"unit": value.unit, "adjacency": value.adjacency} if isinstance(value, Relation) else {name: value}
    return plain


def relation_from_json(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as values hold them: the two words of a file as one relation."""
    rest = {name: value for name, value in plain.items() if name not in ("unit", "adjacency")}
    return rest | {"relation": Relation(plain["unit"], plain["adjacency"])}
