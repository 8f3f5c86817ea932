"""`ppspeech index`: recordings that can be searched for keywords by who may not hear them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ppspeech.cli.clips import Clips
from ppspeech.errors import AudioError, PpspeechError
from ppspeech.screen import Console

SOUNDS = frozenset({".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif"})


def index(
    sources: Annotated[list[Path], typer.Argument(help="Sound files, and folders that are looked through for them.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The archive, one file.")],
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Bundle of words or sub-word units that keywords can be spelled with; without one, by example alone."
        ),
    ] = None,
    longest: Annotated[float, typer.Option(help="Seconds of a word, at the most.", min=0.2, max=10.0)] = 1.5,
    piece: Annotated[
        float,
        typer.Option(help="Longer recordings are cut into pieces of so many seconds, each answered for.", min=1.0),
    ] = 60.0,
    names: Annotated[
        bool, typer.Option("--names", help="Tell clients what the files are called; they are numbered otherwise.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Index recordings for `ppspeech serve ARCHIVE` and `ppspeech spot`: a file that loads in a moment.

    It holds features of voices, which only its owner can read: keep it as you keep the recordings. Clients learn how
    many recordings there are, and how long the longest is.

    Examples: `ppspeech index meetings -o meetings.archive`, `ppspeech index meetings -o meetings.archive --bundle
    sentences --names`
    """
    from ppspeech.audio import Mfcc, features_of
    from ppspeech.bundle import load_bundle
    from ppspeech.service import index_recordings

    files = {name: path for source in sources for name, path in sound_files(source).items()}
    if not files:
        raise PpspeechError(f"no sound files in {', '.join(map(str, sources))}: {', '.join(sorted(SOUNDS))} are read")
    loaded = None if bundle is None else load_bundle(bundle)
    unusable = Clips()
    for name, path in list(files.items()):
        try:
            if loaded is not None:
                features_of([path], Mfcc(loaded.mfcc))
        except AudioError as error:
            unusable.bad[files.pop(name)] = str(error)
    archive = index_recordings(files, loaded, longest_s=longest, piece_s=piece, tell_names=names)
    archive.write(output)
    seconds = sum(archive.contents.lengths) * archive.contents.mfcc.hop_s
    size = output.stat().st_size
    if as_json:
        told = {"archive": str(output), "recordings": len(files), "seconds": round(seconds, 1), "bytes": size}
        typer.echo(json.dumps(told | {"units": list(archive.contents.units)}))
    else:
        units = f", {len(archive.contents.units)} units to spell with" if archive.contents.units else ""
        Console().print(f"{output}: {len(files)} recordings, {seconds:.0f} s{units}, {size / 1e6:.1f} MB")
        Console().print(f"  ppspeech serve {output}")
    unusable.tell(as_json)


def sound_files(source: Path) -> dict[str, Path]:
    """Sound files at a path, or below a folder, by name. Raises PpspeechError where there is nothing."""
    if not source.exists():
        raise PpspeechError(f"there is nothing at {source}: give sound files, or folders of them")
    if not source.is_dir():
        return {source.name: source}
    found = sorted(path for path in source.rglob("*") if path.suffix.lower() in SOUNDS and path.is_file())
    return {str(path.relative_to(source)): path for path in found}
