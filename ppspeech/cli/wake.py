"""`ppspeech wake`: a second opinion on wake words, by a server that does not hear."""

import json
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Outcome, Pin, Server, door_to
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.service import Checked, Client, Wake


def wake(
    clips: Annotated[
        list[Path] | None, typer.Argument(help="Sound files to listen to; without any, the microphone.")
    ] = None,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    first: Annotated[
        Path | None,
        typer.Option(help="The device's own first stage: a bundle with a head on windows. By default, any speech."),
    ] = None,
    slack: Annotated[
        float, typer.Option(help="With --first: nats below its background at which a word still fires it.")
    ] = 2.0,
    who: Annotated[
        Path | None,
        typer.Option(help="Ask who spoke as well: the bundle of voices that the same server has people enrolled with."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Of the microphone; 0 listens until Ctrl-C.", min=0)] = 0.0,
    wyoming: Annotated[
        str, typer.Option(help="Be a wake word service of Home Assistant, at such as tcp://127.0.0.1:10400.")
    ] = "",
    anyone: Annotated[
        bool, typer.Option("--anyone", help="With --wyoming: let other machines in. Their sound is not encrypted.")
    ] = False,
    outcome: Outcome = "client",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for every question.")] = False,
) -> None:
    """Check wake words twice: a first stage fires here, then a server's secret model tells the last two seconds.

    The server learns neither the sound nor the outcome; it sees when the first stage fired, since it is asked then.
    With --who it is asked each time who spoke, too, whatever the word was.

    Examples: `ppspeech wake --server 127.0.0.1:7000 --pin …`, `ppspeech wake evening.wav --server 127.0.0.1:7000
    --pin … --first small --json`, `ppspeech wake --server 127.0.0.1:7000 --pin … --who voices`, `ppspeech wake
    --wyoming tcp://127.0.0.1:10400 --server 127.0.0.1:7000 --pin …`
    """
    given = list(clips or ())
    if wyoming and given:
        raise ModelError("with --wyoming sound comes from Home Assistant: give no sound files")
    if not wyoming and not given:
        from ppspeech.audio import find_recorder

        find_recorder()  # before a query is spent
    door = door_to(server, pin, ca, certificate, key, insecure)
    from ppspeech.service import connect_through

    make, sounds = _stages(first, slack), [] if wyoming else _sounds(given, seconds)

    def opened() -> "Client":
        return connect_through(door, model=model or None, task="words", outcome=outcome)

    def opened_who() -> "Client":
        return connect_through(door, bundle=who)

    if wyoming:
        _bridge(wyoming, opened, make, None if who is None else opened_who, anyone)
        return
    with opened() as client, nullcontext() if who is None else opened_who() as voices:
        listening = make(client, voices)
        for name, sound in sounds:
            listening.forget()
            for each in listening.over(sound):
                _show(name, each, outcome, as_json)
            for each in listening.end():
                _show(name, each, outcome, as_json)


def _stages(first: Path | None, slack: float) -> "Callable[[Client, Client | None], Wake]":
    """How a first and a second stage are put together."""
    from ppspeech.service import HeadStage, SpeechStage, Wake

    if first is None:
        return lambda client, who: Wake(client, SpeechStage(), who)
    from ppspeech.bundle import EmbeddedRecognizer, load_bundle

    recognizer = load_bundle(first).recognizer
    if not isinstance(recognizer, EmbeddedRecognizer):
        raise ModelError(f"{first} is no head on a public embedding: `ppspeech inspect {first}` says what it is")
    HeadStage(recognizer, slack)  # or it is refused before anybody connects
    return lambda client, who: Wake(client, HeadStage(recognizer, slack), who)


def _sounds(clips: list[Path], seconds: float) -> list[tuple[str, Iterable[Any]]]:
    """By name; files are read before anybody is asked."""
    from ppspeech.audio import record, samples_at
    from ppspeech.service import WAKE_RATE

    if not clips:
        return [("the microphone", record(seconds, WAKE_RATE))]
    return [(str(clip), [samples_at(clip, None, WAKE_RATE)]) for clip in clips]


def _bridge(
    uri: str,
    opened: "Callable[[], Client]",
    make: "Callable[[Client, Client | None], Wake]",
    opened_who: "Callable[[], Client] | None",
    anyone: bool,
) -> None:
    import asyncio

    from ppspeech.service import Bridge

    bridge = Bridge(uri, opened, make, open_who=opened_who, anyone=anyone)
    asyncio.run(
        bridge.run(lambda address: Console().print(f"Wyoming at tcp://{address}; Ctrl-C ends it", soft_wrap=True))
    )


def _show(name: str, checked: "Checked", outcome: str, as_json: bool) -> None:
    if as_json:
        told = {"word": checked.word} if outcome == "client" else {}
        cost = {"seconds": round(checked.seconds, 4), "bytes": checked.bytes}
        named = {} if checked.speaker is None else {"speaker": checked.speaker}
        typer.echo(json.dumps({"clip": name, "at": checked.at, **told, **named, **cost}))
    elif outcome == "server":
        Console().print(f"{name}, {checked.at:.2f} s: asked, and the server knows")
    elif checked.word is not None:
        who = "" if checked.speaker is None else f", said by {checked.speaker}"
        Console().print(f"{name}, {checked.at:.2f} s: {checked.word}{who}")
