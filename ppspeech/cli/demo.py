"""`ppspeech demo`: the main job, end to end, on the built-in voices."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def demo(
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("demo_output"),
) -> None:
    """Show what ppspeech does in under a minute, with speech made on the spot.

    Example: `ppspeech demo --folder /tmp/demo`
    """
    import pytorch_lightning as lightning

    from ppspeech.audio import Mfcc
    from ppspeech.audio.picture import plot_clip
    from ppspeech.cli.corpus import show_summary
    from ppspeech.data.datamodule import SpeechDataModule
    from ppspeech.data.summary import plot_corpus, summarize
    from ppspeech.training import Confusion, KeywordHmm
    from ppspeech.training.quiet import quiet_lightning

    console = Console(highlight=False)
    console.rule("[bold]1. Voices, made here: ten words by forty speakers")
    voices = SpeechDataModule("synthetic", {"takes": 2}, split="speaker", test=0.25, batch_size=256)
    voices.setup()
    summary = summarize(voices.corpus)
    show_summary(summary)
    plot_corpus(summary, folder / "corpus.png")

    console.rule("[bold]2. Features: 39 MFCCs every 10 ms")
    config = voices.config(voices.corpus)
    frames = sum(sum(part.lengths) for part in voices.parts.values())
    console.print(f"{frames:,} frames of {config.features} features from {len(voices.corpus):,} utterances")
    clip = voices.corpus[0]
    plot_clip(clip.waveform(config.sample_rate), Mfcc(config), folder / "clip.png", f"“{clip.word}” by {clip.speaker}")

    console.rule("[bold]3. A recogniser: ten hidden Markov models, tested on people it never heard")
    quiet_lightning()
    model = KeywordHmm(prior_covariance=1_000.0)
    trainer = lightning.Trainer(
        max_epochs=5, logger=False, enable_checkpointing=False, enable_model_summary=False, enable_progress_bar=False
    )
    trainer.fit(model, datamodule=voices)
    confusion = Confusion(model.names)
    model.eval()
    for batch in voices.test_dataloader():
        confusion.add(batch["word"], model(batch["features"], batch["lengths"]).argmax(-1))
    confusion.plot(folder / "confusion.png")
    people = len(voices.parts["train"].corpus.speakers), len(voices.parts["test"].corpus.speakers)
    console.print(
        f"trained on {people[0]} speakers, {100 * float(confusion.accuracy()):.1f} % of the words of "
        f"{people[1]} others recognised"
    )

    console.rule("[bold]Pictures")
    for name in ("corpus.png", "clip.png", "confusion.png"):
        console.print(f"  {folder / name}")
