"""`ppspeech recognize`: which word is it?"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.cli.clips import Clips, sort_clips
from ppspeech.cli.door import (
    Authority,
    Certificate,
    Insecure,
    Key,
    Model,
    Outcome,
    Pin,
    ShowTranscript,
    door_to,
    is_server,
)
from ppspeech.cli.ray import Ray
from ppspeech.cluster import Slices, pool
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import EmbeddedRecognizer, Recognized, Recognizer
    from ppspeech.cluster import Pool
    from ppspeech.data import Corpus
    from ppspeech.service import Answer, Client


def recognize(
    source: Annotated[
        str, typer.Argument(metavar="MODEL", help="Who is asked: a bundle, a checkpoint, or HOST:PORT of a server.")
    ] = "",
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files, a word each.")] = None,
    corpus: Annotated[str, typer.Option(help="Instead of clips: a corpus or folder with known words.")] = "",
    confusion: Annotated[Path | None, typer.Option(help="With --corpus: save the confusion matrix (.png).")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --corpus: save what was heard in each recording (.csv).")
    ] = None,
    ray: Ray = None,
    reject: Annotated[
        bool, typer.Option("--reject", help='Let a garbage model say "none of them", as `serve --words reject=true`.')
    ] = False,
    garbage: Annotated[
        float, typer.Option(help="With --reject: nats a frame for the garbage model; the larger, the more is rejected.")
    ] = 0.0,
    server: Annotated[str, typer.Option(help="HOST:PORT instead of the first argument.")] = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    mic: Annotated[bool, typer.Option("--mic", help="With a server: listen to the microphone.")] = False,
    seconds: Annotated[float, typer.Option(help="With --mic: how long.", min=1)] = 2.0,
    listen: Annotated[
        bool,
        typer.Option(
            "--listen",
            help="With a server whose model hears windows: tell words of speech that goes on, each 80 ms a question.",
        ),
    ] = False,
    outcome: Outcome = "client",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Recognize words: in the clear, or by a server that learns neither the voice nor the word.

    In the clear, the confidence is the probability of the word among all words and a model of any speech.

    Examples: `ppspeech recognize words yes.wav --reject`, `ppspeech recognize word.ckpt --corpus fsdd --confusion
    fsdd.png`, `ppspeech recognize words --corpus fsdd --out heard.csv --ray`,
    `ppspeech recognize 127.0.0.1:7000 yes.wav no.wav --pin …`
    """
    given = list(clips or ())
    if server:
        given, source = [*([Path(source)] if source else []), *given], server
    if not source:
        raise ModelError("give a bundle, a checkpoint or the HOST:PORT of a server, then sound files")
    if not server and not is_server(source):
        if mic or listen or show_transcript or pin or ca or insecure or outcome != "client":
            raise ModelError(
                "--mic, --listen, --outcome, --show-transcript, --pin, --ca and --insecure go with a server, HOST:PORT"
            )
        if bool(given) == bool(corpus):
            raise ModelError("give either sound files or --corpus NAME")
        if not corpus and (out is not None or confusion is not None or ray is not None):
            raise ModelError("--out, --confusion and --ray go with --corpus NAME")
        loaded = _load(Path(source))
        if corpus:
            with pool(ray) as workers:
                _measure(loaded, corpus, confusion, out, as_json, {"reject": reject, "garbage": garbage}, workers)
        else:
            _show_plain(loaded, given, as_json, {"reject": reject, "garbage": garbage})
        return
    if reject or garbage:
        raise ModelError("whether words are rejected is the server's choice: `ppspeech serve --words reject=true`")
    if corpus or confusion or out or ray or bool(given) == mic:
        raise ModelError("for a server, give either sound files or --mic")
    if mic:
        from ppspeech.audio import find_recorder

        find_recorder()  # before a query is spent
    door = door_to(source, pin, ca, certificate, key, insecure)
    from ppspeech.service import connect_through

    known = Clips([Path("the microphone")])
    with connect_through(
        door, model=model or None, task="words", keep_payloads=show_transcript, outcome=outcome
    ) as client:
        if not mic:
            known = Clips(given) if listen else sort_clips(given, client.offer.terms.front_end)
        if listen:
            _watch(client, known, seconds if mic else 0.0, as_json)
            answers = []
        else:
            answers = [_listen(client, seconds)] if mic else client.recognize_all(known.good)
            _show_answers(known, answers, as_json, outcome)
    if show_transcript:
        _show_transcript(answers)
    known.tell(as_json)


def _load(path: Path) -> "Recognizer | EmbeddedRecognizer":
    """A bundle, which is a folder, or a checkpoint, which is a file."""
    from ppspeech.bundle import load_bundle, recognizer_of

    if path.is_dir():
        return load_bundle(path).recognizer
    from ppspeech.training import load_checkpoint

    trained = load_checkpoint(path, "recognize")
    return recognizer_of(trained.model, trained.config)


def _show_plain(
    model: "Recognizer | EmbeddedRecognizer", clips: Sequence[Path], as_json: bool, how: dict[str, Any]
) -> None:
    known = sort_clips(clips, model.front_end)
    answers = model.recognize_all(known.good, **how) if known.good else []
    rows = [
        known.row(clip, word=heard.value, confidence=round(heard.confidence, 3), margin=round(heard.margin, 2))
        for clip, heard in zip(known.good, answers, strict=True)
    ]
    _show_rows(rows, ("clip", "word", "confidence", "nats above the next"), as_json)
    known.tell(as_json)


def _listen(client: "Client", seconds: float) -> "Answer[str | None]":
    from ppspeech.audio import record

    with client.stream() as listening:
        for chunk in record(seconds, client.offer.terms.front_end.sample_rate):
            listening.feed(chunk)
        return listening.finish()


def _watch(client: "Client", clips: Clips, seconds: float, as_json: bool) -> None:
    """Words as they are heard, and when; of the microphone for so many seconds, else of clips."""
    from ppspeech.audio import record, samples_at
    from ppspeech.service import spoken_in

    rate, mine = client.offer.terms.front_end.sample_rate, client.outcome == "client"
    for clip in clips.good:
        sound = record(seconds, rate) if seconds else [samples_at(clip, None, rate)]
        with client.watch() as watching:
            for heard in spoken_in(watching.over(sound)):
                row = {"clip": str(clip), "at": heard.at, "word": heard.word, "seconds": round(heard.seconds, 4)}
                typer.echo(json.dumps(row) if as_json else f"{clip}, {heard.at:.2f} s: {heard.word}")
            count = len(watching.words)
        if not as_json:
            told = "" if mine else ", and the server knows what they are"
            Console(stderr=True).print(f"{clip}: {count} windows were asked about{told}")


def _show_answers(clips: Clips, answers: "Sequence[Answer[str | None]]", as_json: bool, outcome: str) -> None:
    rows: list[dict[str, Any]] = [
        clips.row(
            clip,
            word=answer.value if outcome == "client" else "the server knows",
            seconds=round(answer.seconds, 3),
            offline_seconds=round(answer.offline_seconds, 3),
            bytes=answer.bytes_up + answer.bytes_down,
            rounds=answer.rounds,
            together=answer.together,
        )
        for clip, answer in zip(clips.good, answers, strict=True)
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
        shown = [value for name, value in row.items() if name != "warning"]  # which was said already
        table.add_row(*("none of them" if value is None else str(value) for value in shown))
    Console().print(table)


def _measure(
    model: "Recognizer | EmbeddedRecognizer",
    corpus: str,
    confusion: Path | None,
    out: Path | None,
    as_json: bool,
    how: dict[str, Any],
    workers: "Pool",
) -> None:
    """Accuracy on the words that the model knows; with rejection, also how many of the others it takes for a word."""
    import torch

    from ppspeech.data import load_corpus, usable
    from ppspeech.figures import Figure, show_figures
    from ppspeech.training import Confusion

    if confusion is not None and confusion.suffix not in {".png", ".pdf", ".svg"}:
        raise ModelError(f"a picture is saved as .png, .pdf or .svg, got {confusion}")
    if out is not None and out.suffix != ".csv":
        raise ModelError(f"what was heard is saved as .csv, got {out}")
    whole = load_corpus(corpus)
    everyone = usable(whole, model.front_end, skip_bad=True, workers=workers)
    known = everyone.select(lambda u: u.word in model.names)
    unknown = set(everyone.words) - set(model.names)
    if unknown and not as_json and not how["reject"]:
        Console(stderr=True).print(f"left out: words the model does not know ({', '.join(sorted(unknown))})")
    answers = _heard(model, known, how, workers)
    counts, words = Confusion(model.names), [each.value for each in answers]
    taken = [(str(u.word), word) for u, word in zip(known, words, strict=True) if word is not None]
    counts.add(*(torch.tensor([model.names.index(pair[side]) for pair in taken], dtype=torch.long) for side in (0, 1)))
    if confusion is not None:
        counts.plot(confusion)
    if out is not None:
        _write_heard(out, known, answers)
    note = f"{len(known):,} utterances of {known.name}"
    right = sum(u.word == word for u, word in zip(known, words, strict=True)) / len(known)
    figures = [Figure("recognize.accuracy", right, note=note)]
    if how["reject"]:
        figures.append(Figure("recognize.rejected", 1 - len(taken) / len(known), note=note))
    if how["reject"] and unknown:
        others = everyone.select(lambda u: u.word in unknown)
        accepted = sum(each.value is not None for each in _heard(model, others, how, workers)) / len(others)
        note = f"{len(others):,} utterances of {len(unknown)} words the model does not know"
        figures.append(Figure("recognize.unknown_accepted", accepted, note=note))
    show_figures(figures, as_json=as_json)
    if len(everyone) < len(whole):
        raise typer.Exit(1)


AT_ONCE = 64  # utterances in a batch, and that a worker is given at a time


def _heard(
    model: "Recognizer | EmbeddedRecognizer", part: "Corpus", how: dict[str, Any], workers: "Pool"
) -> "list[Recognized]":
    """What the model hears in every recording, by `workers`."""
    from ppspeech.bundle import Recognizer
    from ppspeech.cluster import in_order
    from ppspeech.data import FeatureStore

    if isinstance(model, Recognizer):
        FeatureStore(model.mfcc).fill(part.utterances, workers)
        clips: Sequence[Any] = FeatureStore(model.mfcc).lazy(part.utterances)
    else:
        clips = [u.path.absolute() for u in part]
    batches = Slices(clips, AT_ONCE)
    return [each for some in in_order(workers, partial(_decided, model, how), batches, "Recognizing") for each in some]


def _decided(model: "Recognizer | EmbeddedRecognizer", how: dict[str, Any], batch: Sequence[Any]) -> "list[Recognized]":
    """Of one batch, by whichever process."""
    from ppspeech.bundle import Recognizer

    return model.decide(batch, **how) if isinstance(model, Recognizer) else model.recognize_all(batch, **how)


def _write_heard(path: Path, part: "Corpus", answers: "Sequence[Recognized]") -> None:
    from ppspeech.data import write_rows
    from ppspeech.storage import atomic_write

    rows = [
        (u.path, u.word, heard.value or "", f"{heard.confidence:.3f}", f"{heard.margin:.2f}")
        for u, heard in zip(part, answers, strict=True)
    ]
    with atomic_write(path) as temporary:
        write_rows(temporary, ("path", "word", "heard", "confidence", "margin"), rows)
