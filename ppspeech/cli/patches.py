"""`ppspeech patches`: a word by patches of its spectrogram, learned from clips of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer

from ppspeech.cli.index import sound_files
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

RULES = {"linear": "a support vector machine", "stumps": "boosted"}


def patches(
    clips: Annotated[
        list[Path], typer.Argument(help="Clips of the word, and folders that are looked through for them.")
    ],
    background: Annotated[
        list[Path],
        typer.Option(
            help="Speech without the word, files or folders; several times for several. A minute at the least."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The word, one file.")],
    rule: Annotated[
        str,
        typer.Option(help="How patches are added up: `linear`, a support vector machine, or `stumps`, boosted."),
    ] = "linear",
    bins: Annotated[
        int, typer.Option(help="Places in the word where patches are looked for, 0.12 s apart.", min=1, max=15)
    ] = 6,
    per_bin: Annotated[int, typer.Option(help="Patches of each: more find more, and cost more.", min=1, max=31)] = 6,
    alarms: Annotated[
        float, typer.Option(help="Places a minute, of background kept aside, where it may be found and is not.", min=0)
    ] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Learn a word from clips of it, for `ppspeech spot WORD.patches` in archives that others have.

    Every fourth clip and recording is kept aside, to say how often the word is found where it is, and to choose from
    where on it counts as said. The file was cut from voices: keep it as you keep the clips. A server that is asked with
    it sees the rule, the bins and how many patches each has.

    Examples: `ppspeech patches takes --background talks -o invoice.patches`, `ppspeech patches a.wav b.wav c.wav d.wav
    --background talks --rule stumps --per-bin 8 -o invoice.patches --json`
    """
    from ppspeech.protocols.search import Rule
    from ppspeech.service import learn_patch_word

    if rule not in RULES:
        raise PpspeechError(f"--rule is {' or '.join(RULES)}, got {rule}")
    heard = [path for source in clips for path in sound_files(source).values()]
    without = [path for source in background for path in sound_files(source).values()]
    word = learn_patch_word(heard, without, rule=cast("Rule", rule), bins=bins, per_bin=per_bin, alarms=alarms)
    word.write(output)
    told = asdict(word.learned)
    if as_json:
        typer.echo(json.dumps({"word": str(output), "rule": rule, "patches": bins * per_bin, **told}))
        return
    console = Console()
    console.print(f"{output}: {bins * per_bin} patches, {RULES[rule]}, from {told['clips']} clips")
    console.print(
        f"  of what was kept aside {told['found']} of {told['aside']} clips are found, with {told['alarms']} false "
        f"alarms in {told['aside_minutes']:.1f} minutes"
    )
    console.print(f"  ppspeech spot {output} --server HOST:PORT")
