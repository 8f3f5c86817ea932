"""Keywords spelled with units, in sentences of people who were not heard: words, phrases, best averages, sub-words.

Thresholds are chosen on other sentences, of training speakers, so that at most one in a hundred that does not hold a
keyword counts as one that does; they are then kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig, in_usual_range
from ppspeech.bundle import SILENCE, BundleConfig, SentenceHmmSettings
from ppspeech.channel import Channel
from ppspeech.data import Corpus, Heard, heard_by, joined_sentences, load_corpus, split_by_speaker
from ppspeech.evidence.connected import DIGITS, HOP_S, PRIOR, audiomnist_digits
from ppspeech.figures import Figure
from ppspeech.models import HiddenMarkovModel
from ppspeech.models.decoding import DecodingGraph, embedded_training, even_start_, transcript_graph
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.search import Answers, Keywords, Recordings, answer, ask, encode
from ppspeech.service import Archive, Contents, Units, clear_segments, in_the_clear, sought

FALSE_ALARMS = 0.01
LONGEST_S = 1.5
PHONES = {
    "zero": "z ih r ow", "one": "w ah n", "two": "t uw", "three": "th r iy", "four": "f ao r", "five": "f ay v",
    "six": "s ih k s", "seven": "s eh v ah n", "eight": "ey t", "nine": "n ay n",
}  # fmt: skip
NEVER_HEARD = ("five", "nine")
"""Words all of whose phones are in others: models are trained without one, and it is spelled."""
PHONE_STATES = 2

Said = tuple[Tensor, tuple[str, ...]]
"""A sentence: features `(frames, d)`, and its words."""


@dataclass(frozen=True)
class Trials:
    """Pairs of a sentence and a keyword: whether it is said, found encrypted, found in the clear, and found alike."""

    said: list[bool] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    clear: list[bool] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)

    def figures(self, name: str, what: str) -> list[Figure]:
        """How many are found, how many falsely, with 95 % intervals, and how many as in the clear."""
        said, found, clear = (np.array(each) for each in (self.said, self.found, self.clear))
        note = f"{what}; thresholds from other sentences, at {FALSE_ALARMS:.0%} false alarms"
        rows = [("found", said), ("false_alarms", ~said)]
        figures = [
            Figure.share(
                f"spotting.{name}.{row}",
                int(found[where].sum()),
                int(where.sum()),
                "pairs",
                "in the clear",
                float(clear[where].mean()),
                note=note,
            )
            for row, where in rows
        ]
        agreed = int((found == clear).sum())
        alike, pairs = f"found or not, and where to the frame; {agreed} found or not", len(said)
        counted = (sum(self.same), pairs, "pairs", "", "pairs", pairs)
        return [*figures, Figure.count(f"spotting.{name}.equal", *counted, note=alike)]


def run_spelled(quick: bool) -> list[Figure]:
    """Digits as units of 15 unseen people of AudioMNIST, phrases of two with anything between, best averages; and words
    that were never heard, spelled with phones of others. `quick`: a few of each.
    """
    made = audiomnist_digits(24 if quick else 120)
    words, labels = Searched.of(made.bank, made.config, made.chosen_on, made.sentences), made.config.labels
    few = slice(2 if quick else None)
    pairs = list(combinations(labels, 2))[:: 30 if quick else 5]
    trials = {
        "unit": words.try_all([[word] for word in labels[few]], "Words"),
        "phrase": words.try_all([list(pair) for pair in pairs], "Phrases"),
        "average": words.try_all([[word] for word in labels[few]], "Best averages", average=True),
    }
    sentences = f"{len(made.sentences)} sentences of 4 to 8 digits, 15 people never heard"
    what = {
        "unit": f"{len(labels[few])} words in {sentences}",
        "phrase": f"{len(pairs)} phrases of two words in order, anything between, in {sentences}",
        "average": f"{len(labels[few])} words by their best average in {sentences}",
    }
    figures = [figure for name, each in trials.items() for figure in each.figures(name, what[name])]
    for word in NEVER_HEARD[: 1 if quick else None]:
        phones = phones_without(word, 1 if quick else 4, len(made.sentences))
        told = f"{word!r}, which no model has heard, spelled {PHONES[word]!r}, in {sentences}"
        figures += phones.try_all([[PHONES[word]]], "Sub-words", truth=[[word]]).figures(f"subword.{word}", told)
    return figures


@dataclass(frozen=True, eq=False)
class Searched:
    """Sentences to choose a threshold on, and sentences to search, as archives with what is said in each."""

    chosen_on: Archive
    tried: Archive
    chosen_texts: Sequence[Sequence[str]]
    texts: Sequence[Sequence[str]]

    @classmethod
    def of(
        cls, bank: HiddenMarkovModel, config: BundleConfig, chosen_on: Sequence[Said], sentences: Sequence[Said]
    ) -> "Searched":
        """By the models of a bank."""
        others, own = (archive_of(bank, config, [features for features, _ in each]) for each in (chosen_on, sentences))
        return cls(others, own, [text for _, text in chosen_on], [text for _, text in sentences])

    def try_all(
        self,
        phrases: Sequence[Sequence[str]],
        progress: str,
        *,
        average: bool = False,
        truth: Sequence[Sequence[str]] | None = None,
    ) -> Trials:
        """Look for phrases, words of units each; `truth`: the words that they stand for, where these are others."""
        trials = Trials()
        for phrase, meant in track(list(zip(phrases, truth or phrases, strict=True)), progress):
            text = " ... ".join(phrase)
            question = sought(self.chosen_on.terms, text, average=average).keywords
            (scores,) = clear_segments(question, self.chosen_on.recordings(question.shape))
            absent = ~np.array([in_order(meant, said) for said in self.chosen_texts])
            level = float(np.quantile(scores.score.numpy()[absent], 1 - FALSE_ALARMS, method="higher")) + 1e-6
            keyword = sought(self.tried.terms, text, threshold=level, average=average).keywords
            recordings = self.tried.recordings(keyword.shape)
            found, clear = encrypted(keyword, recordings)[0], in_the_clear(keyword, recordings)[0]
            trials.said.extend(in_order(meant, said) for said in self.texts)
            trials.found.extend(each is not None for each in found)
            trials.clear.extend(each is not None for each in clear)
            trials.same.extend(one == other for one, other in zip(found, clear, strict=True))
        return trials


def in_order(phrase: Sequence[str], said: Sequence[str]) -> bool:
    """Whether the words of a phrase follow one another, with anything between.

    >>> in_order(("one", "two"), ("one", "six", "two")), in_order(("one", "two"), ("two", "one"))
    (True, False)
    """
    rest = iter(said)
    return all(word in rest for word in phrase)


def archive_of(bank: HiddenMarkovModel, config: BundleConfig, sentences: Sequence[Tensor]) -> Archive:
    """Sentences as one piece each; examples are not asked for, so there is no garbage model."""
    units, mfcc = Units.of(bank, config), config.front_end
    lengths = tuple(map(len, sentences))
    longest = round(LONGEST_S / mfcc.hop_s)
    contents = Contents(
        mfcc=mfcc,
        units=units.names,
        states=bank.states,
        longest=longest,
        piece=max(2 * longest, max(lengths)),
        lengths=lengths,
        names=tuple(str(number) for number in range(len(lengths))),
        told=False,
    )
    frames = np.concatenate([in_usual_range(each, mfcc) for each in sentences])
    ratios = np.concatenate([units.ratios(each) for each in sentences])
    return Archive(contents, frames, np.zeros(len(frames)), ratios)


def encrypted(keyword: Keywords, recordings: Recordings) -> Answers:
    """What a client is told; both parties in this process."""

    def seek(channel: Channel) -> Answers:
        met = meet_as_client(channel)
        with met.session():
            return ask(met, keyword)

    def hold(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer(met, recordings, encode(recordings))

    return run_together(seek, hold)[0]


def phones_without(word: str, each: int, count: int) -> Searched:
    """Models of phones, trained on `each` sentence of 45 people that do not say the word, by transcripts alone."""
    corpus = load_corpus("audiomnist")
    split, phones = (
        split_by_speaker(corpus, corpus.speakers[::4]),
        tuple(sorted(set(" ".join(PHONES.values()).split()))),
    )
    settings = replace(DIGITS, states=PHONE_STATES)
    config = BundleConfig(settings, phones, replace(MfccConfig.at_rate(corpus.sample_rate), hop_s=HOP_S))

    def heard(part: Corpus, number: int, words: tuple[int, int], seed: int) -> list[Heard]:
        return heard_by(config.front_end, joined_sentences(part, number, corpus.sample_rate, words, seed))

    bank = _trained(config, settings, heard(split.train.select(lambda u: u.word != word), each, (4, 7), 0))
    parts = []
    for part in (split.train, split.test):
        sentences = heard(part, -(-count // len(part.speakers)), (4, 8), 1)[:count]
        parts.append([(each.features, each.sentence.text) for each in sentences])
    return Searched.of(bank, config, *parts)


def _trained(config: BundleConfig, settings: SentenceHmmSettings, sentences: Iterable[Heard]) -> HiddenMarkovModel:
    """On words and pauses, whose phones are known and not where they are."""
    pieces = [
        (heard.features[mark.start : mark.end], [SILENCE] if mark.word is None else PHONES[mark.word].split())
        for heard in sentences
        for mark in heard.segments
    ]
    pieces = [(frames, text) for frames, text in pieces if len(frames) >= PHONE_STATES * len(text)]
    features = pad_sequence([frames for frames, _ in pieces], batch_first=True)
    lengths, names = torch.tensor([len(frames) for frames, _ in pieces]), (*config.labels, SILENCE)
    bank = config.build()
    assert isinstance(bank, HiddenMarkovModel)
    even_start_(bank, features, lengths, [[names.index(phone) for phone in text] for _, text in pieces], prior=PRIOR)

    def draw(trained: HiddenMarkovModel) -> list[DecodingGraph]:
        units = settings.models(trained, config.labels)
        drawn = {text: transcript_graph(text, units) for text in {tuple(text) for _, text in pieces}}
        return [drawn[tuple(text)] for _, text in pieces]

    embedded_training(bank, features, lengths, draw, 6, PRIOR)
    return bank.eval()
