"""`ppspeech spot`: where is it said?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.cli.clips import sort_clips
from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, ShowTranscript, door_to
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.service import Answer, Client, Spotted

PATCHES = ".patches"


def spot(
    keyword: Annotated[
        list[str] | None,
        typer.Argument(
            help='Takes of the keyword, sound files, or names of units: "s eh v ax n"; ... between words; or one file '
            "of `ppspeech patches`."
        ),
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="Look in an archive of `ppspeech index`, here and in the clear.")
    ] = None,
    server: Annotated[str, typer.Option(help="HOST:PORT of a `ppspeech serve`: keyword and voice stay here.")] = "",
    recordings: Annotated[
        list[Path] | None,
        typer.Option("--in", help="Our recordings, for a server that has the keywords; several times for several."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Nats above everything else from which it counts as said: lower finds more, and more that is not it. "
            "By default 12 for names, 25 for takes; with --average 0.8 and 1, a frame."
        ),
    ] = None,
    average: Annotated[
        bool, typer.Option("--average", help="The best average of frames instead of the best sum; takes six passes.")
    ] = False,
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a recording.")] = False,
) -> None:
    """Find where a keyword is said: in recordings of a server that learns no keyword, or keywords of a server in ours.

    Told are the recordings in which it is said, and when; never a score. All recordings are searched in one question. A
    server of recordings learns how many words and units the keyword has, or how many patches, which are asked for a
    page of the archive at a time; one of keywords learns how many recordings there are, up to a power of two, and how
    long the longest is, in blocks of seconds.

    Examples: `ppspeech spot invoice1.wav invoice2.wav --server 127.0.0.1:7000 --pin …`, `ppspeech spot "seven ... nine"
    --server 127.0.0.1:7000 --pin … --json`, `ppspeech spot "s eh v ax n" --archive meetings.archive`, `ppspeech spot
    invoice.patches --server 127.0.0.1:7000 --pin …`, `ppspeech spot --in call1.wav --in call2.wav --server
    127.0.0.1:7000 --pin …`
    """
    said, own = list(keyword or ()), list(recordings or ())
    if bool(said) == bool(own):
        raise ModelError("give a keyword, takes of it or names of units, or recordings of your own with --in")
    if (archive is None) == (not server) or (archive is not None and own):
        raise ModelError("give --server HOST:PORT, or for a keyword --archive FILE to look in the clear")
    if own and (threshold is not None or average):
        raise ModelError(
            "what counts as said is the server's choice, as its keywords are: serve --spotting threshold=…"
        )
    by_patches = any(each.endswith(PATCHES) for each in said)
    if by_patches and (len(said) > 1 or threshold is not None or average):
        raise ModelError(
            "a word by patches is one file, and from where on it counts as said was chosen when it was learned: "
            "ppspeech patches --alarms"
        )
    if archive is not None:
        if pin or ca or certificate or key or insecure or model or show_transcript:
            raise ModelError(
                "--pin, --ca, --certificate, --key, --insecure, --model and --show-transcript go with a server"
            )
        _in_the_clear(archive, said, threshold, average, as_json, by_patches)
        return
    from ppspeech.service import connect_through

    door = door_to(server, pin, ca, certificate, key, insecure)
    with connect_through(door, model=model or None, task="spotting", keep_payloads=show_transcript) as client:
        if own:
            _ask_ours(client, own, show_transcript, as_json)
        elif by_patches:
            from ppspeech.service import PatchWord

            _tell_all(client, client.spot_patches(PatchWord.load(said[0])), show_transcript, as_json)
        else:
            answer = client.spot(said, threshold=threshold, average=average)
            _tell_all(client, answer, show_transcript, as_json)


def _tell_all(client: "Client", answer: "Answer[list[Spotted]]", show_transcript: bool, as_json: bool) -> None:
    _tell(answer.value, _searched(client), answer, show_transcript, as_json)


def _in_the_clear(
    path: Path, said: list[str], threshold: float | None, average: bool, as_json: bool, by_patches: bool
) -> None:
    from ppspeech.service import Archive, PatchWord, in_archive, in_the_clear, patches_in_archive, sought

    archive = Archive.load(path)
    names = archive.contents.names if archive.contents.told else _numbers(len(archive.contents.lengths))
    if by_patches:
        _tell(patches_in_archive(PatchWord.load(said[0]), archive), names, None, False, as_json)
        return
    question = sought(archive.terms, said, None, threshold, average=average)
    found = in_the_clear(question.keywords, archive.recordings(question.keywords.shape))
    _tell(in_archive(archive.terms, found[0]), names, None, False, as_json)


def _ask_ours(client: "Client", recordings: Sequence[Path], show_transcript: bool, as_json: bool) -> None:
    known = sort_clips(recordings, client.offer.terms.mfcc)
    answer = client.spot_in(known.good)
    _tell(answer.value, [str(path) for path in known.good], answer, show_transcript, as_json)
    known.tell(as_json)


def _searched(client: "Client") -> Sequence[str]:
    terms = client.offer.terms
    return terms.recordings or _numbers(len(terms.pieces))


def _numbers(count: int) -> list[str]:
    return [str(number + 1) for number in range(count)]


def _tell(
    spotted: "Sequence[Spotted]",
    recordings: Sequence[str],
    answer: "Answer[list[Spotted]] | None",
    show_transcript: bool,
    as_json: bool,
) -> None:
    cost: dict[str, Any] = {}
    if answer is not None:
        cost = {
            "seconds": round(answer.seconds, 3),
            "offline_seconds": round(answer.offline_seconds, 3),
            "bytes": answer.bytes_up + answer.bytes_down,
            "rounds": answer.rounds,
        }
    if as_json:
        for name in recordings:
            rows = [_row(each) for each in spotted if each.recording == name]
            typer.echo(json.dumps({"recording": name, "present": bool(rows), "found": rows}))
        if cost:
            typer.echo(json.dumps({"recordings": len(recordings), **cost}))
    else:
        table = Table("recording", "keyword", "from", "to", box=box.SIMPLE_HEAD)
        for each in spotted:
            words = "" if len(each.starts) == 1 else f", words at {', '.join(f'{at:.2f}' for at in each.starts)} s"
            table.add_row(each.recording, each.keyword or "said", f"{each.start:.2f} s", f"{each.end:.2f} s{words}")
        console = Console()
        console.print(table if spotted else "it is not said")
        line = f"  {len({each.recording for each in spotted})} of {len(recordings)} recordings"
        if cost:
            line += (
                f"; one question for all: {cost['seconds']} s and {cost['offline_seconds']} s before, "
                f"{cost['bytes'] / 1e6:.2f} MB, {cost['rounds']} round trips"
            )
        console.print(line, style="dim")
    if show_transcript and answer is not None:
        from ppspeech.cli.transcripts import show_transcript as show

        show(answer.transcript)


def _row(each: "Spotted") -> dict[str, Any]:
    named = {"keyword": each.keyword} if each.keyword else {}
    return named | {"starts": [round(at, 2) for at in each.starts], "end": round(each.end, 2)}
