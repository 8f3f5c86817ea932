"""A bundle as a record of the OpenDP deployments registry: one YAML file that people complete and hand in.

The form is that of the registry's records of 2026 (`deployment.basic`, `dp_variant`, `privacy_loss`, ...). What a
bundle cannot know (who publishes it, where) is left as FILL IN.
"""

import datetime
import json
from typing import Any

from ppspeech import __version__
from ppspeech.bundle.card import STATUS
from ppspeech.bundle.reader import Bundle
from ppspeech.bundle.statement import for_people, in_words
from ppspeech.errors import BundleError

FILL_IN = "FILL IN"

ADJACENT = {
    "add_remove": "Two data sets are adjacent if one is the other with what one {unit} contributed added or removed.",
    "replace": "Two data sets of the same size are adjacent if they differ in what one {unit} contributed.",
}


def deployment_yaml(bundle: Bundle, name: str, published: datetime.date) -> str:
    """The registry's record of a bundle. Raises BundleError for one without a guarantee: none such is listed."""
    statement, guarantee = bundle.statement, bundle.statement.guarantee
    if not statement.private:
        raise BundleError("the registry lists differentially private deployments: this bundle gives no guarantee")
    parameters = {"epsilon": guarantee.epsilon} | ({"delta": guarantee.delta} if guarantee.delta else {})
    outside = [f"{t.topic.replace('_', ' ')}: {STATUS[t.status]} ({t.note})" for t in statement.touches]
    not_covered = [line for line, t in zip(outside, statement.touches, strict=True) if t.status == "not_covered"]
    people = for_people(statement.groups, guarantee.unit)
    mechanisms = [f"{count} x {event.type_name}" for event, count in bundle.account.events]
    floats = "The guarantee holds for the released bits." if guarantee.float_safe else (
        "Noise was drawn in floating point; attacks on rounding are not excluded."
    )  # fmt: skip
    record = {
        "url_slug": "-".join(name.lower().split()),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [{"data_curator_name": FILL_IN, "data_curator_type": FILL_IN}],
                "intended_use": bundle.config.task,
                "data_product_type": "Machine learning model",
                "data_product_region": FILL_IN,
                "description": f"{bundle.config.task} Released as a ppspeech bundle of type {bundle.config.type}.",
                "publication_date": published.isoformat(),
                "data_product_sector": "Technology",
            },
            "dp_variant": {
                "variant_name": "Pure DP" if guarantee.kind == "pure" else "Approximate DP",
                "data_domain": "Recordings of speech with labels.",
                "unprotected_quantities": "; ".join(not_covered) or "None.",
            },
            "privacy_loss": {
                "privacy_unit": f"{guarantee.unit}-level",
                "privacy_unit_details": ADJACENT[guarantee.adjacency].format(unit=guarantee.unit),
                "privacy_parameters": parameters,
                "privacy_parameters_details": " ".join(
                    (in_words(guarantee), *(f"For a person {line}." for line in people))
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": FILL_IN,
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Whatever is computed from the released weights.",
                "composition": f"Epsilon by {statement.method}, recomputed from the events on every load.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "; ".join(outside),
                "mechanisms": f"{'; '.join(mechanisms)}. Implemented in ppspeech {__version__}. {floats}",
                "justification": " ".join((*statement.caveats, *guarantee.assumptions)) or FILL_IN,
            },
            "administrative": {
                "notes": f"SHA-256 of the bundle's digests: {bundle.fingerprint}",
                "sources": FILL_IN,
                "registry_authors": [FILL_IN],
            },
        },
    }
    return f"# Complete every {FILL_IN} before handing this in.\n" + "".join(_lines(record, 0))


def _lines(value: dict[str, Any], depth: int) -> list[str]:
    """Block YAML whose texts are JSON strings, which YAML reads as they are."""
    pad, lines = "  " * depth, []
    for key, item in value.items():
        if isinstance(item, dict):
            lines += [f"{pad}{key}:\n", *_lines(item, depth + 1)]
        elif isinstance(item, list):
            lines.append(f"{pad}{key}:\n")
            for entry in item:
                block = _lines(entry, depth + 2) if isinstance(entry, dict) else [f"{pad}    {_scalar(entry)}\n"]
                lines += [f"{pad}  - {block[0].lstrip()}", *block[1:]]
        else:
            lines.append(f"{pad}{key}: {_scalar(item)}\n")
    return lines


def _scalar(value: str | float) -> str:
    """A text or number. YAML 1.1 takes 1e-05 for a text: a number in that form needs its point."""
    if isinstance(value, float) and "e" in repr(value):
        mantissa, exponent = repr(value).split("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return json.dumps(value, ensure_ascii=False)
