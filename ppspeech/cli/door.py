"""Options of every command that calls a server, and how the door to it is opened."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ppspeech.errors import PpspeechError

if TYPE_CHECKING:
    from ppspeech.service import Door

Server = Annotated[str, typer.Option(help="HOST:PORT of a `ppspeech serve`: the voice stays here, encrypted.")]
Pin = Annotated[str, typer.Option(help="Fingerprint of the server's certificate, which it prints.")]
Authority = Annotated[Path | None, typer.Option("--ca", help="Authorities to trust instead of a pin, PEM.")]
Certificate = Annotated[Path | None, typer.Option(help="Our own certificate, where the server asks for one, PEM.")]
Key = Annotated[Path | None, typer.Option(help="Its private key, PEM.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Plain TCP, on a loopback address, to try out.")]
Model = Annotated[str, typer.Option("--model", help="Which of the server's models, where it has several.")]
Outcome = Annotated[
    Literal["client", "server"],
    typer.Option(help="Who may learn the words: `server` agrees that it is the server alone, where it says so."),
]
ShowTranscript = Annotated[bool, typer.Option("--show-transcript", help="Show what the server saw.")]


def is_server(source: str) -> bool:
    """Whether what is asked is a server, HOST:PORT, and no file or folder."""
    return re.fullmatch(r".+:\d+", source) is not None and not Path(source).exists()


def door_to(
    server: str, pin: str, ca: Path | None, certificate: Path | None, key: Path | None, insecure: bool
) -> "Door":
    """The door that these options describe. Raises PpspeechError if they do not fit together, or name no server."""
    from ppspeech.service import open_door

    if not server:
        raise PpspeechError("give the server as --server HOST:PORT")
    return open_door(server, pin=pin or None, ca=ca, certificate=certificate, key=key, insecure=insecure)
