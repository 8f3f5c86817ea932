"""A corpus or a table as a filter sees it: samples, each with a label to keep and one to hide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, GivenFeatures, MfccConfig, utterance_statistics
from ppspeech.cluster import HERE, Pool
from ppspeech.data.batches import numbered
from ppspeech.data.corpora.synthetic import DIGITS, SyntheticCorpus
from ppspeech.data.corpus import LABELS, Corpus
from ppspeech.data.features import FeatureStore
from ppspeech.data.registry import load_corpus, load_table, options_for
from ppspeech.data.sound_check import usable
from ppspeech.data.splits import hold_out
from ppspeech.errors import CorpusError

Level = Literal["utterance", "frames", "table"]
"""What one sample is: the statistics of an utterance, a frame, or a row of a table."""

PERSON, CLASS = "person", "class"  # the labels of a table: whose row it is, and what it shows


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and two labels of each."""

    inputs: Sequence[Tensor]  # of each sample, `(D,)` or `(frames, D)`
    kept: Sequence[str]
    private: Sequence[str]
    recordings: Sequence[str]  # where each was taken from; those of one recording must not be on both sides of a test
    mfcc: MfccConfig | None = None
    left_out: int = 0  # recordings that could not be used
    sounds: Sequence[Tensor] = ()  # of sound, mel frames of each that a voice embedding takes; none where it is not

    @property
    def kept_numbers(self) -> Tensor:
        """The labels to keep as 0, 1, … in sorted order, `(samples,)`."""
        return numbered(self.kept)[1]

    @property
    def private_numbers(self) -> Tensor:
        """The labels to hide, likewise."""
        return numbered(self.private)[1]

    def hold_out(self, share: float, seed: int) -> Tensor:
        """Recordings of everyone to test on, bool `(samples,)`."""
        return hold_out(self.private_numbers, numbered(self.recordings)[1], share, seed)

    @torch.no_grad()
    def part(self, rows: Tensor, module: nn.Module | None = None) -> Tensor | Frames:
        """The samples of a bool mask, behind a filter where one is given: `(samples, d)`, or Frames."""
        through = module or nn.Identity()
        inputs = [self.inputs[index] for index in rows.nonzero().flatten().tolist()]
        if inputs[0].ndim == 1:
            return cast(Tensor, through(torch.stack(inputs)))
        clips = [cast(Tensor, through(clip)) for clip in inputs]
        return Frames(pad_sequence(clips, batch_first=True), torch.tensor([len(clip) for clip in clips]))

    def heard(self, rows: Tensor) -> Frames:
        """The `sounds` of a bool mask."""
        clips = [self.sounds[index] for index in rows.nonzero().flatten().tolist()]
        return Frames(pad_sequence(clips, batch_first=True), torch.tensor([len(clip) for clip in clips]))


def load_samples(
    keep: str,
    hide: str,
    level: Level,
    source: str,
    options: Mapping[str, Any],
    mfcc: MfccConfig | None,
    *,
    unlabeled: bool = False,
    skip_bad: bool = False,
    workers: Pool = HERE,
) -> Samples:
    """Load a corpus or table with two of its labels; utterances that lack one of them are left out, unless `unlabeled`
    ones may stay: then nothing is kept of them, and they count as one person's. The front end is None for a table.
    Features that are not in the cache are computed by `workers`. Raises CorpusError if there is no such label, the
    corpus holds no sound, or recordings that cannot be used, which `skip_bad` leaves out with a warning.
    """
    if level == "table":
        return _of_table(keep, hide, source, options)
    wrong = [label for label in (keep, hide) if label not in LABELS]
    if wrong:
        raise CorpusError(f"a corpus has no label {wrong[0]!r}: known are {', '.join(LABELS)}")
    assert mfcc is not None
    corpus = load_corpus(source, **options_for(source, options))
    if not unlabeled:
        corpus = corpus.select(lambda u: None not in (getattr(u, keep), getattr(u, hide)))
    if corpus.features is not None:
        raise CorpusError(
            f"corpus {corpus.name!r} is filtered already: filters are learned from, and applied to, sound"
        )
    whole = len(corpus)
    corpus = usable(corpus, mfcc, skip_bad=skip_bad, workers=workers)
    if workers is not HERE:
        FeatureStore(mfcc).fill(corpus.utterances, workers)
    clips: Sequence[Tensor] = FeatureStore(mfcc).lazy(corpus.utterances)
    if level == "utterance":
        clips = [inputs_of(clip, level) for clip in clips]
    return Samples(
        clips,
        [getattr(u, keep) or "" for u in corpus],
        [getattr(u, hide) or "" for u in corpus],
        [str(index) for index in range(len(corpus))],
        mfcc,
        whole - len(corpus),
    )


def inputs_of(frames: Tensor, level: Level) -> Tensor:
    """What a filter takes of an utterance's `(frames, d)`: its statistics `(4 d,)`, or all of it."""
    if level == "frames":
        return frames
    return utterance_statistics(Frames(frames.unsqueeze(0), torch.tensor([len(frames)])))[0]


def _of_table(keep: str, hide: str, source: str, options: Mapping[str, Any]) -> Samples:
    table = load_table(source, **options)
    columns = {CLASS: [table.label_names[label] for label in table.labels.tolist()]}
    if table.groups is not None:
        columns[PERSON] = [str(group) for group in table.groups.tolist()]
    columns |= {name: [str(value) for value in values.tolist()] for name, values in table.extra.items()}
    for label in (keep, hide):
        if label not in columns:
            raise CorpusError(f"table {source!r} has no label {label!r}: it has {', '.join(columns)}")
    recordings = columns.get("recording", [str(index) for index in range(len(table))])
    return Samples(table.features.unbind(0), columns[keep], columns[hide], recordings)


def scale_corpus(sample_rate: int) -> Corpus:
    """The recordings of the built-in voices that `public_scale` hears."""
    return SyntheticCorpus(
        DIGITS[::2], speakers=24, takes=1, styles=("calm", "excited"), sample_rate=sample_rate
    ).build()


@lru_cache(maxsize=8)
def public_scale(config: MfccConfig) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of utterance statistics over the built-in voices, each `(4 * features,)`.

    The built-in voices are nobody's: whatever is scaled by them depends on no private recording but its own. Given
    features are left as they are: filters give deviations near one.
    """
    if isinstance(config, GivenFeatures):
        return torch.zeros(4 * config.features), torch.ones(4 * config.features)
    features = FeatureStore(config).load(scale_corpus(config.sample_rate).utterances)
    vectors = torch.cat([utterance_statistics(Frames(f.unsqueeze(0), torch.tensor([len(f)]))) for f in features])
    return vectors.mean(0), vectors.std(0).clamp_min(1e-6)
