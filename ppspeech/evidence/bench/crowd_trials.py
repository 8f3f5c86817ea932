"""What a crowd's coarse comparisons cost in names: the same trials, among the same people, in the clear and as the
protocol decides, at 1 % of strangers who get a name.

Enrolled are real people, from recordings that were not used for anything else, among made-up ones: their directions are
drawn from a normal distribution between people, and within a person, fitted to others (as PLDA has it: Ioffe 2006) and
cut off at 0 as the network's are. Trials are recordings of the real people, of one digit or 0.6 s each, so that some
fail, and more made-up ones with their own strangers, so that a tenth of a point shows. Bits were chosen on draws of
another seed, with nobody of the test.

The twin computes what the protocol does on whole numbers, its chance included: a comparison of the upper bits puts the
one ahead behind where a share's dropped bits are above what it is ahead by (`sieve`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.audio import waveform_at
from ppspeech.audio.embeddings import VoiceEmbedding
from ppspeech.data import Utterance, load_corpus
from ppspeech.data.corpora import DIGIT_WORDS, load_audiomnist
from ppspeech.evidence.experiments.embedded_speakers import directions
from ppspeech.evidence.experiments.speakers import BACKGROUND, ENROLLMENT, TRIALS
from ppspeech.figures import Figure
from ppspeech.progress import track
from ppspeech.protocols.speakers import CrowdTerms, sieved_in_the_clear

RATE = 16_000
STRANGERS = 0.01  # of strangers get a name
AT_A_TIME = 32  # trials
AT_ONCE = 1 << 15  # people
SEED = 7


@dataclass(frozen=True, eq=False)
class People:
    """A normal model of directions: mean `(features,)`, roots of covariances between people and within a person."""

    mean: Reals
    between: Reals
    within: Reals

    @staticmethod
    def of(own: list[Reals]) -> "People":
        """From directions `(recordings, features)` of each person."""
        means = np.stack([each.mean(axis=0) for each in own])
        rest = np.concatenate([each - each.mean(axis=0) for each in own if len(each) > 1])
        return People(means.mean(axis=0), _root(means - means.mean(axis=0)), _root(rest))

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.float32]:
        """People, `(count, features)`."""
        return (self.mean + _spread(generator, count, self.between)).astype(np.float32)

    def heard(
        self, generator: np.random.Generator, people: NDArray[np.float32], recordings: int = 1
    ) -> NDArray[np.float32]:
        """A direction each, of so many recordings."""
        found = people + _spread(generator, len(people), self.within) / np.sqrt(recordings)
        return unit(np.maximum(found, 0.0))


def _root(rows: Reals) -> Reals:
    """R with R' R the covariance of rows, `(rank, features)`."""
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    root: Reals = values[:, None] * vectors / np.sqrt(max(1, len(rows) - 1))
    return root


def _spread(generator: np.random.Generator, count: int, root: Reals) -> NDArray[np.float32]:
    return generator.standard_normal((count, len(root)), dtype=np.float32) @ root.astype(np.float32)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1."""
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def accuracy(quick: bool) -> list[Figure]:
    """Names in the clear, as the protocol gives them, and how many fewer; `quick`: fewer people and trials."""
    others, known, real = _recordings(quick)
    model, generator = People.of(others), np.random.default_rng(SEED)
    enrolled, trials = (20_000, 400) if quick else (1_000_000, 3_000)
    gallery = np.empty((enrolled, known.shape[1]), np.float32)
    gallery[: len(known)] = known
    whose, voices = (
        generator.integers(len(known), enrolled, size=trials),
        np.empty((trials, known.shape[1]), np.float32),
    )
    for start in range(len(known), enrolled, AT_ONCE):
        some = model.draw(generator, min(AT_ONCE, enrolled - start))
        gallery[start : start + len(some)] = model.heard(generator, some, len(ENROLLMENT) * len(DIGIT_WORDS))
        theirs = np.flatnonzero((whose >= start) & (whose < start + len(some)))
        voices[theirs] = model.heard(generator, some[whose[theirs] - start])
    asked = np.concatenate([real[1], voices])
    targets = np.concatenate([real[0], whose])
    strangers = model.heard(generator, model.draw(generator, trials))
    clear, coded = _best(gallery, np.concatenate([asked, strangers]), generator)
    note = (
        f"{enrolled:,} enrolled, {len(known)} of them real; {len(targets):,} trials, {len(real[0])} of them "
        f"recordings, {trials:,} strangers, {STRANGERS:.0%} of whom get a name; the others are drawn from a normal "
        f"model of {len(others)} people"
    )
    return _figures(targets, clear, coded, note)


Singles = NDArray[np.float32]
Best = tuple[NDArray[np.int64], Reals]


def _best(
    gallery: NDArray[np.float32], asked: NDArray[np.float32], generator: np.random.Generator
) -> tuple[Best, Best]:
    """Of each trial who is best and its cosine: in the clear, and by the twin."""
    plan = CrowdTerms(gallery.shape[1], len(gallery))
    found: list[tuple[int, float, int, float]] = []
    whole = gallery * np.float32(4096.0)
    np.rint(whole, out=whole)
    for start in track(range(0, len(asked), AT_A_TIME), "trials"):
        some = asked[start : start + AT_A_TIME]
        for cosines, scores in zip(some @ gallery.T, np.rint(some * np.float32(4096.0)) @ whole.T, strict=True):
            best = int(cosines.argmax())
            place, score = sieved_in_the_clear(plan, scores.astype(np.int64), generator)
            found.append((best, float(cosines[best]), place, score))
    places, values, coded, scores = (np.array(each) for each in zip(*found, strict=True))
    return (places, values), (coded, scores)


def _figures(targets: NDArray[np.int64], clear: Best, coded: Best, note: str) -> list[Figure]:
    """Trials first, then strangers, whose scores set the threshold of each way."""
    right = []
    for places, scores in (clear, coded):
        threshold = np.quantile(scores[len(targets) :], 1 - STRANGERS)
        right.append((places[: len(targets)] == targets) & (scores[: len(targets)] >= threshold))
    lost = right[0].astype(float) - right[1]
    # Where no name differs, so many could at the most, at 97.5 % each way (Clopper and Pearson).
    error = float(1.96 * lost.std() / np.sqrt(len(lost))) or 1 - 0.025 ** (1 / len(lost))
    said = f"{note}; {int((lost > 0).sum())} names lost and {int((lost < 0).sum())} won of {len(lost):,}"
    loss = Figure("scale.gallery.accuracy_loss", float(lost.mean()), note=said)
    return [
        loss.between(float(lost.mean()) - error, float(lost.mean()) + error),
        Figure.share("scale.gallery.named", int(right[1].sum()), len(targets), "trials", note=note),
        Figure.share("scale.gallery.named_clear", int(right[0].sum()), len(targets), "trials", note=note),
    ]


@torch.no_grad()
def _recordings(quick: bool) -> tuple[list[Reals], NDArray[np.float32], tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Directions of others, by person; of who is enrolled; and of trials, with whose they are."""
    network = VoiceEmbedding().requires_grad_(False)

    def heard(clips: list[Utterance]) -> torch.Tensor:
        return torch.cat([network.frames(waveform_at(each.path, None, RATE)).features[0] for each in clips])

    corpus = load_audiomnist()
    takes = {(each.speaker, each.take, str(each.word)): each for each in corpus}

    def said(who: str, some: Sequence[int]) -> list[torch.Tensor]:
        return [heard([takes[who, take, word]]) for take in some for word in DIGIT_WORDS]

    others = corpus.speakers[: BACKGROUND // 4 if quick else BACKGROUND]
    fitted = [said(who, ENROLLMENT[: 1 if quick else None]) for who in others]
    own: dict[str, list[Utterance]] = {}
    for each in load_corpus("librispeech", part="background"):
        own.setdefault(each.speaker, []).append(each)
    fitted += [[heard([clip]) for clip in clips] for clips in list(own.values())[: 20 if quick else None]]
    people = corpus.speakers[BACKGROUND:]
    enrolled = [torch.cat(said(who, ENROLLMENT[: 1 if quick else None])) for who in people]
    some = TRIALS[: 1 if quick else None]
    trials = [(place, clip) for place, who in enumerate(people) for clip in said(who, some)]
    every = [*(clip for clips in fitted for clip in clips), *enrolled, *(clip for _, clip in trials)]
    found = directions(network, every).numpy()
    sizes = np.cumsum([len(clips) for clips in fitted])
    by_person: list[Reals] = [part.astype(np.float64) for part in np.split(found[: sizes[-1]], sizes[:-1])]
    known, asked = np.split(found[sizes[-1] :], [len(people)])
    return by_person, unit(known), (np.array([place for place, _ in trials]), unit(asked))
