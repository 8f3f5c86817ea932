"""`ppspeech verify` and `ppspeech identify`: who speaks?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, ShowTranscript, door_to
from ppspeech.errors import ModelError

if TYPE_CHECKING:
    from ppspeech.encrypted.client import Door
    from ppspeech.encrypted.speaker_client import SpeakerAnswer

SUFFIXES = {".wav", ".flac", ".ogg"}


def verify(
    model: Annotated[Path, typer.Argument(help="A checkpoint of a speaker recipe; with --server, a bundle.")],
    clip: Annotated[Path, typer.Argument(help="The voice to check.")],
    enrol: Annotated[list[Path] | None, typer.Option(help="Clips of the claimed speaker; several times.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Accept at or above; the checkpoint's by default.")] = None,
    claim: Annotated[int | None, typer.Option(help="With --server: the place that enrolment gave.", min=0)] = None,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    service: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Is this the voice of the person who enrolled? In the clear, or by a server that does not hear it.

    Exits with 0 either way. A server does not learn which place is claimed.

    Examples: `ppspeech verify speaker.ckpt claim.wav --enrol ann1.wav --enrol ann2.wav`,
    `ppspeech verify voices claim.wav --claim 0 --server 127.0.0.1:7000 --pin …`
    """
    if server:
        if enrol or threshold is not None or claim is None:
            raise ModelError("with --server, give --claim PLACE; enrolment and threshold are the server's")
        door = door_to(server, pin, ca, certificate, key, insecure)
        _ask(door, model, clip, service, claim, show_transcript, as_json)
        return
    if not enrol or claim is not None:
        raise ModelError("give clips of the claimed speaker with --enrol, or --claim PLACE with --server")
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.training import SpeakerUbm, load_checkpoint

    trained = load_checkpoint(model, SpeakerUbm)
    least = trained.threshold if threshold is None else threshold
    verifier = trained.enrol([features_of(enrol, trained.mfcc)])
    trial = features_of([clip], trained.mfcc)[0].unsqueeze(0)
    with torch.no_grad():
        score = float(verifier(trial).squeeze())
    facts = {"clip": str(clip), "accepted": score >= least, "score": round(score, 4), "threshold": round(least, 4)}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    word = "[green]accepted[/]" if score >= least else "[red]rejected[/]"
    Console(highlight=False).print(f"{clip}: {word} (score {score:.3f}, threshold {least:.3f})")


def identify(
    model: Annotated[Path, typer.Argument(help="A checkpoint of a speaker recipe; with --server, a bundle.")],
    clip: Annotated[Path, typer.Argument(help="The voice to name.")],
    speakers: Annotated[
        Path | None, typer.Option(help="A folder with one folder of clips for each known speaker.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Below it, nobody; the checkpoint's by default.")] = None,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    service: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Whose voice is it, if any of these people's? In the clear, or by a server that does not hear it.

    Examples: `ppspeech identify speaker.ckpt who.wav --speakers family/`,
    `ppspeech identify voices who.wav --server 127.0.0.1:7000 --pin …`
    """
    if server:
        if speakers is not None or threshold is not None:
            raise ModelError("with --server, speakers and threshold are the server's")
        door = door_to(server, pin, ca, certificate, key, insecure)
        _ask(door, model, clip, service, None, show_transcript, as_json)
        return
    if speakers is None:
        raise ModelError("give the folder of known speakers with --speakers, or a --server that knows them")
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.training import SpeakerUbm, load_checkpoint

    if not speakers.is_dir():
        raise ModelError(f"no folder {speakers}: it holds one folder of clips for each known speaker")
    folders = sorted(folder for folder in speakers.iterdir() if folder.is_dir())
    clips = [sorted(f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES) for folder in folders]
    if not folders or not all(clips):
        raise ModelError(f"{speakers} needs one folder for each speaker with at least one sound file in each")
    trained = load_checkpoint(model, SpeakerUbm)
    least = trained.threshold if threshold is None else threshold
    verifier = trained.enrol([features_of(own, trained.mfcc) for own in clips])
    with torch.no_grad():
        scores = verifier(features_of([clip], trained.mfcc)[0].unsqueeze(0)).squeeze(0)
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


def _ask(
    door: "Door", bundle: Path, clip: Path, service: str, claim: int | None, show_transcript: bool, as_json: bool
) -> None:
    """Ask a server about a voice: a claim, or whose it is."""
    from ppspeech.bundle import load_bundle
    from ppspeech.cli.transcripts import show_transcript as show
    from ppspeech.encrypted import connect_speakers

    loaded = load_bundle(bundle)
    with connect_speakers(door, loaded, model=service or None, keep_payloads=show_transcript) as client:
        answer = client.identify([clip]) if claim is None else client.verify(claim, [clip])
        decides = client.offer.decision
    if as_json:
        typer.echo(json.dumps(_facts(clip, answer, claim is not None)))
    else:
        Console(highlight=False).print(f"{clip}: {_in_words(answer, claim is not None, decides)}", soft_wrap=True)
    if show_transcript:
        show(answer.transcript)


def _facts(clip: Path, answer: "SpeakerAnswer", is_claim: bool) -> dict[str, Any]:
    found = {"accepted": answer.accepted} if is_claim else {"speaker": answer.name}
    cost = {"seconds": round(answer.seconds, 3), "bytes": answer.bytes_up + answer.bytes_down, "rounds": answer.rounds}
    return {"clip": str(clip), **found, **cost}


def _in_words(answer: "SpeakerAnswer", is_claim: bool, decides: str) -> str:
    cost = f"({answer.seconds:.2f} s, {(answer.bytes_up + answer.bytes_down) / 1e6:.2f} MB, {answer.rounds} rounds)"
    if is_claim and decides == "server":
        return f"the server knows {cost}"
    if is_claim:
        return ("[green]accepted[/] " if answer.accepted else "[red]rejected[/] ") + cost
    return (f"[green]{answer.name}[/] " if answer.name is not None else "[red]nobody known[/] ") + cost
