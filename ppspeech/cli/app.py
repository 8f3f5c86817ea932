"""The command line's frame: which commands there are, and how every one of them ends."""

import errno
import functools
import os
import shutil
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.text import Text

from ppspeech import __version__
from ppspeech.cli.anonymize import anonymize
from ppspeech.cli.ask import ask
from ppspeech.cli.attack import attack
from ppspeech.cli.audit import audit
from ppspeech.cli.bench import bench
from ppspeech.cli.classify import classify
from ppspeech.cli.corpus import corpus
from ppspeech.cli.demo import demo
from ppspeech.cli.encrypt_plan import encrypt_plan
from ppspeech.cli.enroll import enroll
from ppspeech.cli.export import export
from ppspeech.cli.features import features
from ppspeech.cli.filter import FILTER_COMMANDS
from ppspeech.cli.grep import grep
from ppspeech.cli.index import index
from ppspeech.cli.info import info
from ppspeech.cli.inspect import inspect_bundle
from ppspeech.cli.keys import keys
from ppspeech.cli.ledger import LEDGER_COMMANDS
from ppspeech.cli.login import LOGIN_COMMANDS
from ppspeech.cli.music import MUSIC_COMMANDS
from ppspeech.cli.pack import pack
from ppspeech.cli.party import party
from ppspeech.cli.patches import patches
from ppspeech.cli.ray import SpreadCommand
from ppspeech.cli.recognize import recognize
from ppspeech.cli.report import report
from ppspeech.cli.reproduce import reproduce
from ppspeech.cli.serve import serve
from ppspeech.cli.sign import sign, verify_release
from ppspeech.cli.simulate import simulate
from ppspeech.cli.spot import spot
from ppspeech.cli.studio import studio
from ppspeech.cli.synth import synth
from ppspeech.cli.train import train
from ppspeech.cli.transcribe import transcribe
from ppspeech.cli.verify import identify, verify
from ppspeech.cli.voices import VOICE_COMMANDS
from ppspeech.cli.wake import wake
from ppspeech.cli.words import WORDS_COMMANDS
from ppspeech.errors import MissingPackageError, PpspeechError, plain_warnings
from ppspeech.screen import Console, speak_any_language

PANELS = 70  # columns that help in panels needs: they cut the names of options where there are fewer

app = typer.Typer(
    name="ppspeech",
    help="Private speech processing: train, release and use speech models without exposing the speakers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown" if shutil.get_terminal_size().columns >= PANELS else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


WRONG_PLACES = {
    errno.ENOSPC: "; make room, or give another place",
    errno.EDQUOT: "; make room, or give another place",
    errno.EACCES: "; give a place that you may write to",
    errno.EROFS: "; give a place that you may write to",
    errno.EEXIST: "; a file stands where a folder is needed, or the name is taken: give another",
    errno.EISDIR: "; give the name of a file",
    errno.ENOTDIR: "; a file stands where a folder is needed",
}
"""What keeps a file from being written, and what to do: a machine's fault or a path's, not a defect of ours."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """End a command as people expect: a clear word instead of a traceback, and an exit code.

    Exit codes: 0 done, 1 the machine failed (disk full, no permission) or an audit refutes, 2 the request cannot be
    met, 130 Ctrl-C.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with plain_warnings():
                command(*args, **kwargs)
        except PpspeechError as error:
            code, message = 2, str(error)
        except ModuleNotFoundError as missing:
            if (missing.name or "ppspeech").partition(".")[0] == "ppspeech":
                raise
            code, message = 2, str(MissingPackageError("this", missing.name))
        except KeyboardInterrupt:
            code, message = 130, "stopped: nothing half-written is left behind"
        except BrokenPipeError:
            raise typer.Exit(0) from None  # the reader of our output has seen enough
        except UnicodeEncodeError as error:
            code = 2
            name = os.fsencode(error.object).decode(errors="replace")
            message = f"this locale cannot spell {name}: set LC_ALL=C.UTF-8 or PYTHONUTF8=1"
        except OSError as error:
            if error.errno not in WRONG_PLACES:
                raise
            where = f"{error.filename}: " if error.filename else ""
            code, message = 1, f"cannot write: {where}{error.strerror}{WRONG_PLACES[error.errno]}"
        else:
            return
        Console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {message}"))
        raise typer.Exit(code)

    return run


def _several(help: str, commands: dict[str, Callable[..., None]]) -> typer.Typer:
    """Commands under one name."""
    several = typer.Typer(help=help, no_args_is_help=True)
    for name, command in commands.items():
        several.command(name, cls=SpreadCommand)(guarded(command))
    return several


COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Begin": {"demo": demo, "studio": studio, "info": info},
    "Recordings and tables": {
        "synth": synth,
        "corpus": corpus,
        "features": features,
        "pack": pack,
        "anonymize": anonymize,
        "filter": _several("Features that keep the task and lose the person.", FILTER_COMMANDS),
    },
    "Train and release": {
        "train": train,
        "export": export,
        "inspect": inspect_bundle,
        "sign": sign,
        "verify-release": verify_release,
        "ask": ask,
        "words": _several("Words of one's own, learned from a few clips.", WORDS_COMMANDS),
        "voices": _several("People told apart by a public network.", VOICE_COMMANDS),
        "ledger": _several("What was released from which data, and what it comes to together.", LEDGER_COMMANDS),
    },
    "Use a model: in the clear, or of a server that hears nothing": {
        "recognize": recognize,
        "wake": wake,
        "transcribe": transcribe,
        "spot": spot,
        "grep": grep,
        "enroll": enroll,
        "verify": verify,
        "identify": identify,
        "classify": classify,
        "music": _several("Which song is it? Asked of a server that hears nothing.", MUSIC_COMMANDS),
        "login": _several("Let people in by their voice and digits that are asked for.", LOGIN_COMMANDS),
    },
    "Serve": {"serve": serve, "encrypt-plan": encrypt_plan, "keys": keys, "index": index, "patches": patches},
    "Compute together": {"simulate": simulate, "party": party},
    "Attack and measure": {
        "audit": audit,
        "attack": attack,
        "bench": bench,
        "reproduce": reproduce,
        "report": report,
    },
}
"""What help shows, by what people come for."""

for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        elif command is train:  # what follows a recipe belongs to it, `--help` too
            free = {"allow_interspersed_args": False}
            app.command(name, context_settings=free, rich_help_panel=panel)(guarded(command))
        else:
            app.command(name, cls=SpreadCommand, rich_help_panel=panel)(guarded(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ppspeech {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command line."""
    speak_any_language()
    app()
