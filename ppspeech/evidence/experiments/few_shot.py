"""Ten words from one or five clips each, spoken by others: a head on a public speech embedding, beside MFCCs and HMMs.

Ten draws: five of AudioMNIST's sixty people (or one), at random, say each of the ten digits once, in a random take;
half of all people, never the same, are recognized, with all their clips. The head is that of `ppspeech words learn`
without a background, as it comes: nothing was chosen on AudioMNIST here. The embedding was trained by others, on speech
that may hold digits. The other recognizer has five states a word on 39 MFCCs with pooled covariances, from the same
clips.

Intervals are over people, each with the mean of all draws in which they were recognized.

Needs the corpus audiomnist and the extra `embeddings`; --quick takes about 1 min.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling
from ppspeech.data import Corpus, FeatureStore, load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken, shrunk_bank
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean
from ppspeech.progress import track
from ppspeech.training import learn_words
from ppspeech.training.own_words import word_examples

SHOTS = (1, 5)
DRAWS = 10
CHANGES = ("faster", "slower")
EMBEDDING = EmbeddingConfig("speech", pooling=Pooling("utterance", 4))
FRONT_END = MfccConfig(vad_db=35.0, vad_hangover=2)


@dataclass(frozen=True, eq=False)
class Clips:
    """Clips embedded as they are, once; what is learned from is embedded again, changed."""

    corpus: Corpus
    vectors: Reals  # `(clips, features)`
    spoken: Spoken

    @classmethod
    def of(cls, corpus: Corpus) -> "Clips":
        """Hear a corpus."""
        vectors = torch.cat(FeatureStore(EMBEDDING).load(corpus.utterances)).double().numpy()
        return cls(corpus, vectors, Spoken.of(corpus, FRONT_END, corpus.words))


@EXPERIMENTS.register("few-shot")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Quick: two draws, and two takes of twenty people."""
    corpus = load_corpus("audiomnist")
    if quick:
        few = set(corpus.speakers[::3])
        corpus = corpus.select(lambda u: u.speaker in few and u.take < 2)
    return figures_of(Clips.of(corpus), 2 if quick else DRAWS)


def figures_of(clips: Clips, draws: int) -> list[Figure]:
    """Accuracies on people who were not learned from."""
    people, figures = len(clips.corpus.speakers), []
    for shots in SHOTS:
        found = torch.stack([tried(clips, shots, draw) for draw in track(range(draws), f"{shots} clips a word")])
        ours, theirs = (_over_people(found[:, place], clips.spoken.speakers) for place in (0, 1))
        each = found[:, 0].nanmean(-1).tolist()
        note = (
            f"{len(clips.corpus.words)} words, {shots} {'person says' if shots == 1 else 'people say'} each once; "
            f"{people - people // 2} others are recognized; {draws} draws, {min(each):.4f}..{max(each):.4f}; interval "
            "over people"
        )
        beside = "MFCC and HMM", theirs.value
        figures += [
            Figure.mean(f"embeddings.fewshot{shots}.accuracy", ours, "", *beside, note=note, limits=SHARE),
            Figure.mean(f"embeddings.fewshot{shots}.hmm_accuracy", theirs, note="the same clips", limits=SHARE),
        ]
    return figures


def _over_people(right: Tensor, speakers: Tensor) -> Mean:
    """The mean of draws `(draws, clips)`, not a number where a clip was not tested; its interval over people."""
    by_person = [float(right[:, speakers == who].nanmean()) for who in sorted(set(speakers.tolist()))]
    tested = [each for each in by_person if not math.isnan(each)]
    return Mean(float(right.nanmean()), Mean.of(tested).half_width)


def tried(clips: Clips, shots: int, draw: int) -> Tensor:
    """Which clips both recognize, from those of a draw, `(2, clips)`; not a number for those that are not tested."""
    corpus, generator = clips.corpus, np.random.default_rng([draw, 20])
    order = generator.permutation(corpus.speakers)
    teachers, others = set(order[:shots]), set(order[len(order) // 2 :])
    takes = {who: generator.integers(1 + max(u.take for u in corpus), size=len(corpus.words)) for who in order[:shots]}
    learned = torch.tensor(
        [u.speaker in teachers and u.take == takes[u.speaker][corpus.words.index(str(u.word))] for u in corpus]
    )
    tested = torch.tensor([u.speaker in others for u in corpus])
    paths = {
        word: [u.path for u, chosen in zip(corpus, learned.tolist(), strict=True) if chosen and u.word == word]
        for word in corpus.words
    }
    examples = {word: word_examples(own, EMBEDDING, None, CHANGES) for word, own in paths.items()}
    head = learn_words(examples, None, embedding=EMBEDDING)
    scores = head.recognizer().scores(clips.vectors[tested.numpy()])
    names = torch.tensor([corpus.words.index(label) for label in head.labels])
    part = clips.spoken.where(tested)
    right = torch.full((2, len(corpus)), torch.nan, dtype=torch.float64)
    right[0, tested] = (names[scores.argmax(-1)] == part.words).double()
    bank = shrunk_bank(clips.spoken.where(learned))
    right[1, tested] = (part.scores(bank).argmax(-1) == part.words).double()
    return right
