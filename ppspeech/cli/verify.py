"""`ppspeech verify` and `ppspeech identify`: who speaks?"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, ShowTranscript, door_to
from ppspeech.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

    from ppspeech.audio import MfccConfig
    from ppspeech.models import SpeakerVerifier
    from ppspeech.service.client import Door, SpeakerAnswer


@dataclass(frozen=True)
class Speakers:
    """A background model in the clear, from a checkpoint or a bundle.

    Attributes:
        mfcc: its front end.
        threshold: a trial is accepted at or above it; None where none was released.
        enroll: a verifier from the features of each speaker's clips.
    """

    mfcc: "MfccConfig"
    threshold: float | None
    enroll: "Callable[[Sequence[Sequence[Tensor]]], SpeakerVerifier]"

    def least(self, chosen: float | None) -> float:
        """The threshold that was chosen, else the model's own.

        Raises:
            ModelError: if there is neither.
        """
        found = self.threshold if chosen is None else chosen
        if found is None:
            raise ModelError("the bundle was released without a threshold: give --threshold, such as 0.2")
        return found


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
        if keeper:
            other = door_to(keeper, keeper_pin, None if keeper_pin else ca, certificate, key, insecure)
            _probe(door, other, model, clip, service, claim, show_transcript, as_json)
        else:
            _ask(door, model, clip, service, claim, show_transcript, as_json)
        return
    if not enroll or claim is not None or keeper:
        raise ModelError("give clips of the claimed speaker with --enroll, or --claim PLACE with --server")
    import torch

    from ppspeech.cli.clips import features_of

    speakers = _load(model)
    least = speakers.least(threshold)
    verifier = speakers.enroll([features_of(enroll, speakers.mfcc)])
    trial = features_of([clip], speakers.mfcc)[0].unsqueeze(0)
    with torch.no_grad():
        score = float(verifier(trial).squeeze())
    facts = {"clip": str(clip), "accepted": score >= least, "score": round(score, 4), "threshold": round(least, 4)}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    word = "[green]accepted[/]" if score >= least else "[red]rejected[/]"
    Console(highlight=False).print(f"{clip}: {word} (score {score:.3f}, threshold {least:.3f})")


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
    import torch

    from ppspeech.cli.clips import features_of
    from ppspeech.data import clips_by_speaker

    clips = clips_by_speaker(speakers)
    known = _load(model)
    least = known.least(threshold)
    verifier = known.enroll([features_of(own, known.mfcc) for own in clips.values()])
    with torch.no_grad():
        scores = verifier(features_of([clip], known.mfcc)[0].unsqueeze(0)).squeeze(0)
    best = int(scores.argmax())
    named = list(clips)[best] if float(scores[best]) >= least else None
    facts = {
        "clip": str(clip),
        "speaker": named,
        "scores": {name: round(score, 4) for name, score in zip(clips, scores.tolist(), strict=True)},
        "threshold": round(least, 4),
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    shown = f"[green]{named}[/]" if named is not None else "[red]nobody known[/]"
    Console(highlight=False).print(f"{clip}: {shown} (best score {float(scores[best]):.3f}, threshold {least:.3f})")


def _load(path: Path) -> Speakers:
    """A speaker bundle, which is a folder, or a checkpoint, which is a file."""
    if not path.is_dir():
        from ppspeech.training import SpeakerUbm, load_checkpoint

        trained = load_checkpoint(path, SpeakerUbm)
        return Speakers(trained.mfcc, trained.threshold, trained.enroll)
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.bundle import load_bundle
    from ppspeech.models import SpeakerVerifier
    from ppspeech.service import background_of, released_threshold

    bundle = load_bundle(path)
    ubm, relevance = background_of(bundle)

    def enroll(clips: "Sequence[Sequence[Tensor]]") -> SpeakerVerifier:
        joined = [torch.cat(list(own)) for own in clips]
        lengths = torch.tensor([len(frames) for frames in joined])
        return SpeakerVerifier.enroll(ubm, pad_sequence(joined, batch_first=True), lengths, relevance=relevance)

    return Speakers(bundle.mfcc, released_threshold(bundle), enroll)


def _probe(
    door: "Door",
    keeper: "Door",
    bundle: Path,
    clip: Path,
    service: str,
    claim: int,
    show_transcript: bool,
    as_json: bool,
) -> None:
    """Claim a place of a gallery that its server cannot read."""
    from ppspeech.bundle import load_bundle
    from ppspeech.service import connect_speakers
    from ppspeech.service.client import connect_keeper

    with (
        connect_speakers(door, load_bundle(bundle), model=service or None) as store,
        connect_keeper(store, keeper, keep_payloads=show_transcript) as client,
    ):
        answer = client.verify(claim, [clip])
    _show(clip, answer, True, show_transcript, as_json)


def _ask(
    door: "Door", bundle: Path, clip: Path, service: str, claim: int | None, show_transcript: bool, as_json: bool
) -> None:
    """Ask a server about a voice: a claim, or whose it is."""
    from ppspeech.bundle import load_bundle
    from ppspeech.service import connect_speakers

    loaded = load_bundle(bundle)
    with connect_speakers(door, loaded, model=service or None, keep_payloads=show_transcript) as client:
        answer = client.identify([clip]) if claim is None else client.verify(claim, [clip])
        ours = claim is not None or client.offer.names == "client"
    _show(clip, answer, claim is not None, show_transcript, as_json, ours=ours)


def _show(
    clip: Path, answer: "SpeakerAnswer", is_claim: bool, show_transcript: bool, as_json: bool, *, ours: bool = True
) -> None:
    from ppspeech.cli.transcripts import show_transcript as show

    if as_json:
        typer.echo(json.dumps(_facts(clip, answer, is_claim)))
    else:
        Console(highlight=False).print(f"{clip}: {_in_words(answer, is_claim, ours)}", soft_wrap=True)
    if show_transcript:
        show(answer.transcript)


def _facts(clip: Path, answer: "SpeakerAnswer", is_claim: bool) -> dict[str, Any]:
    found = {"accepted": answer.accepted} if is_claim else {"speaker": answer.name}
    cost = {"seconds": round(answer.seconds, 3), "bytes": answer.bytes_up + answer.bytes_down, "rounds": answer.rounds}
    return {"clip": str(clip), **found, **cost}


def _in_words(answer: "SpeakerAnswer", is_claim: bool, ours: bool) -> str:
    cost = f"({answer.seconds:.2f} s, {(answer.bytes_up + answer.bytes_down) / 1e6:.2f} MB, {answer.rounds} rounds)"
    if not ours or (is_claim and answer.accepted is None):
        return f"the other party knows {cost}"
    if is_claim:
        return ("[green]accepted[/] " if answer.accepted else "[red]rejected[/] ") + cost
    return (f"[green]{answer.name}[/] " if answer.name is not None else "[red]nobody known[/] ") + cost
