"""`ppspeech features`: MFCC features of sound files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ppspeech.screen import Console


def features(
    clips: Annotated[list[Path], typer.Argument(help="Sound files: WAV, FLAC, any rate.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Save the arrays here (.npz), one a clip.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Save a picture of the first clip here (.png).")] = None,
    band: Annotated[Literal["wide", "narrow"], typer.Option(help="16 kHz or 8 kHz front end.")] = "wide",
    cmvn: Annotated[Literal["utterance", "none"], typer.Option(help="Mean and variance normalization.")] = "utterance",
    vad_db: Annotated[float | None, typer.Option(help="Drop frames this far below the loudest, in dB.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip instead of a table.")] = False,
) -> None:
    """Turn sound files into MFCC features: an array to .npz, a picture to .png.

    Files that cannot be used are told at the end, with exit code 1; the others are saved.

    Example: `ppspeech features hello.wav --out hello.npz --picture hello.png`
    """
    import numpy as np
    from rich import box
    from rich.table import Table

    from ppspeech.audio import Mfcc, MfccConfig, features_of, plot_clip, read_audio
    from ppspeech.cli.clips import sort_clips
    from ppspeech.errors import AudioError
    from ppspeech.progress import track
    from ppspeech.storage import atomic_write

    if len({str(clip) for clip in clips}) != len(clips):
        raise AudioError("a clip is given twice")
    if out is not None and out.suffix != ".npz":
        raise AudioError(f"features are saved as .npz, got {out}")
    config = replace(MfccConfig.wideband() if band == "wide" else MfccConfig.narrowband(), cmvn=cmvn, vad_db=vad_db)
    mfcc = Mfcc(config)
    known = sort_clips(clips, config)
    arrays, rows = {}, []
    for clip in track(known.good, "Reading", total=len(known.good)):
        array = arrays[str(clip)] = features_of([clip], mfcc)[0].numpy()
        seconds = round(len(read_audio(clip, config.sample_rate)) / config.sample_rate, 3)
        rows.append(known.row(clip, seconds=seconds, frames=len(array), features=array.shape[1]))
    if out is not None and arrays:
        with atomic_write(out) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)
    if picture is not None and known.good:
        first = known.good[0]
        plot_clip(read_audio(first, config.sample_rate), mfcc, picture, title=first.name)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
    elif rows:
        table = Table("clip", "seconds", "frames", "features", box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*(str(row[heading]) for heading in ("clip", "seconds", "frames", "features")))
        Console().print(table)
        for kind, path in (("arrays", out), ("picture", picture)):
            if path is not None:
                Console().print(f"{kind}: {path}")
    known.tell(as_json)
