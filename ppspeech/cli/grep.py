"""`ppspeech grep`: where is it in a text that someone else keeps?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Pin, ShowTranscript, door_to
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.protocols.text import Tells

Telling = Literal["found", "count", "lines", "places"]


def grep(
    pattern: Annotated[
        str, typer.Argument(help="A regular expression: . [a-f] [^a-f] * + ? {2,5} | ( ) ^ $ \\d \\w \\s.")
    ],
    files: Annotated[list[Path] | None, typer.Argument(help="Texts of our own, searched in the clear.")] = None,
    server: Annotated[str, typer.Option(help="HOST:PORT of a `ppspeech serve FILE`: the pattern stays here.")] = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Annotated[str, typer.Option("--model", help="Which of the server's texts, where it has several.")] = "",
    tells: Annotated[
        Telling | None,
        typer.Option(
            help="What to ask for: whether it is found, the count of lines, which lines, or the places in them where "
            "matches begin; by default all that the server tells."
        ),
    ] = None,
    alphabet: Annotated[
        str, typer.Option(help="What our own files are folded to: letters, text, dna or phones; a server says its own.")
    ] = "letters",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text.")] = False,
) -> None:
    """Search a text for a regular expression, without showing the expression, and without seeing the text.

    Case and accents are folded away, on both sides alike. The server learns how large the expression is, in steps, and
    not what it found. Lines, and places in them, count from 1, in the folded text.

    Examples: `ppspeech grep "(refund|money) back" --server 127.0.0.1:7000 --pin …`, `ppspeech grep "g[ag]tt?aca"
    genome.txt --alphabet dna --tells places`, `ppspeech grep "HH (AH|EH) L OW" --server 127.0.0.1:7000 --tells count
    --json`
    """
    if bool(files) == bool(server):
        raise PpspeechError("give texts of your own, or the --server that keeps one")
    if server:
        door = door_to(server, pin, ca, certificate, key, insecure)
        from ppspeech.service import connect_through

        with connect_through(door, model=model or None, task="text", keep_payloads=show_transcript) as client:
            answer = client.search(pattern, tells)
            row = {"text": client.offer.name, "tells": tells or client.offer.terms.tells}
        row |= {"found": _from_one(answer.value), "way": answer.how}
        row |= {"seconds": round(answer.seconds, 3), "offline_seconds": round(answer.offline_seconds, 3)}
        row |= {"bytes": answer.bytes_up + answer.bytes_down, "rounds": answer.rounds}
        _show(row, as_json)
        if show_transcript:
            from ppspeech.cli.transcripts import show_transcript as show

            show(answer.transcript, "pattern", "all patterns of this size")
        return
    if show_transcript or pin or ca or certificate or key or insecure or model:
        raise PpspeechError(
            "--pin, --ca, --certificate, --key, --insecure, --model and --show-transcript go with --server"
        )
    for path in files or ():
        _show(
            {"text": str(path), "tells": tells or "lines", "found": _in_clear(path, pattern, alphabet, tells)}, as_json
        )


def _in_clear(path: Path, pattern: str, alphabet: str, tells: "Tells | None") -> Any:
    from ppspeech.protocols.text import alphabet_of, find_in_clear

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PpspeechError(f"cannot read the text {path}: {error}") from None
    return _from_one(find_in_clear(pattern, lines, alphabet_of(alphabet), tells or "lines"))


def _from_one(found: Any) -> Any:
    """Lines and places as people count them."""
    if not isinstance(found, list):
        return found
    return [[number + 1 for number in each] if isinstance(each, Sequence) else each + 1 for each in found]


def _show(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(row))
        return
    console, found = Console(), row["found"]
    if row["tells"] == "found":
        console.print(f"{row['text']}: {'found' if found else 'not found'}")
    elif row["tells"] == "count":
        console.print(f"{row['text']}: {found} line{'' if found == 1 else 's'}")
    else:
        for each in found:
            where = ":".join(map(str, each)) if isinstance(each, list) else each
            console.print(f"{row['text']}:{where}")
        if not found:
            console.print(f"{row['text']}: not found")
    if "rounds" in row:
        took = f"{row['seconds']} s and {row['offline_seconds']} s before"
        console.print(f"  {took}, {row['bytes'] / 1e6:.2f} MB, {row['rounds']} round trips", style="dim")
