"""`ppspeech studio`: pages to speak, to look at models, to train them, and to see what is private."""

import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.studio import Studio


def studio(
    folders: Annotated[list[Path] | None, typer.Argument(help="Bundles, or folders of bundles, to show.")] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="A folder of recordings to train on; repeat it.")] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder that keeps runs and what they release; one that passes by default.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on loopback; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Open the studio: speak to a model that does not hear you, see guarantees drawn, train, filter, compute together.

    Pages for whoever sits here: on loopback alone, behind a token in the address that is printed, with no file from
    elsewhere. The microphone stays in the page. All that it starts are commands of ppspeech, in processes of their own;
    they end when the page is closed, or by Ctrl-C.

    Examples: `ppspeech studio`, `ppspeech studio models --work my_studio`,
    `ppspeech studio words --corpus my_recordings --no-browser --port 0`
    """
    from ppspeech.network import Address
    from ppspeech.studio import Places, run_studio

    for path in (*(folders or ()), *(corpus or ())):
        if not path.is_dir():
            raise PpspeechError(f"there is no folder {path}: give bundles, folders of them, or --corpus FOLDER")
    with tempfile.TemporaryDirectory(prefix="ppspeech_studio_") as own:
        place = work or Path(own, "work")
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        places = Places(place.resolve(), tuple(folders or ()), tuple(corpus or ()))
        run_studio(places, Address("127.0.0.1", port), lambda opened: _show(opened, browser, work, Path(own)))
    Console().print("the studio has ended, and all that it started")


def _show(opened: "Studio", browser: bool, work: Path | None, own: Path) -> None:
    from ppspeech.studio import entrance_file

    console = Console()
    console.print(f"the studio: {opened.entrance}")
    console.print("  for this machine alone; whoever has the address may use it. Ctrl-C ends it")
    if work is None:
        console.print("  what is trained here is gone then: --work FOLDER keeps it")
    if browser and not webbrowser.open(entrance_file(opened, own).as_uri()):
        console.print("  no browser opened: open the address yourself")
