"""`ppspeech recognize`: which word is it?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ppspeech.training import KeywordHmm, LargeMarginKeyword

    Recognizer = KeywordHmm | LargeMarginKeyword


def recognize(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a keyword recipe.")],
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files, a word each.")] = None,
    corpus: Annotated[str, typer.Option(help="Instead of clips: a corpus or folder with known words.")] = "",
    confusion: Annotated[Path | None, typer.Option(help="With --corpus: save the confusion matrix (.png).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Recognise words in the clear, or measure how well a corpus is recognised.

    Examples: `ppspeech recognize word.ckpt yes.wav`, `ppspeech recognize word.ckpt --corpus fsdd --confusion fsdd.png`
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.cli.clips import features_of
    from ppspeech.errors import ModelError
    from ppspeech.training import KeywordHmm, LargeMarginKeyword, load_checkpoint

    model = load_checkpoint(checkpoint, KeywordHmm, LargeMarginKeyword)
    assert isinstance(model, KeywordHmm | LargeMarginKeyword)
    if bool(clips) == bool(corpus):
        raise ModelError("give either sound files or --corpus NAME")
    if corpus:
        _measure(model, corpus, confusion, as_json)
        return
    features = features_of(clips or [], model.mfcc)
    lengths = torch.tensor([len(f) for f in features])
    with torch.no_grad():
        best = model(pad_sequence(features, batch_first=True), lengths).topk(2)
    rows = [
        {"clip": str(clip), "word": model.names[word], "margin": round(margin, 2)}
        for clip, word, margin in zip(
            clips or [], best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist(), strict=True
        )
    ]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    table = Table("clip", "word", "nats above the next", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


def _measure(model: "Recognizer", corpus: str, confusion: Path | None, as_json: bool) -> None:
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.data import FeatureStore, load_corpus
    from ppspeech.errors import ModelError
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
            heard = model(pad_sequence(batch, batch_first=True), lengths).argmax(-1)
        said = torch.tensor([model.names.index(str(u.word)) for u in known[start : start + 64]])
        counts.add(said, heard)
    if confusion is not None:
        if confusion.suffix not in {".png", ".pdf", ".svg"}:
            raise ModelError(f"a picture is saved as .png, .pdf or .svg, got {confusion}")
        counts.plot(confusion)
    note = f"{len(known):,} utterances of {known.name}"
    show_figures([Figure("recognize.accuracy", float(counts.accuracy()), note=note)], as_json=as_json)
