"""`ppspeech transcribe`: which words, when?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.cli.clips import Clips, sort_clips
from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, ShowTranscript, door_to, is_server
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import Spoken
    from ppspeech.service import Answer, Client, Door


def transcribe(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Who is asked: a bundle or checkpoint of hidden Markov models of words, or HOST:PORT of a server.",
        ),
    ] = "",
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files of one or more words.")] = None,
    grammar: Annotated[
        str,
        typer.Option(help="What may be said, such as `(one | two)+ [zero]`; by default any words, or the model's own."),
    ] = "",
    word_penalty: Annotated[
        float | None,
        typer.Option(
            help="Nats that every word costs; raise it against words that were not said. By default 50, or what a "
            "model of sentences says.",
            min=0.0,
        ),
    ] = None,
    garbage: Annotated[
        float | None,
        typer.Option(
            help="Nats a frame for the model of silence and other speech; the larger, the more it takes. By default 0; "
            "models of sentences have none."
        ),
    ] = None,
    beam: Annotated[float | None, typer.Option(help="Forget paths this many nats below the best.")] = None,
    server: Annotated[str, typer.Option(help="HOST:PORT instead of the first argument.")] = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    mic: Annotated[bool, typer.Option("--mic", help="Listen to the microphone instead; for a server.")] = False,
    seconds: Annotated[float, typer.Option(help="How long to listen.", min=0.5, max=60.0)] = 5.0,
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip.")] = False,
) -> None:
    """Write down the words of recordings, with their times: in the clear, or by a server that hears nothing.

    What is no word is left out. A server learns how long a recording is, in steps of 32 frames, and nothing else. Of a
    network that is read greedily (`ppspeech train sentences_ctc`), times are where a word begins to be the best.

    Examples: `ppspeech transcribe words number.wav --grammar "(one | two | three)+"`, `ppspeech transcribe
    127.0.0.1:7000 number.wav --pin …`, `ppspeech transcribe one.wav two.wav --server 127.0.0.1:7000 --pin … --json`,
    `ppspeech transcribe 127.0.0.1:7000 --mic --seconds 5 --pin …`
    """
    given = list(clips or ())
    if server:
        given, source = [*([Path(source)] if source else []), *given], server
    if not source or bool(given) == mic:
        raise ModelError("give a bundle, a checkpoint or the HOST:PORT of a server, then sound files or --mic")
    if server or is_server(source):
        if grammar or word_penalty is not None or garbage is not None or beam is not None:
            raise ModelError("what may be said, and what words cost, is the server's choice: its bundle says it")
        if mic:
            from ppspeech.audio import find_recorder

            find_recorder()  # before a query is spent
        door = door_to(source, pin, ca, certificate, key, insecure)
        _ask(door, given, model, show_transcript, as_json, seconds)
        return
    if mic or show_transcript or pin or ca or certificate or key or insecure or model:
        raise ModelError(
            "--mic, --pin, --ca, --certificate, --key, --insecure, --model and --show-transcript go with a server"
        )
    from ppspeech.bundle import load_bundle, transcriber_of

    path = Path(source)
    if path.is_dir():
        transcriber = load_bundle(path).transcriber
    else:
        from ppspeech.training import load_checkpoint

        trained = load_checkpoint(path, "transcribe")
        transcriber = transcriber_of(trained.model, trained.config)
    heard = transcriber.transcribe_all(given, grammar=grammar, word_penalty=word_penalty, garbage=garbage, beam=beam)
    for clip, words in zip(given, heard, strict=True):
        _show({"clip": str(clip), "words": _rows(words)}, as_json)


def _ask(door: "Door", clips: Sequence[Path], model: str, show_transcript: bool, as_json: bool, seconds: float) -> None:
    """Words from a server that does not hear them; of the microphone, for so many seconds, where there are no clips."""
    from ppspeech.service import connect_through

    with connect_through(door, model=model or None, task="sentences", keep_payloads=show_transcript) as client:
        if clips:
            known = sort_clips(clips, client.offer.terms.mfcc)
            answers = client.transcribe_all(known.good)
        else:
            known, answers = Clips([Path("the microphone")]), [_listen(client, seconds)]
    for clip, answer in zip(known.good, answers, strict=True):
        _show(_answered(known, clip, answer), as_json)
        if show_transcript:
            from ppspeech.cli.transcripts import show_transcript as show

            show(answer.transcript)
    known.tell(as_json)


def _listen(client: "Client", seconds: float) -> "Answer[list[Spoken]]":
    from ppspeech.audio import record

    with client.listen() as listening:
        for chunk in record(seconds, client.offer.terms.mfcc.sample_rate):
            listening.feed(chunk)
        return listening.finish()


def _answered(clips: Clips, clip: Path, answer: "Answer[list[Spoken]]") -> dict[str, Any]:
    return clips.row(
        clip,
        words=_rows(answer.value),
        seconds=round(answer.seconds, 3),
        offline_seconds=round(answer.offline_seconds, 3),
        bytes=answer.bytes_up + answer.bytes_down,
        rounds=answer.rounds,
    )


def _rows(words: "Sequence[Spoken]") -> list[dict[str, Any]]:
    return [{"word": w.value, "start": round(w.start, 2), "end": round(w.end, 2)} for w in words]


def _show(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(row))
        return
    table = Table("word", "from", "to", title=row["clip"], title_justify="left", box=box.SIMPLE_HEAD)
    for word in row["words"]:
        table.add_row(word["word"], f"{word['start']} s", f"{word['end']} s")
    console = Console()
    console.print(table)
    if "rounds" in row:
        took = f"{row['seconds']} s and {row['offline_seconds']} s before"
        console.print(f"  {took}, {row['bytes'] / 1e6:.2f} MB, {row['rounds']} round trips", style="dim")
