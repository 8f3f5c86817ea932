"""`ppspeech verify` and `ppspeech identify`: who speaks?"""

import json
from collections.abc import Mapping
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


FalseAccept = Annotated[
    float, typer.Option(help="Accept a stranger at this rate, 0 to 1; what it takes depends on how much is said.")
]
Cohort = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Other people recorded like these, ten or more: a folder of clips each, or a corpus. By default those in "
        "the bundle.",
    ),
]


def verify(
    bundle: Annotated[Path, typer.Argument(help="A speaker bundle, or a checkpoint without --server.")],
    clip: Annotated[Path, typer.Argument(help="The voice to check.")],
    enroll: Annotated[list[Path] | None, typer.Option(help="Clips of the claimed speaker; several times.")] = None,
    false_accept: FalseAccept = 0.01,
    cohort: Cohort = "",
    threshold: Annotated[
        float | None, typer.Option(help="A cosine of your own instead; no rate is known then.")
    ] = None,
    claim: Annotated[int | None, typer.Option(help="With --server: the place that enrollment gave.", min=0)] = None,
    keeper: Annotated[str, typer.Option(help="HOST:PORT of an `enroll --private`: the server has ciphertexts.")] = "",
    keeper_pin: Annotated[str, typer.Option(help="Fingerprint of the keeper's certificate, which it prints.")] = "",
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Is this the voice of the person who enrolled? In the clear, or by a server that does not hear it.

    The threshold is set for this claim, among other people's voices with as much speech as the clip. Speech that is
    unlike theirs is rejected, and said to be. Exits with 0 either way. Neither a server nor a keeper learns which place
    is claimed.

    Examples: `ppspeech verify voices claim.wav --enroll ann1.wav --enroll ann2.wav --cohort others/`,
    `ppspeech verify voices claim.wav --claim 17 --server 127.0.0.1:7000 --pin …`,
    `ppspeech verify voices claim.wav --claim 17 --server … --pin … --keeper 127.0.0.1:7001 --keeper-pin …`
    """
    if server:
        if enroll or threshold is not None or cohort or claim is None:
            raise ModelError("with --server, give --claim PLACE; enrollment, cohort and threshold are the server's")
        door = door_to(server, pin, ca, certificate, key, insecure)
        other = None
        if keeper:
            other = door_to(keeper, keeper_pin, None if keeper_pin else ca, certificate, key, insecure)
        _ask(door, bundle, clip, model, claim, show_transcript, as_json, other)
        return
    if not enroll or claim is not None or keeper:
        raise ModelError("give clips of the claimed speaker with --enroll, or --claim PLACE with --server")
    found = _load(bundle, cohort).verify(enroll, [clip], false_accept=false_accept, threshold=threshold)
    score, least = found.score, found.threshold
    facts = {
        "clip": str(clip),
        "accepted": found.value,
        "score": round(score, 4),
        "threshold": round(least, 4),
        "false_accept": found.false_accept,
        "unlike": list(found.unlike),
    }
    _say(facts, found.value, f"score {score:.3f}, threshold {least:.3f}{_at_rate(found.false_accept)}", as_json)


def identify(
    bundle: Annotated[Path, typer.Argument(help="A speaker bundle, or a checkpoint without --server.")],
    clip: Annotated[Path, typer.Argument(help="The voice to name.")],
    speakers: Annotated[
        Path | None, typer.Option(help="A folder with one folder of clips for each known speaker.")
    ] = None,
    false_accept: FalseAccept = 0.01,
    cohort: Cohort = "",
    threshold: Annotated[float | None, typer.Option(help="A cosine of your own instead; below it, nobody.")] = None,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Whose voice is it, if any of these people's? In the clear, or by a server that does not hear it.

    A stranger gets any name at the false-accept rate; otherwise it is nobody known.

    Examples: `ppspeech identify voices who.wav --speakers family/ --cohort others/`,
    `ppspeech identify voices who.wav --server 127.0.0.1:7000 --pin …`
    """
    if server:
        if speakers is not None or threshold is not None or cohort:
            raise ModelError("with --server, speakers, cohort and threshold are the server's")
        door = door_to(server, pin, ca, certificate, key, insecure)
        _ask(door, bundle, clip, model, None, show_transcript, as_json)
        return
    if speakers is None:
        raise ModelError("give the folder of known speakers with --speakers, or a --server that knows them")
    from ppspeech.data import clips_by_speaker

    verifier, known = _load(bundle, cohort), clips_by_speaker(speakers)
    found = verifier.identify([clip], known, false_accept=false_accept, threshold=threshold)
    facts = {
        "clip": str(clip),
        "speaker": found.value,
        "scores": {name: round(score, 4) for name, score in found.scores.items()},
        "thresholds": {name: round(least, 4) for name, least in found.thresholds.items()},
        "false_accept": found.false_accept,
        "unlike": list(found.unlike),
    }
    best = max(found.scores, key=lambda name: found.scores[name] - found.thresholds[name])
    scores = f"best score {found.scores[best]:.3f}, threshold {found.thresholds[best]:.3f}"
    _say(facts, found.value, scores + _at_rate(found.false_accept), as_json)


def _say(facts: Mapping[str, object], value: bool | str | None, scores: str, as_json: bool) -> None:
    """The decision, and loudly what the model cannot judge."""
    if as_json:
        typer.echo(json.dumps(facts))
        return
    Console().print(Text.assemble(f"{facts['clip']}: ", _in_words(value), f" ({scores})"))
    held = "nothing is accepted at a rate" if facts["false_accept"] is not None else "the threshold may not hold"
    unlike = facts["unlike"]
    assert isinstance(unlike, list)
    _warn(unlike, f"{held}: give a cohort that was recorded like these clips (--cohort FOLDER)")


def _warn(unlike: list[str], so: str) -> None:
    for each in unlike:
        Console(stderr=True).print(Text.assemble(("warning: ", "yellow"), each))
    if unlike:
        Console(stderr=True).print(f"  {so}")


def _at_rate(false_accept: float | None) -> str:
    return "" if false_accept is None else f" for a false-accept rate of {false_accept:g}"


def _load(path: Path, cohort: str) -> "Verifier":
    """A speaker bundle, which is a folder, or a checkpoint, which is a file; with a cohort of one's own."""
    from ppspeech.bundle import Verifier, load_bundle

    if path.is_dir():
        verifier = load_bundle(path).verifier
    else:
        from ppspeech.training import load_checkpoint

        trained = load_checkpoint(path, "verify")
        verifier = Verifier.of(trained.model, trained.config)
    if not cohort:
        return verifier
    from ppspeech.data import cohort_at

    return verifier.among([clip.path for clip in own] for own in cohort_at(cohort))


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
    import torch

    from ppspeech.cli.transcripts import show_transcript as show
    from ppspeech.service import connect_through

    answer: Answer[bool | None] | Answer[str | None]
    with connect_through(
        door, bundle=bundle, model=service or None, keeper=keeper, keep_payloads=show_transcript
    ) as client:
        answer = client.identify([clip]) if claim is None else client.verify(claim, [clip])
        ours = answer.value is not None if claim is not None else client.offer.terms.names == "client"
        assert client.bundle is not None
        verifier = client.bundle.verifier
        unlike = verifier.unlike({"the trial": torch.cat(verifier.features([clip]))})
    said = "speaker" if claim is None else "accepted"
    if as_json:
        cost = {"seconds": round(answer.seconds, 3), "bytes": answer.bytes_up + answer.bytes_down}
        typer.echo(
            json.dumps({"clip": str(clip), said: answer.value, **cost, "rounds": answer.rounds, "unlike": unlike})
        )
    else:
        words = _in_words(answer.value) if ours else Text("the other party knows")
        megabytes = (answer.bytes_up + answer.bytes_down) / 1e6
        cost_words = f" ({answer.seconds:.2f} s, {megabytes:.2f} MB, {answer.rounds} rounds)"
        Console().print(Text.assemble(f"{clip}: ", words, cost_words))
        _warn(unlike, "the bundle's cohort says nothing about it, and the server cannot hear it")
    if show_transcript:
        show(answer.transcript)


def _in_words(value: bool | str | None) -> Text:
    if isinstance(value, bool):
        return Text("accepted", "green") if value else Text("rejected", "red")
    return Text("nobody known", "red") if value is None else Text(value, "green")
