"""`ppspeech transcribe`: which words, when?"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from ppspeech.screen import Console


def transcribe(
    model: Annotated[Path, typer.Argument(help="A bundle or checkpoint of hidden Markov models of words.")],
    clips: Annotated[list[Path], typer.Argument(help="Sound files of one or more words.")],
    grammar: Annotated[
        str,
        typer.Option(help="What may be said, such as `(one | two)+ [zero]`; by default any words, or the model's own."),
    ] = "",
    word_penalty: Annotated[
        float | None,
        typer.Option(
            help="Nats that every word costs; raise it against words that were not said. By default 50, or what a "
            "model of sentences says.",
            min=0.0,
        ),
    ] = None,
    garbage: Annotated[
        float | None,
        typer.Option(
            help="Nats a frame for the model of silence and other speech; the larger, the more it takes. By default 0; "
            "models of sentences have none."
        ),
    ] = None,
    beam: Annotated[float | None, typer.Option(help="Forget paths this many nats below the best.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip.")] = False,
) -> None:
    """Write down the words of a recording, with their times, in the clear. What is no word is left out.

    Example: `ppspeech transcribe words number.wav --grammar "(one | two | three)+"`
    """
    from ppspeech.bundle import load_bundle, transcriber_of

    if model.is_dir():
        transcriber = load_bundle(model).transcriber
    else:
        from ppspeech.training import load_checkpoint

        trained = load_checkpoint(model, "transcribe")
        transcriber = transcriber_of(trained.model, trained.config)
    heard = transcriber.transcribe_all(clips, grammar=grammar, word_penalty=word_penalty, garbage=garbage, beam=beam)
    for clip, words in zip(clips, heard, strict=True):
        rows = [{"word": w.value, "start": round(w.start, 2), "end": round(w.end, 2)} for w in words]
        if as_json:
            typer.echo(json.dumps({"clip": str(clip), "words": rows}))
            continue
        table = Table("word", "from", "to", title=str(clip), title_justify="left", box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(str(row["word"]), f"{row['start']} s", f"{row['end']} s")
        Console().print(table)
