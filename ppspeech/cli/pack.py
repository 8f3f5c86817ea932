"""`ppspeech pack`: features of a corpus in a few large files, for training on more than fits in memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ppspeech.screen import Console


def pack(
    where: Annotated[str, typer.Argument(metavar="CORPUS", help="A corpus by name or folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to make.")],
    cmvn: Annotated[Literal["utterance", "none"], typer.Option(help="Mean and variance normalization.")] = "utterance",
    vad_db: Annotated[float | None, typer.Option(help="Drop frames this far below the loudest, in dB.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out recordings that cannot be used.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a line.")] = False,
) -> None:
    """Compute all features of a corpus, once, and keep them side by side: recipes read them batch by batch.

    `ppspeech train RECIPE --data.corpus FOLDER` then needs as much memory for millions of utterances as for thousands.
    The folder is as private as the speech: nobody else may read it.

    Example: `ppspeech pack my_folder --out packed`
    """
    from ppspeech.audio import MfccConfig
    from ppspeech.data import load_corpus, write_packed

    corpus = load_corpus(where)
    config = replace(MfccConfig.at_rate(corpus.sample_rate), cmvn=cmvn, vad_db=vad_db)
    packed = write_packed(out, corpus, config, skip_bad=skip_bad)
    if as_json:
        facts = {"folder": str(out), "utterances": len(packed), "frames": packed.frames, "features": config.features}
        typer.echo(json.dumps(facts))
        return
    Console().print(f"{len(packed):,} utterances, {packed.frames:,} frames of {config.features} numbers: {out}")
