"""What is in a corpus, counted and drawn."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ppspeech.audio import MfccConfig
from ppspeech.data.corpus import Corpus
from ppspeech.data.sound_check import Fault, faults_of, listen, rates_of
from ppspeech.errors import CorpusError
from ppspeech.figures import Figure
from ppspeech.pictures import blank, save


@dataclass(frozen=True)
class CorpusSummary:
    """Counts of a corpus: seconds of each utterance, for each label how many utterances have each value, how many are
    recorded at each rate, and what is wrong.
    """

    name: str
    sample_rate: int
    durations: tuple[float, ...]
    labels: dict[str, dict[str, int]]
    rates: Mapping[int, int]
    faults: tuple[Fault, ...]
    speakers_known: bool

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

    @property
    def lengths(self) -> Mapping[str, float]:
        """Seconds of the shortest, the median and the longest recording, of those that can be read."""
        heard = [seconds for seconds in self.durations if seconds] or [0.0]
        return {"shortest": min(heard), "median": statistics.median(heard), "longest": max(heard)}

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong that must be mended: what is only doubtful may stay."""
        return all(fault.kind == "doubtful" for fault in self.faults)

    def figures(self) -> Iterator[Figure]:
        """The counts in the one format of figures."""
        yield Figure(f"corpus.{self.name}.utterances", self.utterances)
        yield Figure(f"corpus.{self.name}.seconds", round(self.seconds, 3), "s")
        for which, seconds in self.lengths.items():
            yield Figure(f"corpus.{self.name}.{which}", round(seconds, 3), "s")
        for rate, count in self.rates.items():
            yield Figure(f"corpus.{self.name}.at_{rate}_hz", count)
        for kind in ("unusable", "narrow", "shared", "doubtful"):
            yield Figure(f"corpus.{self.name}.{kind}", sum(fault.kind == kind for fault in self.faults))
        for label, counts in self.labels.items():
            yield Figure(f"corpus.{self.name}.{label}s", len(counts))
        for subset, count in sorted(self.labels.get("subset", {}).items()):
            yield Figure(f"corpus.{self.name}.{subset}_utterances", count)


def summarize(corpus: Corpus) -> CorpusSummary:
    """Count a corpus and listen to every recording of it. Raises CorpusError for a corpus of filtered features, which
    has no durations.
    """
    if corpus.features is not None:
        raise CorpusError(f"corpus {corpus.name!r} holds filtered features, not sound: read its filtering.json")
    heard = listen(corpus.utterances)
    fields = ("speaker", "word", "emotion", "gender", "take", "subset")
    labels = {field: dict(corpus.counts(field)) for field in fields}
    named = {field: counts for field, counts in labels.items() if set(counts) != {"None"}}
    return CorpusSummary(
        name=corpus.name,
        sample_rate=corpus.sample_rate,
        durations=tuple(clip.seconds for clip in heard),
        labels=named,
        rates=rates_of(heard),
        faults=tuple(faults_of(corpus, heard, MfccConfig.at_rate(corpus.sample_rate))),
        speakers_known=corpus.speakers_known,
    )


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
