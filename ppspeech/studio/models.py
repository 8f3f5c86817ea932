"""A bundle for pages: what `ppspeech inspect --trade-off --json` says of it, in words and as a curve."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from ppspeech.errors import PpspeechError

SPEAKABLE = {"keyword_hmm", "large_margin_keyword", "large_margin_classifier", "sentence_hmm"}
"""Models that the client of the page can ask."""


def described(name: str, path: Path) -> dict[str, Any]:
    """A bundle, checked as loading does; where it is refused, why."""
    try:
        stamp = max((path / file).stat().st_mtime_ns for file in ("privacy.json", "digests.json"))
        return {"name": name, **_described(path, stamp)}
    except (PpspeechError, OSError) as refused:
        return {"name": name, "refused": str(refused)}


@lru_cache(maxsize=256)
def _described(path: Path, stamp: int) -> dict[str, Any]:  # noqa: ARG001
    """The same; `stamp`: when it was written, so that a bundle written anew is read anew."""
    from ppspeech.bundle import STATUS, for_people, in_words, load_bundle
    from ppspeech.privacy.accounting import trade_off_curve

    bundle = load_bundle(path)
    statement, config = bundle.statement, bundle.config
    guarantee = statement.guarantee
    touches = [
        {
            "topic": touch.topic.replace("_", " "),
            "status": STATUS[touch.status],
            "covered": touch.status != "not_covered",
        }
        | {"note": touch.note}
        for touch in statement.touches
    ]
    return {
        "type": config.type,
        "task": config.task,
        "labels": list(config.labels),
        "speakable": config.type in SPEAKABLE,
        "guarantee": str(guarantee),
        "private": statement.private,
        "words": in_words(guarantee),
        "people": for_people(statement.groups, guarantee.unit),
        "relation": f"one {guarantee.unit}, {guarantee.adjacency}",
        "trade_off": trade_off_curve(bundle.account),
        "events": [f"{count} x {event}" for event, count in bundle.account.events],
        "covers": list(statement.covers),
        "assumes": list(guarantee.assumptions),
        "caveats": list(statement.caveats),
        "touches": touches,
        "metrics": [
            {"metric": each.metric, "value": each.value, "unit": each.unit, "note": each.note}
            for each in bundle.metrics
        ],
        "fingerprint": bundle.fingerprint,
    }
