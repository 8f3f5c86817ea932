"""Connected speech from a corpus of single words: clips of one speaker, one after another, with pauses of faint noise.

Where every word begins and ends is known to the sample, so models can be trained on the pieces and decoders tested on
the whole. A sentence is of one speaker, and follows from a public seed, that speaker's own clips and its number alone:
no split by speaker can leak through it, and who else is in the corpus changes nothing.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, MfccConfig
from ppspeech.data.batches import Batch
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.errors import CorpusError

PAUSE = (0.0, 0.3)  # seconds between two words
LEAD = (0.1, 0.3)  # seconds before the first word, and after the last
NOISE = 0.01  # deviation of what is heard in a pause, as a part of the sentence's
HUSHED = 1e-3  # power below this part of a clip's loudest is no speech
AROUND = 0.05  # seconds that are kept on both sides of speech
SMOOTH = 0.025  # seconds over which power is averaged


@dataclass(frozen=True, slots=True)
class Mark:
    """A word in samples `start` to `end - 1` of a sentence; None for a pause."""

    word: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """Words by one speaker: the waveform `(samples,)` at `rate` Hz, and marks that cover it from end to end."""

    speaker: str
    rate: int
    waveform: Tensor
    marks: tuple[Mark, ...]

    @property
    def text(self) -> tuple[str, ...]:
        """The words, in order."""
        return tuple(mark.word for mark in self.marks if mark.word is not None)

    def segments(self, config: MfccConfig, frames: int) -> tuple[Mark, ...]:
        """The marks in frames of a front end that gave `frames` of them; a frame belongs to where its middle lies.

        Marks that hold no frame's middle are left out. Raises CorpusError for a front end of another rate, or one that
        drops frames (`vad_db`).
        """
        if config.sample_rate != self.rate or config.vad_db is not None:
            raise CorpusError(
                f"marks of a sentence at {self.rate} Hz are in frames of a front end of that rate that keeps all "
                f"frames, got {config.sample_rate} Hz and vad_db {config.vad_db}"
            )
        hop, middle = config.hop_length, config.window_length // 2
        found = []
        for mark in self.marks:
            start, end = (min(frames, max(0, -(-(at - middle) // hop))) for at in (mark.start, mark.end))
            last = frames if mark is self.marks[-1] else end
            if start < last:
                found.append(Mark(mark.word, start, last))
        return tuple(found)


def joined_sentences(
    corpus: Corpus,
    each: int,
    rate: int,
    words: tuple[int, int] = (4, 7),
    seed: int = 0,
    levels: tuple[float, float] = (0.0, 0.0),
) -> Iterator[Sentence]:
    """Sentences of every speaker in turn, `each` of them, of so many words, at a sample rate.

    Clips are drawn with replacement from what the speaker says, cut to their speech and scaled to a peak of 1; then the
    whole sentence by a gain of so many dB, drawn between `levels`, as people stand nearer and farther. The same seed
    gives the same sentences of a speaker, the first of them whatever `each` is. Raises CorpusError for a corpus without
    words, numbers that are not positive, levels out of order or a silent clip.
    """
    fewest, most = words
    if not -100 <= levels[0] <= levels[1] <= 0:
        raise CorpusError(f"levels are decibels from -100 to 0, the lower first, got {levels}")
    if each < 1 or not 1 <= fewest <= most:
        raise CorpusError(f"sentences need each >= 1 and 1 <= words[0] <= words[1], got {each} and {words}")
    spoken: dict[str, list[Utterance]] = {}
    for utterance in corpus:
        if utterance.word is not None:
            spoken.setdefault(utterance.speaker, []).append(utterance)
    if not spoken:
        raise CorpusError(f"corpus {corpus.name!r} has no words to join: take one of single words")
    for number in range(each):
        for speaker in sorted(spoken):
            drawn = _generator(seed, speaker, number)
            places = drawn.integers(0, len(spoken[speaker]), int(drawn.integers(fewest, most + 1)))
            clips = [spoken[speaker][place] for place in places]
            sentence = _joined(speaker, [(str(u.word), _speech(u, rate)) for u in clips], rate, drawn)
            gain = 10 ** (float(drawn.uniform(*levels)) / 20)
            yield replace(sentence, waveform=gain * sentence.waveform)


class Pieces(Dataset[Batch]):
    """Words and pauses of sentences as training items `{"features": (frames, d), "word", "speaker", "index"}`; the word
    of a pause is one more than the last of `words`. `speakers` `(items,)` are places among the speakers' names.

    Pieces shorter than `shortest` frames, through which no model leads, are left out.
    """

    def __init__(self, joined: Sequence["Heard"], words: Sequence[str], speakers: Sequence[str], shortest: int) -> None:
        word, person = ({name: i for i, name in enumerate(names)} for names in (words, speakers))
        cut = [(heard, mark) for heard in joined for mark in heard.segments if mark.end - mark.start >= shortest]
        self.features = [heard.features[mark.start : mark.end] for heard, mark in cut]
        self.words = torch.tensor([len(words) if mark.word is None else word[mark.word] for _, mark in cut])
        self.speakers = torch.tensor([person[heard.sentence.speaker] for heard, _ in cut])
        self.sizes = [len(features) for features in self.features]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> Batch:
        known = {"word": self.words[index], "speaker": self.speakers[index], "index": torch.tensor(index)}
        return {"features": self.features[index], **known}


class WholeSentences(Dataset[Batch]):
    """Sentences as items `{"features": (frames, d), "said": (longest,), "speaker", "index"}`; what is said is filled up
    with -1. `speakers` `(items,)` are places among the speakers' names, `heard` the sentences themselves.
    """

    def __init__(self, joined: Sequence["Heard"], words: Sequence[str], speakers: Sequence[str]) -> None:
        self.heard, self.features = tuple(joined), [heard.features for heard in joined]
        self.sizes = [len(features) for features in self.features]
        self.speakers = torch.tensor([speakers.index(heard.sentence.speaker) for heard in joined])
        texts = [[words.index(word) for word in heard.sentence.text] for heard in joined]
        longest = max(map(len, texts))
        self.said = torch.tensor([text + [-1] * (longest - len(text)) for text in texts])

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> Batch:
        known = {"said": self.said[index], "speaker": self.speakers[index], "index": torch.tensor(index)}
        return {"features": self.features[index], **known}


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """A sentence as a front end hears it: features `(frames, d)`, and its marks in frames."""

    sentence: Sentence
    features: Tensor
    segments: tuple[Mark, ...]


@torch.no_grad()
def heard_by(config: MfccConfig, sentences: Iterator[Sentence]) -> list[Heard]:
    """The sentences with their features."""
    mfcc, found = Mfcc(config), []
    for sentence in sentences:
        features = mfcc(sentence.waveform).features[0]
        found.append(Heard(sentence, features, sentence.segments(config, len(features))))
    return found


def _generator(seed: int, speaker: str, number: int) -> np.random.Generator:
    own = hashlib.sha256(speaker.encode()).digest()[:8]
    return np.random.default_rng([seed, int.from_bytes(own, "big"), number])


def _joined(speaker: str, clips: list[tuple[str, Reals]], rate: int, drawn: np.random.Generator) -> Sentence:
    level = NOISE * float(np.std(np.concatenate([clip for _, clip in clips])))
    pauses = [LEAD, *[PAUSE] * (len(clips) - 1), LEAD]
    quiet = [drawn.normal(0, level, int(drawn.uniform(*seconds) * rate)) for seconds in pauses]
    pieces: list[tuple[str | None, Reals]] = [(None, quiet[0])]
    for (word, clip), pause in zip(clips, quiet[1:], strict=True):
        pieces += [(word, clip), (None, pause)]
    ends = np.cumsum([len(piece) for _, piece in pieces]).tolist()
    spans = zip((word for word, _ in pieces), [0, *ends[:-1]], ends, strict=True)
    marks = tuple(Mark(word, start, end) for word, start, end in spans if start < end)
    waveform = torch.from_numpy(np.concatenate([piece for _, piece in pieces]).astype(np.float32))
    return Sentence(speaker, rate, waveform, marks)


def _speech(utterance: Utterance, rate: int) -> Reals:
    """A clip without the silence around it, at a peak of 1."""
    samples = utterance.waveform(rate).double().numpy()
    window = max(1, int(SMOOTH * rate))
    sums = np.concatenate([[0.0], np.cumsum(np.pad(samples**2, (window // 2, window - window // 2)))])
    power = sums[window:] - sums[:-window]
    loud = np.flatnonzero(power[: len(samples)] > HUSHED * power.max()) if len(samples) else np.array([])
    if not len(loud) or not np.abs(samples).max() > 0:
        raise CorpusError(f"{utterance.path} is silent: leave it out of the corpus")
    margin = int(AROUND * rate)
    kept = samples[max(0, loud[0] - margin) : loud[-1] + margin]
    scaled: Reals = kept / np.abs(kept).max()
    return scaled
