"""`ppspeech demo`: the main job, end to end, on the built-in voices."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.screen import Console

if TYPE_CHECKING:
    import pytorch_lightning as lightning
    from torch import Tensor

    from ppspeech.bundle import Spoken
    from ppspeech.data import SpeechDataModule, Utterance
    from ppspeech.training import PrivacyHook, SpeechModule


VOICES = {"takes": 2, "seed": 1}
HOP = 0.03  # seconds between frames of sentences


def demo(
    folder: Annotated[Path, typer.Option(help="Where the pictures and the bundle go.")] = Path("demo_output"),
) -> None:
    """Show what ppspeech does in about two minutes, with speech made on the spot: words, and a sentence.

    Example: `ppspeech demo --folder /tmp/demo`
    """
    from ppspeech.data import SpeechDataModule
    from ppspeech.training import PrivacyHook, WordModels, quiet_lightning

    quiet_lightning()
    console = Console()
    _chapter(console, "1. Voices, made here: ten words by forty speakers")
    # Another seed than the public voices that private training starts from.
    voices = SpeechDataModule("synthetic", VOICES, split="speaker", test=0.25, batch_size=256)
    voices.setup()
    _show_voices(voices, folder)

    _chapter(console, "2. Features: 39 MFCCs every 10 ms")
    frames = sum(sum(part.lengths) for part in voices.parts.values())
    features = voices.config(voices.corpus).features
    console.print(f"{frames:,} frames of {features} features from {len(voices.corpus):,} utterances")

    _chapter(console, "3. A recognizer: ten hidden Markov models, tested on people it never heard")
    plain = WordModels(prior_covariance=1_000.0)
    _train(plain, voices, epochs=5)
    console.print(f"without privacy: {_accuracy(plain, voices, folder / 'confusion.png'):.1%} of the words are right")

    _chapter(console, "4. The same with differential privacy, released as a bundle")
    private = WordModels(states=8, covariance="diagonal", start="public")
    _train(private, voices, epochs=3, privacy=PrivacyHook(epsilon=4.0, delta=1e-5))
    accuracy = _accuracy(private, voices, folder / "confusion_private.png")
    console.print(f"with privacy: {accuracy:.1%} of the words are right")
    console.print("it started from other voices made the same way, as public speech: here privacy costs little")
    _release(private, folder / "bundle", accuracy)

    _chapter(console, "5. The bundle on a server that hears nothing: words of unseen people")
    _recognize_encrypted(folder, voices, private)

    _chapter(console, "6. Sentences: the same voices, word after word, on a server that hears nothing")
    _transcribe_encrypted(folder)

    _chapter(console, "Pictures")
    for name in ("corpus.png", "clip.png", "confusion.png", "confusion_private.png", "what_each_saw.png"):
        console.print(f"  {folder / name}")


def _chapter(console: Console, title: str) -> None:
    console.print(f"\n{title}", style="bold")


def _show_voices(voices: "SpeechDataModule", folder: Path) -> None:
    from ppspeech.audio import Mfcc, plot_clip
    from ppspeech.cli.corpus import show_summary
    from ppspeech.data import plot_corpus, summarize

    summary = summarize(voices.corpus)
    show_summary(summary)
    plot_corpus(summary, folder / "corpus.png")
    config, clip = voices.config(voices.corpus), voices.corpus[0]
    plot_clip(clip.waveform(config.sample_rate), Mfcc(config), folder / "clip.png", f"“{clip.word}” by {clip.speaker}")


def _train(
    model: "lightning.LightningModule", voices: "SpeechDataModule", epochs: int, privacy: "PrivacyHook | None" = None
) -> None:
    import pytorch_lightning as lightning

    trainer = lightning.Trainer(
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        callbacks=[] if privacy is None else [privacy],
    )
    trainer.fit(model, datamodule=voices)


def _accuracy(model: Any, voices: "SpeechDataModule", picture: Path) -> float:
    """The share right of the held-out speakers' words; the confusion matrix goes to `picture`."""
    import torch

    from ppspeech.training import Confusion

    confusion = Confusion(model.labels)
    model.eval()
    with torch.no_grad():
        for batch in voices.test_dataloader():
            confusion.add(batch["word"], model(batch["features"], batch["lengths"]).argmax(-1))
    confusion.plot(picture)
    return float(confusion.accuracy())


def _release(model: "SpeechModule", bundle: Path, accuracy: float) -> None:
    """Release, and show the bundle as anyone who gets it can; one of an earlier demo is replaced."""
    from ppspeech.cli.inspect import show_bundle
    from ppspeech.figures import Figure
    from ppspeech.training import release

    if (bundle / "privacy.json").is_file():
        shutil.rmtree(bundle)
    note = "built-in voices, ten speakers never heard in private training"
    show_bundle(release(model, bundle, metrics=[Figure("accuracy", accuracy, note=note)]), bundle)


def _recognize_encrypted(folder: Path, voices: "SpeechDataModule", model: Any) -> None:
    """A server process with the bundle, a client here; one clip of each word, by people neither has heard."""
    from ppspeech.bundle import load_bundle
    from ppspeech.cli.transcripts import plot_views
    from ppspeech.service import Deployment, connect, serve

    console = Console()
    part = voices.parts["test"]
    frames = 10 * -(-max(part.lengths) // 10)
    clips = [(word, _spread(part, word, place)) for place, word in enumerate(model.labels)]
    table = Table(
        "said", "by", "in the clear", "encrypted", "seconds", "offline s", "MB", "rounds", box=box.SIMPLE_HEAD
    )
    bundle = load_bundle(folder / "bundle")
    with serve(bundle, words=Deployment(frames=frames)) as server:
        where = f"a server process holds the bundle, at {server.address}"
        console.print(f"{where}; utterances are padded to {frames} frames")
        with connect(server.address, pin=server.pin, keep_payloads=True) as client:
            console.print(f"it says: {client.offer.privacy}")
            for word, (clip, features) in clips:  # noqa: B007 - the last is drawn
                plain, answer = bundle.recognize(clip.path).value, client.recognize(clip.path)
                cost = f"{(answer.bytes_up + answer.bytes_down) / 1e6:.2f}", str(answer.rounds)
                clocks = f"{answer.seconds:.2f}", f"{answer.offline_seconds:.2f}"
                table.add_row(word, clip.speaker, plain, answer.value or "none of them", *clocks, *cost)
    console.print(table)
    picture = folder / "what_each_saw.png"
    plot_views(features.numpy(), answer.transcript, picture, f"“{word}” by {clip.speaker}, as each party sees it")
    console.print("the server learned nothing of voices or words; the client learned one word each, and no score")


def _transcribe_encrypted(folder: Path) -> None:
    """Sentences of people whom the model has not heard, written down by a server process and in the clear."""
    from ppspeech.data import SentenceDataModule, joined_sentences
    from ppspeech.service import SentenceDeployment, connect, serve
    from ppspeech.training import SentenceModels, release

    console = Console()
    joined = SentenceDataModule(
        sentences=5, test_sentences=1, options=VOICES, test=0.25, mfcc={"hop_s": HOP}, batch_size=256
    )
    joined.setup()
    model = SentenceModels(floor=0.1, prior_covariance=100.0)
    _train(model, joined, epochs=3)
    path = folder / "sentences"
    if (path / "privacy.json").is_file():
        shutil.rmtree(path)
    bundle = release(model, path, not_private=True)
    console.print("words and a model of silence, trained on words joined with pauses; without differential privacy")
    people = {joined.vocabulary["speaker"][place] for place in joined.parts["test"].speakers.tolist()}
    held_out = joined.corpus.select(lambda u: u.speaker in set(sorted(people)[:3]))
    table = Table("said", "in the clear", "encrypted", "speech s", "seconds", "MB", "rounds", box=box.SIMPLE_HEAD)
    with (
        serve(bundle, sentences=SentenceDeployment(frames=192)) as server,
        connect(server.address, pin=server.pin) as client,
    ):
        for sentence in joined_sentences(held_out, 1, bundle.mfcc.sample_rate, (4, 5), seed=7):
            clear = bundle.transcribe(sentence.waveform, sentence.rate)
            answer = client.transcribe(sentence.waveform, sentence.rate)
            heard = "the same, at the same times" if answer.value == clear else _text(answer.value)
            spoken, took = len(sentence.waveform) / sentence.rate, answer.offline_seconds + answer.seconds
            cost = f"{spoken:.1f}", f"{took:.2f}", f"{(answer.bytes_up + answer.bytes_down) / 1e6:.1f}"
            table.add_row(" ".join(sentence.text), _text(clear), heard, *cost, str(answer.rounds))
    console.print(table)
    console.print("the server learned how long each was, in steps of a second; the client learned words and times")


def _text(words: "Sequence[Spoken]") -> str:
    return " ".join(word.value for word in words)


def _spread(part: Any, word: str, place: int) -> "tuple[Utterance, Tensor]":
    """A clip of the word and its features, by another speaker for each place."""
    own = [(clip, x) for clip, x in zip(part.corpus, part.features, strict=True) if clip.word == word]
    return own[place * len(own) // 10 % len(own)]
