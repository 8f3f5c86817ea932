"""`README.md` of a bundle: the model card, for people."""

import math
from collections.abc import Sequence

from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.statement import PrivacyStatement, for_people, in_words
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant

SHOWN_LABELS = 20

STATUS = {"charged": "charged to epsilon", "not_covered": "NOT covered", "untouched": "public or not done"}
"""How a touch's status reads."""


def model_card(
    config: BundleConfig, statement: PrivacyStatement, account: Accountant, metrics: Sequence[Figure]
) -> str:
    """The card in Markdown, with the front matter that model hubs read.

    It follows from the other files alone: loading compares it byte by byte, so that another wording is another format
    (`statement.FORMAT`).
    """
    guarantee = statement.guarantee
    labels = ", ".join(config.labels[:SHOWN_LABELS]) + (", ..." if len(config.labels) > SHOWN_LABELS else "")
    weights = sum(math.prod(shape) for shape in config.tensors().values())
    taking = "table" if config.columns else "speech"
    lines = [
        "---",
        "library_name: ppspeech",
        f"tags: [{taking}, {'differential-privacy' if statement.private else 'not-private'}]",
        "---",
        "",
        f"# A {taking} model of type {config.type}",
        "",
        config.task,
        "",
        f"- Labels: {labels or 'none'}",
        f"- Input: {config.input}",
        f"- Weights: {weights:,}",
        "",
        "## Privacy",
        "",
        f"**{str(guarantee)[0].upper()}{str(guarantee)[1:]}**"
        + (f", by {statement.method}." if statement.private else ""),
        "",
        in_words(guarantee),
        "",
        *_bullets("For a person", for_people(statement.groups, guarantee.unit)),
        *_bullets("Covered", statement.covers),
        *_bullets("Assumed", guarantee.assumptions),
        *_bullets("Know before use", statement.caveats),
        "Where the data was looked at outside training:",
        "",
        "| what | in the guarantee? | how |",
        "|---|---|---|",
        *(f"| {t.topic.replace('_', ' ')} | {STATUS[t.status]} | {_cell(t.note)} |" for t in statement.touches),
        "",
        "The events behind the guarantee (`events.json`). Loading replays them and refuses another epsilon, and any "
        "card but this one; that they are what happened, only a signature vouches for:",
        "",
        *(f"- {count} x {event.type_name}" for event, count in account.events),
        "",
        "## How well it does",
        "",
    ]
    if metrics:
        lines += ["| metric | value | note |", "|---|---|---|"]
        lines += [f"| {f.metric} | {f.value:.4g} {f.unit} | {_cell(f.note or '')} |" for f in metrics]
    else:
        kept = [touch.note for touch in statement.touches if touch.topic == "metrics"]
        lines.append(f"Not stated: {kept[0]}." if kept else "Not measured.")
    lines += [
        "",
        "## Use",
        "",
        "`ppspeech inspect FOLDER` shows and checks this bundle, `ppspeech verify-release` also who signed it; in "
        "Python, `ppspeech.bundle.load_bundle(folder).model` is the model.",
    ]
    return "\n".join(lines) + "\n"


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", "", *(f"- {line}" for line in lines), ""] if lines else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
