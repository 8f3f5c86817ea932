"""What is in a corpus, counted and drawn."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import soundfile

from ppspeech.data.corpus import Corpus
from ppspeech.errors import CorpusError
from ppspeech.figures import Figure
from ppspeech.pictures import blank, save
from ppspeech.progress import track


@dataclass(frozen=True)
class CorpusSummary:
    """Counts of a corpus: seconds of each utterance, and for each label how many utterances have each value."""

    name: str
    sample_rate: int
    durations: tuple[float, ...]
    labels: dict[str, dict[str, int]]

    @property
    def utterances(self) -> int:
        """How many recordings."""
        return len(self.durations)

    @property
    def speakers(self) -> int:
        """How many speakers."""
        return len(self.labels["speaker"])

    @property
    def seconds(self) -> float:
        """All recordings together."""
        return sum(self.durations)

    def figures(self) -> Iterator[Figure]:
        """The counts in the one format of figures."""
        yield Figure(f"corpus.{self.name}.utterances", self.utterances)
        yield Figure(f"corpus.{self.name}.seconds", round(self.seconds, 3), "s")
        for label, counts in self.labels.items():
            yield Figure(f"corpus.{self.name}.{label}s", len(counts))
        for subset, count in sorted(self.labels.get("subset", {}).items()):
            yield Figure(f"corpus.{self.name}.{subset}_utterances", count)


def summarize(corpus: Corpus) -> CorpusSummary:
    """Count a corpus; the header of every file is read, which also shows that it is a sound file. Raises CorpusError
    naming a file that is not; or for a corpus of filtered features, which has no durations.
    """
    if corpus.features is not None:
        raise CorpusError(f"corpus {corpus.name!r} holds filtered features, not sound: read its filtering.json")
    durations = []
    for utterance in track(corpus, "Reading headers", total=len(corpus)):
        try:
            durations.append(soundfile.info(utterance.path).duration)
        except soundfile.LibsndfileError as broken:
            raise CorpusError(f"corpus {corpus.name!r}: {utterance.path} is damaged: {broken.error_string}") from None
    fields = ("speaker", "word", "emotion", "gender", "take", "subset")
    labels = {field: dict(corpus.counts(field)) for field in fields}
    named = {field: counts for field, counts in labels.items() if set(counts) != {"None"}}
    return CorpusSummary(corpus.name, corpus.sample_rate, tuple(durations), named)


def plot_corpus(summary: CorpusSummary, path: Path) -> None:
    """Draw durations, utterances of each speaker, and of each word or emotion; saved as .png, .pdf or .svg."""
    label = next((field for field in ("word", "emotion") if field in summary.labels), "gender")
    figure = blank(12, 3.2)
    times, speakers, values = figure.subplots(1, 3)
    times.hist(summary.durations, bins=40, color="#4c72b0")
    times.set(xlabel="seconds", ylabel="utterances", title=f"{summary.name}: {summary.utterances:,} utterances")
    for axis, field in ((speakers, "speaker"), (values, label)):
        counts = dict(sorted(summary.labels.get(field, {}).items()))
        axis.bar(range(len(counts)), list(counts.values()), color="#55a868")
        axis.set(xlabel=field, ylabel="utterances", title=f"{len(counts)} {field}s")
        if len(counts) <= 20:
            axis.set_xticks(range(len(counts)), list(counts), rotation=90)
    save(figure, path, dpi=120)
