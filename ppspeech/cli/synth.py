"""`ppspeech synth`: make a corpus with the built-in voices."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ppspeech.screen import Console


def synth(
    folder: Annotated[Path, typer.Argument(help="Folder to make; it gets the recordings and a manifest.csv.")],
    words: Annotated[str, typer.Option(help="Words, separated by commas; the ten digits by default.")] = "",
    sentence: Annotated[list[str] | None, typer.Option(help="A sentence; may be given several times.")] = None,
    speakers: Annotated[int, typer.Option(help="How many of the built-in voices.", min=1)] = 40,
    takes: Annotated[int, typer.Option(help="Repetitions of each word by each speaker.", min=1)] = 5,
    styles: Annotated[str, typer.Option(help="Speaking styles, separated by commas: calm, excited.")] = "calm",
    sample_rate: Annotated[int, typer.Option(help="In Hz.")] = 16_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same recordings.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Make a corpus of words or sentences spoken by the built-in voices; no download is needed.

    Example: `ppspeech synth commands --words "start,stop,left,right" --speakers 20 --takes 3`
    """
    from ppspeech.data import SyntheticCorpus
    from ppspeech.data.corpora import DIGITS

    listed = tuple(word.strip() for word in words.split(",") if word.strip())
    sentences = tuple(sentence or ())
    corpus = SyntheticCorpus(
        words=listed if listed or sentences else DIGITS,
        sentences=sentences,
        speakers=speakers,
        takes=takes,
        styles=tuple(style.strip() for style in styles.split(",")),
        sample_rate=sample_rate,
        seed=seed,
    ).build(folder)
    if as_json:
        facts = {"folder": str(folder), "recordings": len(corpus), "speakers": len(corpus.speakers)}
        typer.echo(json.dumps(facts))
        return
    Console().print(f"{len(corpus):,} recordings by {len(corpus.speakers)} voices in {folder}")
