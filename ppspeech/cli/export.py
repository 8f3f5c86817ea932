"""`ppspeech export`: a checkpoint becomes a bundle, which may leave the building."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.figures import Figure


def export(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a training run.")],
    out: Annotated[Path, typer.Option(help="Folder of the bundle; must not exist.")],
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Release a model without any guarantee, and say so in it.")
    ] = False,
    metrics: Annotated[
        Path | None, typer.Option(help="Figures to state: JSON lines, as every command prints them with --json.")
    ] = None,
    state_test: Annotated[
        bool,
        typer.Option(
            "--state-test", help="State what training measured on held-out people, though no guarantee covers them."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Write a bundle: weights, public choices, and a privacy statement that is checked on every load.

    A model without a guarantee states what training measured on held-out people; a private one only with --state-test.
    A checkpoint of a module of your own becomes a bundle of its tensors, for `load_bundle(FOLDER).load_into(module)`.

    Examples: `ppspeech export word.ckpt --out words`, `ppspeech export plain.ckpt --out plain --not-private`
    """
    from ppspeech.bundle import in_words
    from ppspeech.training import export_checkpoint

    figures = _figures(metrics) if metrics is not None else []
    bundle = export_checkpoint(checkpoint, out, not_private=not_private, metrics=figures, state_test=state_test)
    guarantee = bundle.statement.guarantee
    if as_json:
        facts = {"bundle": str(out), "type": bundle.config.type, "privacy": bundle.statement.to_json()}
        typer.echo(json.dumps({**facts, "fingerprint": bundle.fingerprint}))
        return
    console = Console()
    console.print(f"{out}: {bundle.config.type}, {guarantee}")
    console.print(in_words(guarantee))
    for touch in bundle.statement.touches:
        if touch.status == "not_covered":
            topic = touch.topic.replace("_", " ")
            console.print(f"  not covered: {topic} ({touch.note})")


def _figures(path: Path) -> "list[Figure]":
    from ppspeech.errors import BundleError
    from ppspeech.figures import Figure

    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return [Figure(line["metric"], line["value"], line.get("unit", ""), note=line.get("note")) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as damaged:
        raise BundleError(f"{path} holds no figures, one JSON object a line: {damaged}") from None
