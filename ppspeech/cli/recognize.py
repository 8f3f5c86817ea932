"""`ppspeech recognize`: which word is it?"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, ShowTranscript, door_to
from ppspeech.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

    from ppspeech.audio import MfccConfig
    from ppspeech.service import Answer, Client


@dataclass(frozen=True)
class Recognizer:
    """A model in the clear, from a checkpoint or a bundle.

    Attributes:
        names: its words.
        mfcc: its front end.
        scores: of features `(batch, frames, features)` and lengths, `(batch, words)`.
    """

    names: tuple[str, ...]
    mfcc: "MfccConfig"
    scores: "Callable[[Tensor, Tensor], Tensor]"


def recognize(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="A bundle or checkpoint, then sound files, a word each; with --server, files alone."),
    ] = None,
    corpus: Annotated[str, typer.Option(help="Instead of clips: a corpus or folder with known words.")] = "",
    confusion: Annotated[Path | None, typer.Option(help="With --corpus: save the confusion matrix (.png).")] = None,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    mic: Annotated[bool, typer.Option("--mic", help="With --server: listen to the microphone.")] = False,
    seconds: Annotated[float, typer.Option(help="With --mic: how long.", min=1)] = 2.0,
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Recognize words: in the clear, or by a server that learns neither the voice nor the word.

    Examples: `ppspeech recognize words yes.wav`, `ppspeech recognize word.ckpt --corpus fsdd --confusion fsdd.png`,
    `ppspeech recognize yes.wav no.wav --server 127.0.0.1:7000 --pin …`
    """
    given = list(paths or ())
    if server:
        if corpus or confusion or bool(given) == mic:
            raise ModelError("with --server, give either sound files or --mic")
        if mic:
            from ppspeech.audio import find_recorder

            find_recorder()  # before a query is spent
        door = door_to(server, pin, ca, certificate, key, insecure)
        from ppspeech.service.client import connect_through

        with connect_through(door, model=model or None, keep_payloads=show_transcript) as client:
            answers = [_listen(client, seconds)] if mic else client.recognize_all(given)
        _show_answers(["the microphone"] if mic else [str(clip) for clip in given], answers, as_json)
        if show_transcript:
            _show_transcript(answers)
        return
    if mic or show_transcript or pin:
        raise ModelError("--mic, --show-transcript and --pin go with --server")
    if not given:
        raise ModelError("give a bundle or checkpoint and sound files, or sound files and --server")
    clips = given[1:]
    if bool(clips) == bool(corpus):
        raise ModelError("give either sound files or --corpus NAME")
    loaded = _load(given[0])
    if corpus:
        _measure(loaded, corpus, confusion, as_json)
    else:
        _show_plain(loaded, clips, as_json)


def _load(path: Path) -> Recognizer:
    if path.is_dir():
        from ppspeech.bundle import load_bundle

        bundle = load_bundle(path)
        if not bundle.labels:
            raise ModelError(f"{path} is a {bundle.config.type}, which has no words: `ppspeech verify` uses it")
        return Recognizer(bundle.labels, bundle.mfcc, bundle.model)
    from ppspeech.training import load_checkpoint

    trained = load_checkpoint(path, "recognize")
    return Recognizer(trained.config.labels, trained.config.front_end, trained.model)


def _show_plain(model: Recognizer, clips: Sequence[Path], as_json: bool) -> None:
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.cli.clips import features_of

    features = features_of(clips, model.mfcc)
    lengths = torch.tensor([len(f) for f in features])
    with torch.no_grad():
        best = model.scores(pad_sequence(features, batch_first=True), lengths).topk(2)
    margins = (best.values[:, 0] - best.values[:, 1]).tolist()
    rows = [
        {"clip": str(clip), "word": model.names[word], "margin": round(margin, 2)}
        for clip, word, margin in zip(clips, best.indices[:, 0].tolist(), margins, strict=True)
    ]
    _show_rows(rows, ("clip", "word", "nats above the next"), as_json)


def _listen(client: "Client", seconds: float) -> "Answer":
    from ppspeech.audio import record

    with client.stream() as listening:
        for chunk in record(seconds, client.offer.mfcc.sample_rate):
            listening.feed(chunk)
        return listening.finish()


def _show_answers(clips: Sequence[str], answers: "Sequence[Answer]", as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "clip": clip,
            "word": answer.word,
            "seconds": round(answer.seconds, 3),
            "offline_seconds": round(answer.offline_seconds, 3),
            "bytes": answer.bytes_up + answer.bytes_down,
            "rounds": answer.rounds,
            "together": answer.together,
        }
        for clip, answer in zip(clips, answers, strict=True)
    ]
    _show_rows(rows, ("clip", "word", "seconds", "offline s", "bytes", "rounds", "together"), as_json)


def _show_transcript(answers: "Sequence[Answer]") -> None:
    """One for each batch that ran in lock step."""
    from ppspeech.cli.transcripts import show_transcript

    shown: list[int] = []
    for answer in answers:
        if answer.transcript is not None and id(answer.transcript) not in shown:
            shown.append(id(answer.transcript))
            show_transcript(answer.transcript)


def _show_rows(rows: Sequence[dict[str, Any]], headings: Sequence[str], as_json: bool) -> None:
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    table = Table(*headings, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*("none of them" if value is None else str(value) for value in row.values()))
    Console().print(table)


def _measure(model: Recognizer, corpus: str, confusion: Path | None, as_json: bool) -> None:
    import torch
    from torch.nn.utils.rnn import pad_sequence

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
        batch = features[start : start + 64]
        lengths = torch.tensor([len(f) for f in batch])
        with torch.no_grad():
            heard = model.scores(pad_sequence(batch, batch_first=True), lengths).argmax(-1)
        said = torch.tensor([model.names.index(str(u.word)) for u in known[start : start + 64]])
        counts.add(said, heard)
    if confusion is not None:
        if confusion.suffix not in {".png", ".pdf", ".svg"}:
            raise ModelError(f"a picture is saved as .png, .pdf or .svg, got {confusion}")
        counts.plot(confusion)
    note = f"{len(known):,} utterances of {known.name}"
    show_figures([Figure("recognize.accuracy", float(counts.accuracy()), note=note)], as_json=as_json)
