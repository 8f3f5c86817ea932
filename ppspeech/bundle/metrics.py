"""`metrics.json`: how well the released model does, as the figures that a command printed."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ppspeech.bundle.strict_json import LONGEST_WORD, check_text
from ppspeech.errors import BundleError
from ppspeech.figures import Figure

FORMAT = 1
MOST_FIGURES = 200

METRIC = re.compile(r"[a-z0-9_.]{1,64}")
"""What a metric may be called."""


def metrics_to_json(figures: Sequence[Figure]) -> dict[str, Any]:
    """Plain values for `metrics.json`. Raises BundleError for a figure that `metrics_from_json` would refuse."""
    plain = {
        "format": FORMAT,
        "figures": [{"metric": f.metric, "value": f.value, "unit": f.unit, "note": f.note or ""} for f in figures],
    }
    metrics_from_json(plain)
    return plain


def metrics_from_json(plain: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Read what `metrics_to_json` wrote. Raises BundleError for anything else, or a value that is not finite."""
    if set(plain) != {"format", "figures"} or plain["format"] is not FORMAT or not isinstance(plain["figures"], list):
        raise BundleError(f"metrics.json holds format {FORMAT} and a list of figures")
    if len(plain["figures"]) > MOST_FIGURES:
        raise BundleError(f"metrics.json has {len(plain['figures'])} figures, at most {MOST_FIGURES} are read")
    found: dict[str, Figure] = {}
    for entry in plain["figures"]:
        if not isinstance(entry, Mapping) or set(entry) != {"metric", "value", "unit", "note"}:
            raise BundleError("a figure has the fields metric, value, unit and note")
        name, value = entry["metric"], entry["value"]
        if not isinstance(name, str) or not METRIC.fullmatch(name) or name in found:
            raise BundleError(f"a metric has a name of its own in lower case with dots, got {name!r:.80}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise BundleError(f"{name} must be a finite number, got {value!r:.80}")
        if entry["unit"] != "":
            check_text("unit", entry["unit"], longest=LONGEST_WORD)
        if entry["note"] != "":
            check_text("note", entry["note"])
        found[name] = Figure(name, value, entry["unit"], note=entry["note"] or None)
    return tuple(found.values())
