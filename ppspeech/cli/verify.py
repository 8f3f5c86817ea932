"""`ppspeech verify` and `ppspeech identify`: who speaks?"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

SUFFIXES = {".wav", ".flac", ".ogg"}


def verify(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a speaker recipe.")],
    clip: Annotated[Path, typer.Argument(help="The voice to check.")],
    enrol: Annotated[list[Path], typer.Option(help="Clips of the claimed speaker; several times.")],
    threshold: Annotated[float | None, typer.Option(help="Accept at or above; the checkpoint's by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Is this the voice of the person who enrolled? In the clear; exits with 0 either way.

    Example: `ppspeech verify speaker.ckpt claim.wav --enrol ann1.wav --enrol ann2.wav`
    """
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.training import SpeakerUbm, load_checkpoint

    model = load_checkpoint(checkpoint, SpeakerUbm)
    least = model.threshold if threshold is None else threshold
    verifier = model.enrol([features_of(enrol, model.mfcc)])
    trial = features_of([clip], model.mfcc)[0].unsqueeze(0)
    with torch.no_grad():
        score = float(verifier(trial).squeeze())
    facts = {"clip": str(clip), "accepted": score >= least, "score": round(score, 4), "threshold": round(least, 4)}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    word = "[green]accepted[/]" if score >= least else "[red]rejected[/]"
    Console(highlight=False).print(f"{clip}: {word} (score {score:.3f}, threshold {least:.3f})")


def identify(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a speaker recipe.")],
    clip: Annotated[Path, typer.Argument(help="The voice to name.")],
    speakers: Annotated[Path, typer.Option(help="A folder with one folder of clips for each known speaker.")],
    threshold: Annotated[float | None, typer.Option(help="Below it, nobody; the checkpoint's by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Whose voice is it, if any of these people's? In the clear.

    Example: `ppspeech identify speaker.ckpt who.wav --speakers family/`
    """
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.errors import ModelError
    from ppspeech.training import SpeakerUbm, load_checkpoint

    if not speakers.is_dir():
        raise ModelError(f"no folder {speakers}: it holds one folder of clips for each known speaker")
    folders = sorted(folder for folder in speakers.iterdir() if folder.is_dir())
    clips = [sorted(f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES) for folder in folders]
    if not folders or not all(clips):
        raise ModelError(f"{speakers} needs one folder for each speaker with at least one sound file in each")
    model = load_checkpoint(checkpoint, SpeakerUbm)
    least = model.threshold if threshold is None else threshold
    verifier = model.enrol([features_of(own, model.mfcc) for own in clips])
    with torch.no_grad():
        scores = verifier(features_of([clip], model.mfcc)[0].unsqueeze(0)).squeeze(0)
    best = int(scores.argmax())
    known = float(scores[best]) >= least
    facts = {
        "clip": str(clip),
        "speaker": folders[best].name if known else None,
        "scores": {folder.name: round(score, 4) for folder, score in zip(folders, scores.tolist(), strict=True)},
        "threshold": round(least, 4),
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    named = f"[green]{folders[best].name}[/]" if known else "[red]nobody known[/]"
    Console(highlight=False).print(f"{clip}: {named} (best score {float(scores[best]):.3f}, threshold {least:.3f})")
