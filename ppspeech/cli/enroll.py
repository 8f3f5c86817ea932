"""`ppspeech enroll`: let a server know a voice, without showing it the voice."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, door_to


def enroll(
    bundle: Annotated[Path, typer.Argument(help="The background model, the same bundle as the server's.")],
    clips: Annotated[list[Path], typer.Argument(help="Sound files of the speaker.")],
    name: Annotated[str, typer.Option(help="What the speaker is to be called.")],
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Enrol a speaker at a server. The template is computed here; the server gets the template and no sound.

    Example: `ppspeech enroll voices ann1.wav ann2.wav --name ann --server 127.0.0.1:7000 --pin …`
    """
    from ppspeech.bundle import load_bundle
    from ppspeech.encrypted import connect_speakers

    door = door_to(server, pin, ca, certificate, key, insecure)
    with connect_speakers(door, load_bundle(bundle), model=model or None) as client:
        place = client.enrol(name, clips)
    if as_json:
        typer.echo(json.dumps({"name": name, "place": place}))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{name} has place {place}: `ppspeech verify --claim {place}` claims it", markup=False)
