"""Attackers without a form in mind: densities from a person's own clips of a word, and how often one has each code."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from sklearn.cluster import KMeans
from torch import Tensor

from ppspeech.filters.attack.attackers.attacker import CLIP_ATTACKERS, Clips, Scorer
from ppspeech.filters.attack.attackers.gaussians import Centers, Scale, posteriors

WIDTHS = (0.3, 0.5, 0.7, 1.0, 1.4)  # of the kernels, in within-person deviations a feature
BLOCK = 500
CODES = 64
EXACT_CODES = 1_024  # a filter with at most so many different outputs has codes of its own
STRENGTHS = (1.0, 4.0, 16.0)  # clips' worth of belief that a person has codes as others do

Setting = TypeVar("Setting")


@CLIP_ATTACKERS.register("parzen")
def parzen(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """Gaussian kernels at a person's own clips of the word, of the width that names most in halves of the training."""
    return chosen(_parzen, WIDTHS, clips, labels, classes, seed)


@CLIP_ATTACKERS.register("codes")
def codes(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """How often a person has each output for each word: made for filters that quantize; other outputs are clustered."""
    scale = Scale(clips.features)
    x = scale(clips.features)
    different = torch.unique(x.float(), dim=0).double()
    book = different
    if len(different) > EXACT_CODES:
        clusters = KMeans(CODES, n_init=1, max_iter=30, random_state=seed).fit(x.numpy(force=True))
        book = torch.from_numpy(clusters.cluster_centers_).to(x)

    def coded(some: Clips) -> Clips:
        parts = [torch.cdist(part, book).argmin(-1) for part in torch.split(scale(some.features), BLOCK)]
        return Clips(torch.cat(parts) if parts else some.words, some.words)

    def counted(known: Clips, own: Tensor, people: int, strength: float) -> Scorer[Clips]:
        return _counted(known, own, people, strength, len(book))

    score = chosen(counted, STRENGTHS, coded(clips), labels, classes, seed)
    return lambda asked: score(coded(asked))


def chosen(
    fit: Callable[[Clips, Tensor, int, Setting], Scorer[Clips]],
    settings: Sequence[Setting],
    clips: Clips,
    labels: Tensor,
    classes: int,
    seed: int,
) -> Scorer[Clips]:
    """Fit with the setting that names most people when learned from one half of the training clips and tried on the
    other. The halves divide everyone's clips of every word; nothing that is scored on has a part in it.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    place = (clips.words * classes + labels)[order]
    ranked = place.sort(stable=True)
    first = torch.searchsorted(ranked.values, ranked.values)
    turn = torch.empty_like(place)
    turn[ranked.indices] = torch.arange(len(place), device=place.device) - first
    half = torch.empty_like(turn)
    half[order] = turn % 2
    learn, tried = (Clips(clips.features[half == side], clips.words[half == side]) for side in (0, 1))
    if not len(tried.words):
        return fit(clips, labels, classes, settings[0])

    def likely(setting: Setting) -> float:
        scores = fit(learn, labels[half == 0], classes, setting)(tried)
        return float(scores.gather(1, labels[half == 1].unsqueeze(-1)).mean())

    return fit(clips, labels, classes, max(settings, key=likely))


def _parzen(clips: Clips, labels: Tensor, classes: int, width: float) -> Scorer[Clips]:
    scale, number = Scale(clips.features), int(clips.words.max()) + 1
    x = scale(clips.features)
    centers = Centers.of(x, clips.words, labels, number, classes)
    models = []
    for word, covariance in enumerate(centers.covariances(clips.words)):
        values, vectors = torch.linalg.eigh(covariance)
        white = vectors * values.rsqrt() / width
        rows = clips.words == word
        # A person who never said it is expected where the other words put them.
        there = centers.counts[word] > 0
        known = torch.cat([x[rows], centers.cell[word][~there]]) @ white
        whose = torch.cat([labels[rows], (~there).nonzero().flatten()])
        models.append((white, known, whose, torch.bincount(whose, minlength=classes).double().log()))
    met = torch.bincount(labels, minlength=classes) > 0

    def scores(asked: Clips) -> Tensor:
        z = scale(asked.features)
        found = z.new_zeros(len(z), classes)
        for word in torch.unique(asked.words).tolist():
            white, known, whose, counts = models[min(word, number - 1)]
            rows = (asked.words == word).nonzero().flatten()
            for some in torch.split(rows, BLOCK):
                near = -torch.cdist(z[some] @ white, known).square() / 2
                top = near.amax(1, keepdim=True)
                total = near.new_zeros(len(some), classes).index_add_(1, whose, (near - top).exp())
                found[some] = total.clamp_min(1e-300).log() + top - counts
        return posteriors(found, met)

    return scores


def _counted(clips: Clips, labels: Tensor, classes: int, strength: float, number: int) -> Scorer[Clips]:
    """p(code | person, word) = (count + strength p(code | word)) / (clips + strength)."""
    words = int(clips.words.max()) + 1
    code, said = clips.features, clips.words
    everyone = torch.bincount(said * number + code, minlength=words * number).double().view(words, 1, number)
    common = (everyone + 1 / number) / (everyone.sum(-1, keepdim=True) + 1)
    own = torch.bincount((said * classes + labels) * number + code, minlength=words * classes * number)
    own = own.double().view(words, classes, number)
    chance = (own + strength * common) / (own.sum(-1, keepdim=True) + strength)
    met = torch.bincount(labels, minlength=classes) > 0
    return lambda asked: posteriors(chance.log()[asked.words.clamp_max(words - 1), :, asked.features], met)
