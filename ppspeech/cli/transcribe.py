"""`ppspeech transcribe`: which words, when?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table


def transcribe(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a keyword recipe.")],
    clips: Annotated[list[Path], typer.Argument(help="Sound files of one or more words.")],
    grammar: Annotated[
        str, typer.Option(help="What may be said, such as `(one | two)+ [zero]`; any words by default.")
    ] = "",
    word_penalty: Annotated[
        float, typer.Option(help="Nats that every word costs; raise it against words that were not said.", min=0.0)
    ] = 50.0,
    beam: Annotated[float | None, typer.Option(help="Forget paths this many nats below the best.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip.")] = False,
) -> None:
    """Write down the words of a recording, with their times, in the clear.

    Example: `ppspeech transcribe word.ckpt number.wav --grammar "(one | two | three)+"`
    """
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.models.decoding import OneOf, Repeated, decode, grammar_graph, parse_grammar, units_of_bank
    from ppspeech.models.hmm import HiddenMarkovModel
    from ppspeech.training import load_checkpoint

    trained = load_checkpoint(checkpoint, "transcribe")
    bank, names, front_end = trained.model, trained.config.labels, trained.config.front_end
    assert isinstance(bank, HiddenMarkovModel)
    allowed = parse_grammar(grammar) if grammar else Repeated(OneOf(names))
    units = {
        name: replace(unit, log_initial=tuple(entry - word_penalty for entry in unit.log_initial))
        for name, unit in units_of_bank(bank, names).items()
    }
    graph = grammar_graph(allowed, units)
    hop = front_end.hop_s
    for clip, features in zip(clips, features_of(clips, front_end), strict=True):
        with torch.no_grad():
            scores = bank.emission.log_likelihood(features.unsqueeze(0)).flatten(2).squeeze(0)
        heard = decode(graph, scores, beam)
        rows = [{"word": w.word, "start": round(w.start * hop, 2), "end": round(w.end * hop, 2)} for w in heard.words]
        if as_json:
            typer.echo(json.dumps({"clip": str(clip), "words": rows}))
            continue
        table = Table("word", "from", "to", title=str(clip), title_justify="left", box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(str(row["word"]), f"{row['start']} s", f"{row['end']} s")
        Console().print(table)
