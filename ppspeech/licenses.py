"""Under which licenses the things are that this package stands on, and whether they go together with its own."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

Kind = Literal["permissive", "library", "apart", "vendor", "copyleft", "unknown"]
"""`library`: weak copyleft (LGPL, MPL), kept by using it as it comes. `apart`: copyleft, run as a program of its own.
`vendor`: comes with torch, for graphics cards. `copyleft`: whoever hands out both together does so under it."""

FITTING: frozenset[Kind] = frozenset({"permissive", "library", "apart", "vendor"})
"""What a requirement of an Apache-2.0 package may be."""

NEEDED = frozenset({"core", "full"})
"""What everybody has, and what whoever trains or serves has too; other extras are asked for one by one."""

SAID_ELSEWHERE: dict[str, str] = {
    "espeakng-loader": "GPL-3.0-or-later",  # of eSpeak NG, which it carries; its metadata say nothing
    "cuda-toolkit": "LicenseRef-NVIDIA-Proprietary",
}

SAYS_NOTHING = frozenset({"OSI Approved", "DFSG approved", "Other/Proprietary License"})

APART = frozenset({"espeakng-loader"})
"""Started as a program and talked to through pipes (`audio/voices/espeak_process.py`): nothing links with it."""

_WORDS: tuple[tuple[Kind, str], ...] = (
    ("vendor", r"nvidia"),
    ("library", r"lgpl|lesser general public|mpl|mozilla"),
    ("copyleft", r"gpl|general public|eupl|cc-by-sa|sspl"),
    (
        "permissive",
        r"apache|\bmit\b|mit-|bsd|isc\b|psf|python software foundation|zlib|cc0|unlicense|public domain|hpnd",
    ),
)


@dataclass(frozen=True, slots=True)
class Licensed:
    """A package that is installed here; `needed_for`: `core`, or the extra of ours that brings it."""

    name: str
    version: str
    license: str
    kind: Kind
    needed_for: str


def licenses() -> list[Licensed]:
    """Those of all that is required here, and of what extras bring as far as it is installed."""
    found: dict[str, Licensed] = {}
    extras = metadata.metadata("ppspeech").get_all("Provides-Extra") or []
    for extra in ("", *sorted(extras, key=lambda each: (each != "full", each == "dev", each))):
        for name in _needed("ppspeech", {extra}, set()):
            if name not in found and name != "ppspeech":
                found[name] = _licensed(name, extra or "core")
    return sorted(found.values(), key=lambda each: (each.needed_for != "core", each.needed_for, each.name))


def kind_of(name: str, text: str) -> Kind:
    """Which kind of license a text names.

    >>> [kind_of("x", text) for text in ("MIT", "LGPL-3.0-or-later", "GPL-3.0-only", "Apache-2.0 OR GPL-2.0", "Ours")]
    ['permissive', 'library', 'copyleft', 'permissive', 'unknown']
    """
    kinds = [_kind(part) for part in re.split(r"\bOR\b", text)]  # one may choose
    best = min(kinds, key=("permissive", "library", "vendor", "copyleft", "unknown").index)
    return "apart" if best == "copyleft" and name in APART else best


def _kind(text: str) -> Kind:
    parts = [part for part in re.split(r"\bAND\b", text) if part.strip()]  # all of them hold
    kinds: list[Kind] = []
    for part in parts:
        matching: Iterator[Kind] = (kind for kind, words in _WORDS if re.search(words, part, re.IGNORECASE))
        kinds.append(next(matching, "unknown"))
    return max(kinds, key=("permissive", "library", "vendor", "copyleft", "unknown").index, default="unknown")


def _licensed(name: str, needed_for: str) -> Licensed:
    about = metadata.metadata(name)
    classifiers = [text.rpartition(" :: ")[2] for text in about.get_all("Classifier") or [] if "License ::" in text]
    stated, free = ((about.get_all(field) or [""])[0].strip() for field in ("License-Expression", "License"))
    said = [stated, SAID_ELSEWHERE.get(name), *classifiers, *free.splitlines()[:1]]
    text = next((each for each in said if each and each not in SAYS_NOTHING), "not stated")
    return Licensed(name, about["Version"], text[:60], kind_of(name, text), needed_for)


def _needed(name: str, extras: Iterable[str], seen: set[tuple[str, str]]) -> list[str]:
    """A package and all that it needs, as far as it is installed: what is not, another system would need."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    wanted = {extra for extra in ("", *extras) if (name, extra) not in seen}
    seen |= {(name, extra) for extra in wanted}
    try:
        required = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    found = [name]
    for line in required:
        asked = re.match(r"([\w.-]+)\s*(?:\[([\w,\s-]*)\])?", line)
        by_extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", line)
        if asked is not None and (by_extra[1] if by_extra else "") in wanted:
            found += _needed(asked[1], [each.strip() for each in (asked[2] or "").split(",") if each.strip()], seen)
    return found
