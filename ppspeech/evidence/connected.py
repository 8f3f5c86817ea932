"""Connected words of real people: models trained in a moment, and the sentences they are tested on.

What encrypted and clear recognition are compared on. AudioMNIST and FSDD are single words, joined to sentences with
pauses (`ppspeech.data.joined_sentences`); yesno was spoken as sentences. Settings were chosen on training speakers and
takes alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.bundle import SILENCE, BundleConfig, SentenceHmmSettings, SentenceTranscriber
from ppspeech.data import (
    Corpus,
    Heard,
    Pieces,
    Split,
    heard_by,
    joined_sentences,
    load_corpus,
    split_by_speaker,
    split_by_take,
    split_official,
)
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models import (
    GaussianEmission,
    HiddenMarkovModel,
    Prior,
    WordErrors,
    baum_welch,
    flat_start_,
    total_word_errors,
)
from ppspeech.models.decoding import DecodingGraph, decode, embedded_training, even_start_, transcript_graph
from ppspeech.protocols.scores import form_weights

HOP_S = 0.03
DIGITS = SentenceHmmSettings(states=5, covariance="full", floor=0.3, grammar=None, word_penalty=20.0, leave=0.2)
YESNO = replace(DIGITS, covariance="diagonal", word_penalty=0.0)
PRIOR = Prior(covariance=100.0)
ITERATIONS = 6

Said = tuple[Tensor, tuple[str, ...]]
"""A sentence: features `(frames, d)`, and its words."""


@dataclass(frozen=True, eq=False)
class Connected:
    """A trained bank, and sentences that it has not heard.

    Attributes:
        config: words, front end and graph, as a bundle says them.
        bank: the words in their order, then silence.
        chosen_on: sentences of training speakers, to choose by.
        sentences: to test on.
        longest: the largest norm of a training frame.
    """

    config: BundleConfig
    bank: HiddenMarkovModel
    chosen_on: tuple[Said, ...]
    sentences: tuple[Said, ...]
    longest: float

    @property
    def names(self) -> tuple[str, ...]:
        """The words, and `SILENCE` last."""
        return (*self.config.labels, SILENCE)

    @property
    def graph(self) -> DecodingGraph:
        """What may be said; `graph.drawn` is its form for a trellis."""
        return self.transcriber.graph

    @cached_property
    def transcriber(self) -> SentenceTranscriber:
        """The bank in the clear, as a bundle would use it."""
        return SentenceTranscriber.of(self.bank, self.config)

    @cached_property
    def stays(self) -> Tensor:
        """ln of staying in the state of each column, `(columns,)`."""
        drawn, found = self.graph.drawn, torch.zeros(self.bank.models * self.bank.states, dtype=torch.float64)
        for edge in drawn.edges:
            column = drawn.pdfs[edge.source]
            if column is not None and edge.source == edge.target:
                found[column] = edge.log_weight
        return found

    def errors(
        self, sentences: Iterable[Said], *, radius: float | None = None, floor: float | None = None
    ) -> WordErrors:
        """With the transcriber's radius, or another; with a floor under scores (staying included)."""
        transcriber = self.transcriber if radius is None else replace(self.transcriber, radius=radius)
        heard = []
        for features, text in sentences:
            scores = transcriber.scores(features).double()
            if floor is not None:
                scores = torch.maximum(scores, floor - self.stays)
            heard.append((text, [word.word for word in decode(self.graph, scores).words]))
        return total_word_errors(heard)


def rate_of(
    metric: str, found: WordErrors, peer: str | None = None, peer_value: float | None = None, note: str | None = None
) -> Figure:
    """A word error rate, with an interval over words as long as there are no more errors than words."""
    if found.errors > found.words:
        return Figure(metric, found.rate, "", peer, peer_value, note=note)
    return Figure.share(metric, found.errors, found.words, "words", peer, peer_value, note=note)


def audiomnist_digits(
    sentences: int = 120,
    settings: SentenceHmmSettings = DIGITS,
    hop_s: float = HOP_S,
    mfcc: MfccConfig | None = None,
    levels: tuple[float, float] = (0.0, 0.0),
) -> Connected:
    """Digits of 45 people; the others, every fourth of the sorted names, say the sentences to test on. `mfcc`: another
    front end than the usual one at this hop; `levels`: see `joined_sentences`.
    """
    corpus = load_corpus("audiomnist")
    split = split_by_speaker(corpus, corpus.speakers[::4])
    return _joined(split, settings, hop_s, 495, sentences, mfcc, levels)


def fsdd_digits(sentences: int = 120, settings: SentenceHmmSettings = DIGITS, hop_s: float = HOP_S) -> Connected:
    """Digits of six people in the official split: the same people, other recordings."""
    return _joined(split_official(load_corpus("fsdd")), settings, hop_s, 498, sentences)


def yesno_sentences(settings: SentenceHmmSettings = YESNO, hop_s: float = HOP_S) -> Connected:
    """Thirty files of eight words, yes or no, as one person said them; trained on the transcripts of thirty others.

    Where words begin is not known: quiet frames start the silence model (the first cepstrum follows the energy).
    """
    split = split_by_take(load_corpus("yesno"), test=range(30, 60))
    mfcc = replace(MfccConfig.narrowband(), hop_s=hop_s)
    config = BundleConfig(settings, ("yes", "no"), mfcc)
    train, test = _written(split.train, mfcc), _written(split.test, mfcc)
    bank = config.build()
    assert isinstance(bank, HiddenMarkovModel)
    features = pad_sequence([x for x, _ in train], batch_first=True)
    lengths = torch.tensor([len(x) for x, _ in train])
    texts = [[config.labels.index(word) for word in text] for _, text in train]
    even_start_(bank, features, lengths, texts, features[..., 0] < 0, len(config.labels), PRIOR)

    def draw(trained: HiddenMarkovModel) -> list[DecodingGraph]:
        units = settings.models(trained, config.labels)
        return [transcript_graph(text, units, SILENCE) for _, text in train]

    embedded_training(bank, features, lengths, draw, 10, PRIOR)
    longest = max(float(x.norm(dim=-1).max()) for x, _ in train)
    return Connected(config, bank.eval(), train, test, longest)


CONNECTED: dict[str, Callable[[], Connected]] = {
    "audiomnist": audiomnist_digits,
    "fsdd": fsdd_digits,
    "yesno": yesno_sentences,
}


def _joined(
    split: Split,
    settings: SentenceHmmSettings,
    hop_s: float,
    training: int,
    test: int,
    chosen: MfccConfig | None = None,
    levels: tuple[float, float] = (0.0, 0.0),
) -> Connected:
    """So many sentences of 4 to 7 words to train on, and of 4 to 8 to test and to choose on."""
    rate = split.train.sample_rate
    mfcc = chosen or replace(MfccConfig.at_rate(rate), hop_s=hop_s)
    config = BundleConfig(settings, split.train.words, mfcc)

    def heard(corpus: Corpus, count: int, words: tuple[int, int], seed: int) -> list[Heard]:
        each = -(-count // len(corpus.speakers))
        return heard_by(mfcc, joined_sentences(corpus, each, rate, words, seed, levels))[:count]

    trained = heard(split.train, training, (4, 7), 0)
    pieces = Pieces(trained, config.labels, split.train.speakers, settings.states)
    bank = config.build()
    assert isinstance(bank, HiddenMarkovModel)
    data = pad_sequence(pieces.features, batch_first=True), torch.tensor(pieces.sizes), pieces.words
    flat_start_(bank, *data, PRIOR)
    baum_welch(bank, *data, ITERATIONS, PRIOR)
    choose, try_on = (
        tuple((each.features, each.sentence.text) for each in heard(corpus, test, (4, 8), 1))
        for corpus in (split.train, split.test)
    )
    longest = max(float(each.features.norm(dim=-1).max()) for each in trained)
    return Connected(config, bank.eval(), choose, try_on, longest)


def _written(corpus: Corpus, mfcc: MfccConfig) -> tuple[Said, ...]:
    spoken = Spoken.of(corpus, mfcc)
    rows = zip(spoken.features, spoken.lengths.tolist(), corpus, strict=True)
    return tuple((features[:length], tuple(str(u.text).split())) for features, length, u in rows)


@torch.no_grad()
def score_weights(made: Connected) -> Reals:
    """What a frame scores in every state, staying included, as weights of all monomials, `(monomials, columns)`."""
    emission = made.bank.emission
    assert isinstance(emission, GaussianEmission)
    weights = form_weights(-emission.gaussians.phi().double().flatten(0, -3).numpy(), "full")
    weights[-1] += made.stays.numpy()
    return weights
