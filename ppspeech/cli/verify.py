"""`ppspeech verify` and `ppspeech identify`: who speaks?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, ShowTranscript, door_to
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import Verifier
    from ppspeech.service import Answer, Door


def verify(
    model: Annotated[Path, typer.Argument(help="A speaker bundle or checkpoint; with --server, a bundle.")],
    clip: Annotated[Path, typer.Argument(help="The voice to check.")],
    enroll: Annotated[list[Path] | None, typer.Option(help="Clips of the claimed speaker; several times.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Accept at or above; the model's by default.")] = None,
    claim: Annotated[int | None, typer.Option(help="With --server: the place that enrollment gave.", min=0)] = None,
    keeper: Annotated[str, typer.Option(help="HOST:PORT of an `enroll --private`: the server has ciphertexts.")] = "",
    keeper_pin: Annotated[str, typer.Option(help="Fingerprint of the keeper's certificate, which it prints.")] = "",
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

    Exits with 0 either way. Neither a server nor a keeper learns which place is claimed.

    Examples: `ppspeech verify voices claim.wav --enroll ann1.wav --enroll ann2.wav`,
    `ppspeech verify voices claim.wav --claim 0 --server 127.0.0.1:7000 --pin …`,
    `ppspeech verify voices claim.wav --claim 0 --server … --pin … --keeper 127.0.0.1:7001 --keeper-pin …`
    """
    if server:
        if enroll or threshold is not None or claim is None:
            raise ModelError("with --server, give --claim PLACE; enrollment and threshold are the server's")
        door = door_to(server, pin, ca, certificate, key, insecure)
        other = None
        if keeper:
            other = door_to(keeper, keeper_pin, None if keeper_pin else ca, certificate, key, insecure)
        _ask(door, model, clip, service, claim, show_transcript, as_json, other)
        return
    if not enroll or claim is not None or keeper:
        raise ModelError("give clips of the claimed speaker with --enroll, or --claim PLACE with --server")
    found = _load(model).verify(enroll, [clip], threshold=threshold)
    score, least = found.score, found.threshold
    facts = {"clip": str(clip), "accepted": found.value, "score": round(score, 4), "threshold": round(least, 4)}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    scores = f" (score {score:.3f}, threshold {least:.3f})"
    Console().print(Text.assemble(f"{clip}: ", _in_words(found.value), scores))


def identify(
    model: Annotated[Path, typer.Argument(help="A speaker bundle or checkpoint; with --server, a bundle.")],
    clip: Annotated[Path, typer.Argument(help="The voice to name.")],
    speakers: Annotated[
        Path | None, typer.Option(help="A folder with one folder of clips for each known speaker.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Below it, nobody; the model's by default.")] = None,
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

    Examples: `ppspeech identify voices who.wav --speakers family/`,
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
    from ppspeech.data import clips_by_speaker

    found = _load(model).identify([clip], clips_by_speaker(speakers), threshold=threshold)
    facts = {
        "clip": str(clip),
        "speaker": found.value,
        "scores": {name: round(score, 4) for name, score in found.scores.items()},
        "threshold": round(found.threshold, 4),
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    best, least = max(found.scores.values()), found.threshold
    scores = f" (best score {best:.3f}, threshold {least:.3f})"
    Console().print(Text.assemble(f"{clip}: ", _in_words(found.value), scores))


def _load(path: Path) -> "Verifier":
    """A speaker bundle, which is a folder, or a checkpoint, which is a file."""
    from ppspeech.bundle import Verifier, load_bundle

    if path.is_dir():
        return load_bundle(path).verifier
    from ppspeech.training import load_checkpoint

    trained = load_checkpoint(path, "verify")
    return Verifier.of(trained.model, trained.config)


def _ask(
    door: "Door",
    bundle: Path,
    clip: Path,
    service: str,
    claim: int | None,
    show_transcript: bool,
    as_json: bool,
    keeper: "Door | None" = None,
) -> None:
    """Ask a server, or the keeper of a gallery there, about a voice: a claim, or whose it is."""
    from ppspeech.cli.transcripts import show_transcript as show
    from ppspeech.service import connect_through

    answer: Answer[bool | None] | Answer[str | None]
    with connect_through(
        door, bundle=bundle, model=service or None, keeper=keeper, keep_payloads=show_transcript
    ) as client:
        answer = client.identify([clip]) if claim is None else client.verify(claim, [clip])
        ours = answer.value is not None if claim is not None else client.offer.terms.names == "client"
    said = "speaker" if claim is None else "accepted"
    if as_json:
        cost = {"seconds": round(answer.seconds, 3), "bytes": answer.bytes_up + answer.bytes_down}
        typer.echo(json.dumps({"clip": str(clip), said: answer.value, **cost, "rounds": answer.rounds}))
    else:
        words = _in_words(answer.value) if ours else Text("the other party knows")
        megabytes = (answer.bytes_up + answer.bytes_down) / 1e6
        cost_words = f" ({answer.seconds:.2f} s, {megabytes:.2f} MB, {answer.rounds} rounds)"
        Console().print(Text.assemble(f"{clip}: ", words, cost_words))
    if show_transcript:
        show(answer.transcript)


def _in_words(value: bool | str | None) -> Text:
    if isinstance(value, bool):
        return Text("accepted", "green") if value else Text("rejected", "red")
    return Text("nobody known", "red") if value is None else Text(value, "green")
