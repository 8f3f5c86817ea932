"""`ppspeech voices`: tell people apart by a public network, with thresholds set among other people."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console


def learn(
    out: Annotated[Path, typer.Option(help="Folder of the bundle; must not exist.")],
    cohort: Annotated[
        str, typer.Argument(metavar="[COHORT]", help="Other people: a folder of clips each, or a corpus; 5 or more.")
    ] = "",
    built_in: Annotated[
        bool, typer.Option("--built-in", help="The built-in voices as a cohort, to try out: they are nobody.")
    ] = False,
    without: Annotated[
        bool, typer.Option("--without", help="No cohort: whoever decides brings one (`verify --cohort`).")
    ] = False,
    public: Annotated[
        bool, typer.Option("--public", help="The cohort is public speech; otherwise these people must agree.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Make a bundle that tells people apart by a public network; nothing is trained, thresholds come from a cohort.

    The cohort is other people, recorded like those who will try, not those who will be enrolled. The voices of its
    people are in the bundle, as directions of 256 numbers by which they can be recognized: they must agree to that, or
    be public. `verify`, `identify`, `enroll` and `serve` take the bundle.

    Examples: `ppspeech voices learn others --out voices`, `ppspeech voices learn audiomnist --public --out voices`,
    `ppspeech voices learn --built-in --out voices`, `ppspeech voices learn --without --out voices`
    """
    from ppspeech.training import learn_voices

    if bool(cohort) + built_in + without != 1:
        raise PpspeechError(
            "whose voices are thresholds set among? Give a folder of people, a corpus, --built-in or --without"
        )
    bundle = learn_voices("synthetic" if built_in else cohort or None, out, public=public)
    impostors = bundle.verifier.impostors
    people, frames = (0, ()) if impostors is None else (impostors.people, impostors.frames)
    if as_json:
        facts = {"bundle": str(out), "type": bundle.config.type, "people": people, "frames": list(frames)}
        typer.echo(json.dumps({**facts, "public": public or built_in, "fingerprint": bundle.fingerprint}))
        return
    console = Console()
    console.print(f"{out}: {bundle.config.input}")
    console.print(bundle.config.task)
    for touch in bundle.statement.touches:
        if touch.topic == "threshold" and touch.status == "not_covered":
            console.print(f"  not covered: {touch.note}: they must agree to it", style="yellow")


VOICE_COMMANDS: dict[str, Callable[..., None]] = {"learn": learn}
