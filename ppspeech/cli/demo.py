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
    from ppspeech.audio import Mfcc, MfccConfig
    from ppspeech.audio.picture import plot_clip
    from ppspeech.cli.corpus import show_summary
    from ppspeech.data import FeatureStore, SyntheticCorpus
    from ppspeech.data.summary import plot_corpus, summarize

    console = Console(highlight=False)
    console.rule("[bold]1. Voices, made here: ten words by forty speakers")
    corpus = SyntheticCorpus(takes=2).build()
    summary = summarize(corpus)
    show_summary(summary)
    plot_corpus(summary, folder / "corpus.png")

    console.rule("[bold]2. Features: 39 MFCCs every 10 ms")
    config = MfccConfig.at_rate(corpus.sample_rate)
    arrays = FeatureStore(config).load(corpus.utterances)
    console.print(f"{sum(map(len, arrays)):,} frames of {config.features} features from {len(arrays):,} utterances")
    clip = corpus[0]
    plot_clip(clip.waveform(config.sample_rate), Mfcc(config), folder / "clip.png", f"“{clip.word}” by {clip.speaker}")

    console.rule("[bold]Pictures")
    for name in ("corpus.png", "clip.png"):
        console.print(f"  {folder / name}")
