"""What is wrong with the recordings of a corpus: every file is listened to once, and what was heard is remembered."""

import hashlib
import json
import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ppspeech.audio import MfccConfig, read_with_rate
from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.cluster import HERE, Pool
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.file_index import FileIndex
from ppspeech.data.layout import first_few
from ppspeech.errors import AudioError, CorpusError, SpeechWarning

CLIPPED = 0.01  # the share of samples at full scale from which a recording counts as clipped
ODD_LENGTH = 10  # how many times longer, or shorter, than the median a recording may be without a word

Kind = Literal["unusable", "narrow", "shared", "doubtful"]
"""`unusable` has no features; `narrow` lacks what the front end listens to; `shared` is one sound under two names;
`doubtful` can be used, and should be looked at."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What listening to one file told."""

    sample_rate: int = 0
    samples: int = 0
    clipped: float = 0.0  # the share of samples at full scale
    silent: bool = False
    digest: str = ""  # of the sound, whatever the format
    unreadable: str = ""  # why, where it cannot be read

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.samples / self.sample_rate if self.sample_rate else 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with one recording."""

    utterance: Utterance
    kind: Kind
    what: str


def listen(utterances: Sequence[Utterance], index: FileIndex | None = None, workers: Pool = HERE) -> list[Heard]:
    """Listen to every recording that has not been listened to since it was last changed."""
    index = index or FileIndex.in_cache()
    told = index.facts("sound", [utterance.path for utterance in utterances], _listen, workers)
    return [Heard(**json.loads(fact)) for fact in told]


def _listen(path: Path) -> str:
    try:
        waveform, rate = read_with_rate(path)
    except AudioError as error:
        return json.dumps(asdict(Heard(unreadable=str(error).removeprefix(str(path)).strip(" :"))))
    level = waveform.abs()
    heard = Heard(
        sample_rate=rate,
        samples=len(waveform),
        clipped=float((level > 0.9999 - 2**-15).float().mean()),
        silent=not level.any(),
        digest=hashlib.blake2b(waveform.numpy().tobytes(), digest_size=16).hexdigest(),
    )
    return json.dumps(asdict(heard))


def faults_of(corpus: Corpus, heard: Sequence[Heard], config: MfccConfig | EmbeddingConfig) -> list[Fault]:
    """All that is wrong for a front end, in the order of the corpus, what is worst of each recording first."""
    needed = config.shortest_s
    usual = statistics.median([clip.seconds for clip in heard if clip.samples] or [0.0])
    names: dict[str, list[Utterance]] = defaultdict(list)
    for utterance, clip in zip(corpus, heard, strict=True):
        if clip.digest and not clip.silent:
            names[clip.digest].append(utterance)
    found = []
    for utterance, clip in zip(corpus, heard, strict=True):
        if clip.unreadable:
            found.append(Fault(utterance, "unusable", clip.unreadable))
        elif clip.silent:
            found.append(Fault(utterance, "unusable", "is silent: every sample is zero"))
        elif clip.seconds < needed:
            what = f"lasts {1000 * clip.seconds:.0f} ms, and features need {1000 * needed:.0f} ms"
            found.append(Fault(utterance, "unusable", what))
        else:
            if clip.sample_rate < config.sample_rate:
                what = (
                    f"is recorded at {clip.sample_rate:,} Hz where the front end listens at {config.sample_rate:,} Hz"
                )
                found.append(Fault(utterance, "narrow", what))
            found += _twins(utterance, names[clip.digest])
            if clip.clipped > CLIPPED:
                found.append(Fault(utterance, "doubtful", f"is clipped: {clip.clipped:.0%} of it is at full scale"))
            if not usual / ODD_LENGTH <= clip.seconds <= usual * ODD_LENGTH:
                what = f"lasts {clip.seconds:.2f} s where half of the recordings last {usual:.2f} s or less"
                found.append(Fault(utterance, "doubtful", what))
    return found


def _twins(utterance: Utterance, same: Sequence[Utterance]) -> Iterable[Fault]:
    others = [other for other in same if other is not utterance]
    if not others:
        return
    for field in ("speaker", "word"):
        different = [other for other in others if getattr(other, field) != getattr(utterance, field)]
        if different:
            what = f"is the same sound as {different[0].path.name} of {field} {getattr(different[0], field)}"
            yield Fault(utterance, "shared", f"of {field} {getattr(utterance, field)}, {what}")
            return
    yield Fault(utterance, "doubtful", f"is the same sound as {others[0].path.name}")


def usable(
    corpus: Corpus,
    config: MfccConfig | EmbeddingConfig,
    *,
    skip_bad: bool = False,
    rate_chosen: bool = False,
    workers: Pool = HERE,
) -> Corpus:
    """The recordings that a front end can use; `workers` listen to them.

    All that cannot be are refused at once by CorpusError, which lists them, or, with `skip_bad`, left out with a
    warning. Recordings narrower than the front end count among them, unless its rate was chosen on purpose. Warns of
    mixed rates and of a sound that stands under two speakers or words.
    """
    if corpus.features is not None:
        return corpus
    heard = listen(corpus.utterances, workers=workers)
    faults = faults_of(corpus, heard, config)
    # Where most are as wide as the front end, a narrow one is an accident; where none is, there is nothing better.
    accident = not rate_chosen and corpus.sample_rate >= config.sample_rate
    bad = [fault for fault in faults if fault.kind == "unusable" or (accident and fault.kind == "narrow")]
    if bad and not skip_bad:
        narrow = any(fault.kind == "narrow" for fault in bad)
        rates = sorted({clip.sample_rate for clip in heard if clip.sample_rate})
        lower = f"choose a rate that all have (`--data.rate {rates[0]}`), or " if narrow else ""
        raise CorpusError(
            f"{len(bad)} of {len(corpus)} recordings of {corpus.name!r} cannot be used: {told(bad)}; mend them, {lower}"
            "leave them out (`--data.skip_bad true`, of `ppspeech pack` --skip-bad, in a filter's recipe "
            "skip_bad: true); `ppspeech corpus` lists all"
        )
    _warn_of_rates(corpus, heard, config)
    for kind, why in (("shared", "are also there under another name"), ("narrow", "lack part of the band")):
        some = [fault for fault in faults if fault.kind == kind and fault not in bad]
        if some:
            warnings.warn(
                f"{len(some)} of {len(corpus)} recordings of {corpus.name!r} {why}: {told(some)}",
                SpeechWarning,
                stacklevel=2,
            )
    if not bad:
        return corpus
    warnings.warn(f"{len(bad)} of {len(corpus)} recordings are left out: {told(bad, 20)}", SpeechWarning, stacklevel=2)
    out = {fault.utterance.path for fault in bad}
    return corpus.select(lambda utterance: utterance.path not in out)


def _warn_of_rates(corpus: Corpus, heard: Sequence[Heard], config: MfccConfig | EmbeddingConfig) -> None:
    rates = rates_of(heard)
    if len(rates) > 1:
        mixed = ", ".join(f"{count:,} at {rate:,} Hz" for rate, count in rates.items())
        warnings.warn(
            f"{corpus.name!r} has mixed rates ({mixed}); all are brought to {config.sample_rate:,} Hz",
            SpeechWarning,
            stacklevel=3,
        )


def rates_of(heard: Iterable[Heard]) -> Mapping[int, int]:
    """How many recordings have each rate, the most common first."""
    return dict(Counter(clip.sample_rate for clip in heard if clip.sample_rate).most_common())


def told(faults: Sequence[Fault], most: int = 5) -> str:
    """Faults for a message."""
    return first_few([f"{fault.utterance.path} {fault.what}" for fault in faults], most)


def with_training(label: str, parts: Mapping[str, Corpus], *, skip_bad: bool = False) -> Mapping[str, Corpus]:
    """Parts in which every recording has a value of `label` that is trained.

    A value that nobody says in the training part would get a model of nothing. Recordings without a value, and of
    values without a training recording, are refused by CorpusError, or with `skip_bad` left out with a warning. Warns
    of values with a single training recording.
    """
    trained = parts["train"].counts(label)
    lost = {
        name: {value: count for value, count in part.counts(label).items() if value == "None" or value not in trained}
        for name, part in parts.items()
    }
    unlabeled = sum(counts.get("None", 0) for counts in lost.values())
    untrained = sorted({value for counts in lost.values() for value in counts} - {"None"})
    what = [f"{unlabeled} recordings have no {label}"] if unlabeled else []
    if untrained:
        what.append(f"no training recording is left of {label} {first_few(untrained, 20)}")
    if what and not skip_bad:
        raise CorpusError(
            f"corpus {parts['train'].name!r}: {', and '.join(what)}; record more, split otherwise "
            "(`--data.split take`, `--data.seed 1`), or leave them out (`--data.skip_bad true`)"
        )
    if what:
        warnings.warn(f"left out: {', and '.join(what)}", SpeechWarning, stacklevel=2)
        kept = set(trained) - {"None"}
        parts = {name: part.select(lambda u: getattr(u, label) in kept) for name, part in parts.items()}
    once = sorted(value for value, count in parts["train"].counts(label).items() if count == 1)
    if once:
        warnings.warn(
            f"a single training recording of {label} {first_few(once, 20)}: a model of it knows one voice, once",
            SpeechWarning,
            stacklevel=2,
        )
    return parts
