"""`ppspeech recognize`: which word is it?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, ShowTranscript, door_to, is_server
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import Recognizer
    from ppspeech.service import Answer, Client


def recognize(
    source: Annotated[
        str, typer.Argument(metavar="MODEL", help="Who is asked: a bundle, a checkpoint, or HOST:PORT of a server.")
    ] = "",
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files, a word each.")] = None,
    corpus: Annotated[str, typer.Option(help="Instead of clips: a corpus or folder with known words.")] = "",
    confusion: Annotated[Path | None, typer.Option(help="With --corpus: save the confusion matrix (.png).")] = None,
    server: Annotated[str, typer.Option(help="HOST:PORT instead of the first argument.")] = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    mic: Annotated[bool, typer.Option("--mic", help="With a server: listen to the microphone.")] = False,
    seconds: Annotated[float, typer.Option(help="With --mic: how long.", min=1)] = 2.0,
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Recognize words: in the clear, or by a server that learns neither the voice nor the word.

    Examples: `ppspeech recognize words yes.wav`, `ppspeech recognize word.ckpt --corpus fsdd --confusion fsdd.png`,
    `ppspeech recognize 127.0.0.1:7000 yes.wav no.wav --pin …`
    """
    given = list(clips or ())
    if server:
        given, source = [*([Path(source)] if source else []), *given], server
    if not source:
        raise ModelError("give a bundle, a checkpoint or the HOST:PORT of a server, then sound files")
    if not server and not is_server(source):
        if mic or show_transcript or pin or ca or insecure:
            raise ModelError("--mic, --show-transcript, --pin, --ca and --insecure go with a server, HOST:PORT")
        if bool(given) == bool(corpus):
            raise ModelError("give either sound files or --corpus NAME")
        loaded = _load(Path(source))
        if corpus:
            _measure(loaded, corpus, confusion, as_json)
        else:
            _show_plain(loaded, given, as_json)
        return
    if corpus or confusion or bool(given) == mic:
        raise ModelError("for a server, give either sound files or --mic")
    if mic:
        from ppspeech.audio import find_recorder

        find_recorder()  # before a query is spent
    door = door_to(source, pin, ca, certificate, key, insecure)
    from ppspeech.service import connect_through

    with connect_through(door, model=model or None, keep_payloads=show_transcript) as client:
        answers = [_listen(client, seconds)] if mic else client.recognize_all(given)
    _show_answers(["the microphone"] if mic else [str(clip) for clip in given], answers, as_json)
    if show_transcript:
        _show_transcript(answers)


def _load(path: Path) -> "Recognizer":
    """A bundle, which is a folder, or a checkpoint, which is a file."""
    from ppspeech.bundle import Recognizer, load_bundle

    if path.is_dir():
        return load_bundle(path).recognizer
    from ppspeech.training import load_checkpoint

    trained = load_checkpoint(path, "recognize")
    return Recognizer.of(trained.model, trained.config)


def _show_plain(model: "Recognizer", clips: Sequence[Path], as_json: bool) -> None:
    rows = [
        {"clip": str(clip), "word": heard.value, "margin": round(heard.margin, 2)}
        for clip, heard in zip(clips, model.recognize_all(clips), strict=True)
    ]
    _show_rows(rows, ("clip", "word", "nats above the next"), as_json)


def _listen(client: "Client", seconds: float) -> "Answer[str | None]":
    from ppspeech.audio import record

    with client.stream() as listening:
        for chunk in record(seconds, client.offer.terms.mfcc.sample_rate):
            listening.feed(chunk)
        return listening.finish()


def _show_answers(clips: Sequence[str], answers: "Sequence[Answer[str | None]]", as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "clip": clip,
            "word": answer.value,
            "seconds": round(answer.seconds, 3),
            "offline_seconds": round(answer.offline_seconds, 3),
            "bytes": answer.bytes_up + answer.bytes_down,
            "rounds": answer.rounds,
            "together": answer.together,
        }
        for clip, answer in zip(clips, answers, strict=True)
    ]
    _show_rows(rows, ("clip", "word", "seconds", "offline s", "bytes", "rounds", "together"), as_json)


def _show_transcript(answers: "Sequence[Answer[str | None]]") -> None:
    """One for each batch that ran in lock step."""
    from ppspeech.cli.transcripts import show_transcript

    for record in {id(answer.transcript): answer.transcript for answer in answers}.values():
        show_transcript(record)


def _show_rows(rows: Sequence[dict[str, Any]], headings: Sequence[str], as_json: bool) -> None:
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    table = Table(*headings, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("none of them" if value is None else str(value) for value in row.values()))
    Console().print(table)


def _measure(model: "Recognizer", corpus: str, confusion: Path | None, as_json: bool) -> None:
    import torch

    from ppspeech.data import FeatureStore, load_corpus
    from ppspeech.figures import Figure, show_figures
    from ppspeech.training import Confusion

    known = load_corpus(corpus).select(lambda u: u.word in model.names)
    unknown = set(load_corpus(corpus).words) - set(model.names)
    if unknown and not as_json:
        Console(stderr=True).print(f"left out: words the model does not know ({', '.join(sorted(unknown))})")
    counts = Confusion(model.names)
    features = FeatureStore(model.mfcc).load(known.utterances)
    for start in range(0, len(known), 64):
        heard = model.score(features[start : start + 64]).argmax(-1)
        counts.add(torch.tensor([model.names.index(str(u.word)) for u in known[start : start + 64]]), heard)
    if confusion is not None:
        if confusion.suffix not in {".png", ".pdf", ".svg"}:
            raise ModelError(f"a picture is saved as .png, .pdf or .svg, got {confusion}")
        counts.plot(confusion)
    note = f"{len(known):,} utterances of {known.name}"
    show_figures([Figure("recognize.accuracy", float(counts.accuracy()), note=note)], as_json=as_json)
