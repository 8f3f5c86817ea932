"""Gaussian attackers in closed form, one model a word: linear discriminants, their Bayesian form, and spreads.

A person p says word w as a Gaussian around a center m_pw, with the within-person covariance W_w of that word. A filter
that is learned to hide people leaves nothing in the mean of all their clips; what it leaves is in m_pw - m_w, which
differs from word to word. Milliseconds to train, and on real speech the strongest of all (README).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.filters.attack.attackers.attacker import CLIP_ATTACKERS, FLAT, Clips, Scorer

LEAST_FREEDOM = 10  # residuals of a word beyond its centers; with fewer, its covariance is that of all words


class Scale:
    """Standardizes by the training clips; features that never change become 0."""

    def __init__(self, features: Tensor) -> None:
        x = features.detach().double()
        self.mean = x.mean(0)
        variance = x.var(0, correction=0)
        flat = variance <= FLAT * variance.max()
        self.factor = torch.where(flat, 0.0, variance.clamp_min(torch.finfo(x.dtype).tiny).rsqrt())

    def __call__(self, features: Tensor) -> Tensor:
        """The features on that scale, float64."""
        return (features.detach().double() - self.mean) * self.factor


@dataclass(frozen=True, eq=False)
class Centers:
    """Where people's clips lie: x = word + person + (the person's way to say that word) + the rest."""

    counts: Tensor  # `(words, people)`
    word: Tensor  # means of all, `(words, d)`
    person: Tensor  # mean deviation from them, `(people, d)`
    cell: Tensor  # means of a person's clips of a word, `(words, people, d)`; word + person where there is none
    residuals: Tensor  # of the training clips from the means of their cells, `(clips, d)`

    @classmethod
    def of(cls, x: Tensor, words: Tensor, labels: Tensor, number: int, classes: int) -> "Centers":
        """Of training clips `(clips, d)`, with their words and people."""
        place = words * classes + labels
        counts = torch.bincount(place, minlength=number * classes).double()
        heard = torch.bincount(words, minlength=number).double().unsqueeze(-1)
        word = x.new_zeros(number, x.shape[1]).index_add_(0, words, x) / heard.clamp_min(1)
        word = torch.where(heard > 0, word, x.mean(0))
        known = torch.bincount(labels, minlength=classes).double().unsqueeze(-1)
        person = x.new_zeros(classes, x.shape[1]).index_add_(0, labels, x - word[words]) / known.clamp_min(1)
        cell = x.new_zeros(number * classes, x.shape[1]).index_add_(0, place, x) / counts.clamp_min(1).unsqueeze(-1)
        cell = torch.where(
            (counts > 0).view(number, classes, 1), cell.view(number, classes, -1), word.unsqueeze(1) + person
        )
        return cls(counts.view(number, classes), word, person, cell, x - cell.flatten(0, 1)[place])

    def covariances(self, words: Tensor) -> list[Tensor]:
        """W of each word from its residuals, or that of all words where there are too few."""
        cells = (self.counts > 0).sum(1)
        pooled = _covariance(self.residuals, int(cells.sum()))
        found = []
        for word, count in enumerate(self.counts.sum(1).tolist()):
            enough = count - int(cells[word]) >= LEAST_FREEDOM
            found.append(_covariance(self.residuals[words == word], int(cells[word])) if enough else pooled)
        return found


@CLIP_ATTACKERS.register("lda")
def lda(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:  # noqa: ARG001 (no chance)
    """Linear discriminants, one set a word, with covariances shrunk (Ledoit and Wolf 2004)."""
    return _gaussian(clips, labels, classes, bayesian=False)


@CLIP_ATTACKERS.register("plda")
def plda(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:  # noqa: ARG001 (no chance)
    """As `lda`, and knows that a center from few clips is uncertain: it is drawn to where the person's other words put
    it, and counts less (probabilistic linear discriminants, Ioffe 2006).
    """
    return _gaussian(clips, labels, classes, bayesian=True)


@CLIP_ATTACKERS.register("spread")
def spread(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:  # noqa: ARG001 (no chance)
    """A Gaussian a person with a covariance of its own, around the mean of the word: told by how one varies."""
    scale, number = Scale(clips.features), int(clips.words.max()) + 1
    x = scale(clips.features)
    centers = Centers.of(x, clips.words, labels, number, classes)
    rest = x - centers.word[clips.words] - centers.person[labels]
    common = _covariance(rest, classes)
    weight = 2.0 * x.shape[1]
    models = []
    for person in range(classes):
        own = rest[labels == person]
        models.append((own.mT @ own + weight * common) / (len(own) + weight))
    root = torch.linalg.cholesky(torch.stack(models))
    volume = root.diagonal(dim1=1, dim2=2).log().sum(-1)
    met = torch.bincount(labels, minlength=classes) > 0

    def scores(asked: Clips) -> Tensor:
        z = scale(asked.features) - centers.word[asked.words.clamp_max(number - 1)]
        apart = z.unsqueeze(0) - centers.person.unsqueeze(1)  # (people, clips, d)
        white = torch.linalg.solve_triangular(root, apart.mT, upper=False)
        return posteriors((-white.square().sum(1) / 2 - volume.unsqueeze(-1)).mT, met)

    return scores


@CLIP_ATTACKERS.register("lda_heard")
def lda_heard(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """As `lda` for one who is not told the word and hears it: a Gaussian a word says how likely each is."""
    number = int(clips.words.max()) + 1
    by_word = lda(clips, labels, classes, seed)
    hear = _gaussian(Clips(clips.features, torch.zeros_like(clips.words)), clips.words, number, bayesian=False)

    def scores(asked: Clips) -> Tensor:
        heard = hear(Clips(asked.features, torch.zeros_like(asked.words)))
        every = [by_word(Clips(asked.features, torch.full_like(asked.words, word))) for word in range(number)]
        return torch.logsumexp(torch.stack(every, dim=1) + heard.unsqueeze(-1), dim=1)

    return scores


def posteriors(likelihoods: Tensor, met: Tensor) -> Tensor:
    """Log posteriors of everyone with equal priors; those without training clips below all others."""
    found = likelihoods.masked_fill(~met, -torch.inf).log_softmax(-1)
    least = float(found[:, met].min()) - 1 if found.numel() else 0.0
    return found.masked_fill(~met, least)


def ledoit_wolf(rows: Tensor) -> tuple[Tensor, float]:
    """The covariance of centered rows `(n, d)`, shrunk to a multiple of the identity, and by how much (Ledoit and
    Wolf 2004): the weight is the variance of the entries over their distance from the target.
    """
    count, features = rows.shape
    plain: Tensor = rows.mT @ rows / count
    mean = plain.trace() / features
    identity = torch.eye(features).to(rows)
    distance = (plain - mean * identity).square().sum()
    variance = (rows.square().sum(1).square().mean() - plain.square().sum()) / count
    weight = float((variance / distance.clamp_min(1e-300)).clamp(0, 1)) if float(distance) > 0 else 1.0
    return (1 - weight) * plain + weight * mean * identity, weight


def _covariance(residuals: Tensor, lost: int) -> Tensor:
    """Shrunk, in units that count the means taken out, and never singular."""
    shrunk = ledoit_wolf(residuals)[0] * len(residuals) / max(1, len(residuals) - lost)
    least = 1e-9 + 1e-6 * float(shrunk.diagonal().mean())
    return shrunk + least * torch.eye(len(shrunk)).to(shrunk)


def _gaussian(clips: Clips, labels: Tensor, classes: int, *, bayesian: bool) -> Scorer[Clips]:
    scale, number = Scale(clips.features), int(clips.words.max()) + 1
    centers = Centers.of(scale(clips.features), clips.words, labels, number, classes)
    models = [
        _model(centers, word, covariance, bayesian) for word, covariance in enumerate(centers.covariances(clips.words))
    ]
    met = torch.bincount(labels, minlength=classes) > 0

    def scores(asked: Clips) -> Tensor:
        x = scale(asked.features)
        found = x.new_zeros(len(x), classes)
        for word in torch.unique(asked.words).tolist():
            white, center, variance = models[min(word, number - 1)]
            rows = asked.words == word
            # |z - c|^2 / v over features, by products alone: there may be many clips and people.
            z = x[rows] @ white
            apart = (
                z.square() @ (1 / variance).mT - 2 * z @ (center / variance).mT + (center.square() / variance).sum(1)
            )
            found[rows] = -(apart + variance.log().sum(1)) / 2
        return posteriors(found, met)

    return scores


def _model(centers: Centers, word: int, covariance: Tensor, bayesian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Whitening `(d, d)`, and there every person's center and variances `(people, d)`, for one word.

    In coordinates where W = 1 and the people's ways to say the word have variances c, a center from n clips has
    posterior mean l e, l = c / (c + 1 / n), e its deviation from what the person's other words say, and a new clip has
    variance 1 + c (1 - l).
    """
    values, vectors = torch.linalg.eigh(covariance)
    white = vectors * values.rsqrt()
    if not bayesian:
        center = centers.cell[word] @ white
        return white, center, torch.ones_like(center)
    expected = centers.word[word] + centers.person
    own = (centers.cell[word] - expected) @ white
    counts = centers.counts[word].unsqueeze(-1)
    there = counts.squeeze(-1) > 0
    if int(there.sum()) < 2:
        center = expected @ white
        return white, center, torch.ones_like(center)
    between = own[there].mT @ own[there] / (int(there.sum()) - 1)
    spreads, turn = torch.linalg.eigh(between)
    ways = (spreads - (1 / counts[there]).mean()).clamp_min(0)
    believed = ways / (ways + 1 / counts.clamp_min(1e-9))
    white = white @ turn
    return white, expected @ white + believed * (own @ turn), 1 + ways * (1 - believed)
