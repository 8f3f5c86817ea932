"""Attacks on tables that are called anonymous: rows linked to people, mixed columns and mixed people told apart."""

from ppspeech.evidence.attacks.tables.linkage import (
    ECCENTRICITY,
    Link,
    Linked,
    attributes,
    link,
    link_tables,
    match,
    of_people,
)
from ppspeech.evidence.attacks.tables.unmixing import RECOVERED, from_known, matched, recovered, unmixed

__all__ = [
    "ECCENTRICITY",
    "RECOVERED",
    "Link",
    "Linked",
    "attributes",
    "from_known",
    "link",
    "link_tables",
    "match",
    "matched",
    "of_people",
    "recovered",
    "unmixed",
]
