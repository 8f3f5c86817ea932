"""`ppspeech features`: MFCC features of sound files, or of a corpus."""

import json
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ppspeech.cli.clips import Clips, sort_clips
from ppspeech.cli.ray import Ray
from ppspeech.errors import AudioError, SpeechWarning
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.audio import MfccConfig
    from ppspeech.cluster import Pool


def features(
    clips: Annotated[
        list[Path], typer.Argument(help="Sound files: WAV, FLAC, any rate. Or one corpus, by name or folder.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the arrays here: .npz, one a clip; of a corpus, a folder that is none."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Save a picture of the first clip here (.png).")] = None,
    band: Annotated[Literal["wide", "narrow"], typer.Option(help="16 kHz or 8 kHz front end.")] = "wide",
    cmvn: Annotated[Literal["utterance", "none"], typer.Option(help="Mean and variance normalization.")] = "utterance",
    vad_db: Annotated[float | None, typer.Option(help="Drop frames this far below the loudest, in dB.")] = None,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip instead of a table.")] = False,
) -> None:
    """Turn sound files into MFCC features: an array to .npz, a picture to .png; or a corpus into a folder.

    Files that cannot be used are told at the end, with exit code 1; the others are saved. The folder of a corpus has
    its labels, and recipes train on it. What is computed of a corpus is kept: after a stop, the same command goes on.

    Examples: `ppspeech features hello.wav --out hello.npz --picture hello.png`,
    `ppspeech features recordings --out arrays --ray`, `ppspeech features recordings --out arrays --ray HOST:PORT`
    """
    from ppspeech.audio import MfccConfig
    from ppspeech.cluster import pool
    from ppspeech.data import corpus_names

    config = replace(MfccConfig.wideband() if band == "wide" else MfccConfig.narrowband(), cmvn=cmvn, vad_db=vad_db)
    corpora = [clip for clip in clips if clip.is_dir() or (str(clip) in corpus_names() and not clip.is_file())]
    if corpora and len(clips) > 1:
        raise AudioError(f"give one corpus, or sound files: {corpora[0]} is a corpus, and more is given")
    if len({str(clip) for clip in clips}) != len(clips):
        raise AudioError("a clip is given twice")
    if corpora and (out is None or out.suffix == ".npz" or picture is not None):
        raise AudioError("of a corpus the features go to a folder: give --out FOLDER, and no --picture")
    if out is not None and out.suffix != ".npz" and not corpora:
        raise AudioError(f"features are saved as .npz, got {out}")
    with pool(ray) as workers:
        if corpora and out is not None:
            _of_corpus(str(clips[0]), out, config, workers, as_json)
        else:
            _of_clips(clips, out, picture, config, workers, as_json)


def _of_corpus(name: str, out: Path, config: "MfccConfig", workers: "Pool", as_json: bool) -> None:
    from ppspeech.data import load_corpus, usable, write_features

    whole = load_corpus(name)
    corpus = usable(whole, config, skip_bad=True, workers=workers)
    frames = write_features(out, corpus, config, workers)
    row = {"folder": str(out), "recordings": len(corpus), "frames": frames, "features": config.features}
    if as_json:
        typer.echo(json.dumps({**row, "left_out": len(whole) - len(corpus)}))
    else:
        Console().print(f"{len(corpus):,} recordings, {frames:,} frames of {config.features} features in {out}")
    if len(corpus) < len(whole):
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Clip:
    """What became of a sound file."""

    array: Any = None
    seconds: float = 0.0
    refused: str = ""
    doubted: str = ""


def _of_clip(config: "MfccConfig", clip: Path) -> _Clip:
    """Features of one file, by whichever process."""
    from ppspeech.audio import Mfcc, features_of, read_audio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpeechWarning)
        try:
            known = sort_clips([clip], config)
        except AudioError as error:
            return _Clip(refused=str(error))
        array = features_of([clip], Mfcc(config))[0].numpy()
        seconds = round(len(read_audio(clip, config.sample_rate)) / config.sample_rate, 3)
    return _Clip(array, seconds, doubted=known.doubtful.get(clip, ""))


def _of_clips(
    clips: list[Path], out: Path | None, picture: Path | None, config: "MfccConfig", workers: "Pool", as_json: bool
) -> None:
    import numpy as np
    from rich import box
    from rich.table import Table

    from ppspeech.audio import Mfcc, plot_clip, read_audio
    from ppspeech.cluster import in_order
    from ppspeech.storage import atomic_write

    made = dict(zip(clips, in_order(workers, partial(_of_clip, config), clips, "Reading"), strict=True))
    known = Clips(
        [clip for clip, each in made.items() if not each.refused],
        {clip: each.refused for clip, each in made.items() if each.refused},
        {clip: each.doubted for clip, each in made.items() if each.doubted},
    )
    if known.bad and len(clips) == 1:
        raise AudioError(known.bad[clips[0]])
    for said in known.doubtful.values():
        warnings.warn(said, SpeechWarning, stacklevel=2)
    arrays = {str(clip): made[clip].array for clip in known.good}
    rows = [
        known.row(clip, seconds=made[clip].seconds, frames=len(made[clip].array), features=made[clip].array.shape[1])
        for clip in known.good
    ]
    if out is not None and arrays:
        with atomic_write(out) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)
    if picture is not None and known.good:
        first = known.good[0]
        plot_clip(read_audio(first, config.sample_rate), Mfcc(config), picture, title=first.name)
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
