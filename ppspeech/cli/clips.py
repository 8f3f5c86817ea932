"""Many sound files in one command: those that can be used are answered, the others told at the end."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ppspeech.errors import AudioError, SpeechWarning
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.audio import MfccConfig
    from ppspeech.audio.embeddings import EmbeddingConfig


@dataclass(frozen=True, slots=True)
class Clips:
    """Clips that a front end can use, why it cannot use the others, and what it hears less well, by clip."""

    good: list[Path] = field(default_factory=list)
    bad: dict[Path, str] = field(default_factory=dict)
    doubtful: dict[Path, str] = field(default_factory=dict)

    def row(self, clip: Path, **answer: Any) -> dict[str, Any]:
        """What is printed of a clip as JSON: an answer, and the warning that goes with it."""
        warning = {"warning": self.doubtful[clip]} if clip in self.doubtful else {}
        return {"clip": str(clip), **answer, **warning}

    def tell(self, as_json: bool) -> None:
        """Say which clips were not used and why, and end with exit code 1 if there are any."""
        for clip, why in self.bad.items():
            if as_json:
                typer.echo(json.dumps({"clip": str(clip), "error": why}))
            else:
                Console(stderr=True).print(f"not used: {why}")
        if self.bad:
            raise typer.Exit(1)


def sort_clips(clips: Sequence[Path], front_end: "MfccConfig | EmbeddingConfig") -> Clips:
    """Try every clip on a front end. A clip that comes alone and cannot be used is refused by AudioError."""
    from ppspeech.audio import Cepstra, MfccConfig
    from ppspeech.audio.embeddings import WordVectors

    found = Clips()
    hear = (Cepstra(front_end) if isinstance(front_end, MfccConfig) else WordVectors(front_end)).of
    for clip in clips:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", SpeechWarning)
            try:
                hear(clip)
            except AudioError as error:
                if len(clips) == 1:
                    raise
                found.bad[clip] = str(error)
                continue
        found.good.append(clip)
        if said:
            found.doubtful[clip] = str(said[0].message)
    return found
