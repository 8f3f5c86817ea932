"""What a speech corpus is: utterances, each a file and what is known about it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

import torch

from ppspeech.audio import read_audio
from ppspeech.errors import CorpusError

LABELS = ("word", "speaker", "emotion", "gender")  # what a model may learn to tell, or a filter to hide


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording and its labels. Nothing is read before `waveform` is called."""

    path: Path
    speaker: str  # the unit that privacy accounting counts; where unlabeled, every file has one of its own
    word: str | None = None
    text: str | None = None
    emotion: str | None = None  # emotion or speaking style
    gender: str | None = None
    take: int = 0  # which repetition of the same word by the same speaker
    subset: str | None = None  # the part of the corpus's own official split: `train`, `validation` or `test`

    def waveform(self, sample_rate: int) -> torch.Tensor:
        """Read the recording as mono float32 at `sample_rate`, shape `(samples,)`."""
        return read_audio(self.path, sample_rate=sample_rate)


@dataclass(frozen=True)
class Corpus(Sequence[Utterance]):
    """A named sequence of utterances, most of them recorded at one rate or a higher one. `features` is None for sound;
    where the utterances are arrays of given features, how many values a frame has. Where `speakers_known` is false,
    every recording has a speaker of its own: a split by speaker, and a promise to one, is by recording.

    >>> clip = Utterance(Path("a.wav"), speaker="ann", word="yes")
    >>> corpus = Corpus("tiny", 8000, (clip, replace(clip, speaker="bob")))
    >>> corpus.speakers, corpus.words, len(corpus)
    (('ann', 'bob'), ('yes',), 2)
    """

    name: str
    sample_rate: int
    utterances: tuple[Utterance, ...]
    features: int | None = None
    speakers_known: bool = True

    def __len__(self) -> int:
        return len(self.utterances)

    @overload
    def __getitem__(self, index: int) -> Utterance: ...
    @overload
    def __getitem__(self, index: slice) -> "Corpus": ...
    def __getitem__(self, index: int | slice) -> "Utterance | Corpus":
        if isinstance(index, slice):
            return replace(self, utterances=self.utterances[index])
        return self.utterances[index]

    def __iter__(self) -> Iterator[Utterance]:
        return iter(self.utterances)

    @property
    def speakers(self) -> tuple[str, ...]:
        """The speakers, sorted."""
        return self.labels("speaker")

    @property
    def words(self) -> tuple[str, ...]:
        """The words, sorted; empty where the corpus has none."""
        return self.labels("word")

    def labels(self, field: str) -> tuple[str, ...]:
        """The distinct values of a label, sorted, without None."""
        return tuple(sorted({getattr(u, field) for u in self.utterances} - {None}))

    def counts(self, field: str) -> Counter[str]:
        """How many utterances carry each value of a label."""
        return Counter(str(getattr(u, field)) for u in self.utterances)

    def select(self, keep: Callable[[Utterance], bool]) -> "Corpus":
        """The utterances for which `keep` is true, in order; none is refused, as it trains and scores nothing."""
        kept = tuple(u for u in self.utterances if keep(u))
        if not kept:
            raise CorpusError(f"the selection leaves no utterance of corpus {self.name!r} ({len(self)} utterances)")
        return replace(self, utterances=kept)
