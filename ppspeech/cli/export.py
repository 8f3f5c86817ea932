"""`ppspeech export`: a checkpoint becomes a bundle, which may leave the building."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.figures import Figure


def export(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a training run; or a bundle, to write it anew.")],
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
    ledger: Annotated[
        Path | None, typer.Option(help="Enter it in this ledger of releases; needs --data and --by.")
    ] = None,
    data: Annotated[str, typer.Option(help="What the data set is called in the ledger.")] = "",
    by: Annotated[str, typer.Option(help="Who releases it, for the ledger.")] = "",
    most: Annotated[
        float | None,
        typer.Option(help="Release nothing if all releases of the data set would have a larger epsilon together."),
    ] = None,
    begin: Annotated[bool, typer.Option("--begin", help="With --most: begin the ledger.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Write a bundle: weights, public choices, and a privacy statement that is checked on every load.

    A model without a guarantee states what training measured on held-out people; a private one only with --state-test.
    A checkpoint of a module of your own becomes a bundle of its tensors, for `load_bundle(FOLDER).load_into(module)`. A
    bundle of an earlier format is written anew, with what follows from its events. With --ledger it is entered before
    it is there: what a ledger refuses is not released.

    Examples: `ppspeech export word.ckpt --out words`, `ppspeech export plain.ckpt --out plain --not-private`,
    `ppspeech export word.ckpt --out words --ledger releases.jsonl --data "ward 7" --by ann --most 3 --begin`
    """
    from ppspeech.bundle import add_release, in_words, read_ledger, renew_bundle
    from ppspeech.errors import BundleError
    from ppspeech.training import export_checkpoint

    if (ledger is not None) != bool(data and by) or (most is not None and ledger is None):
        raise BundleError("a release is entered by --ledger, --data and --by together, and --most is for those")
    if ledger is not None and most is not None and not begin and not ledger.is_file():
        raise BundleError(
            f"no ledger at {ledger}: a limit for all releases means nothing in a new one; --begin begins it"
        )
    admit = (lambda made: add_release(ledger, made, data=data, by=by, most=most)) if ledger is not None else None
    if checkpoint.is_dir():
        if not_private or metrics is not None or state_test:
            raise BundleError(f"{checkpoint} is a bundle: what it says stays; give --out and maybe --ledger alone")
        bundle = renew_bundle(checkpoint, out, admit=admit)
    else:
        figures = _figures(metrics) if metrics is not None else []
        bundle = export_checkpoint(
            checkpoint, out, not_private=not_private, metrics=figures, state_test=state_test, admit=admit
        )
    guarantee = bundle.statement.guarantee
    if as_json:
        facts = {"bundle": str(out), "type": bundle.config.type, "privacy": bundle.statement.to_json()}
        head = {"head": read_ledger(ledger).head} if ledger is not None else {}
        typer.echo(json.dumps({**facts, "fingerprint": bundle.fingerprint} | head))
        return
    console = Console()
    console.print(f"{out}: {bundle.config.type}, {guarantee}")
    console.print(in_words(guarantee))
    for touch in bundle.statement.touches:
        if touch.status == "not_covered":
            topic = touch.topic.replace("_", " ")
            console.print(f"  not covered: {topic} ({touch.note})")
    if ledger is not None:
        booked = read_ledger(ledger)
        for total in booked.totals(data):
            console.print(f"{ledger}: {total}")
        console.print(f"head {booked.head}")


def _figures(path: Path) -> "list[Figure]":
    from ppspeech.errors import BundleError
    from ppspeech.figures import Figure

    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return [Figure(line["metric"], line["value"], line.get("unit", ""), note=line.get("note")) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as damaged:
        raise BundleError(f"{path} holds no figures, one JSON object a line: {damaged}") from None
