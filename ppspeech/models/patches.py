"""A word by ordered patches of its spectrogram, found where they are expected (Ezzat and Poggio 2008).

A patch is a piece of some bands and a few frames, taken from a clip of the word. What it says about a place t of a
recording is how well it fits, at best, in a window that begins where the patch stood in the word:

    m_p(t) = max over 0 <= d < w of <patch_p, r(t + τ_p + d)>,    r(u) frames u .. u + b - 1, centered, of length one

Windows come in order, τ_p = k s for the patches of bin k, as many in each. The word is at t if enough patches fit, or
if they fit well enough together, by one of two rules:

    stumps    f(t) = sum over p of α_p [m_p(t) >= θ_p] + β >= 0        boosted
    linear    f(t) = sum over p of α_p m_p(t) + β >= 0                 a support vector machine

Deviations from the paper: places in the word are those of the bins, not of each patch; patches of a bin are chosen by
boosting, one bin after the other, where the paper takes all; and places without the word that score best are shown to
the learner again (`learn_word`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch

from ppspeech.arrays import Reals, Whole
from ppspeech.errors import ModelError
from ppspeech.models.linear import HuberSvm
from ppspeech.models.patch_grid import PatchGrid

Rule = Literal["stumps", "linear"]
QUADRATIC = 0.03
"""Λ of the support vector machine, beside losses that weigh a half for the word and a half for all else."""
WITHOUT, HARD, APART = 20, 4, 4
"""Windows of each recording without the word: drawn at first; shown again each time, so many frames apart."""


@dataclass(frozen=True, eq=False)
class PatchDetector:
    """A word: `patches` `(patches, bands * span)` of length one, bin by bin; `thresholds` and `gains` `(patches,)`. A
    linear rule looks at no threshold.
    """

    grid: PatchGrid
    patches: Reals
    thresholds: Reals
    gains: Reals
    bias: float
    rule: Rule = "stumps"

    def __post_init__(self) -> None:
        count = self.grid.patches
        if self.patches.shape != (count, self.grid.bands * self.grid.span):
            raise ModelError(f"{count} patches of {self.grid.bands} bands are needed, got {self.patches.shape}")
        if self.thresholds.shape != (count,) or self.gains.shape != (count,):
            raise ModelError(f"{count} patches have as many thresholds and gains")

    def features(self, spectrogram: Reals) -> Reals:
        """m of every place and patch, `(places, patches)`."""
        return self.fits(regions(spectrogram, self.grid.span))

    def fits(self, pieces: Reals) -> Reals:
        """The same from pieces as `regions` cuts them."""
        return placed(sliding_maxima(pieces @ self.patches.T, self.grid.window), self.grid)

    def scores(self, spectrogram: Reals) -> Reals:
        """f of every place, `(places,)`."""
        return self.sums(self.features(spectrogram))

    def sums(self, features: Reals) -> Reals:
        """f of what `features` gives, `(places,)`."""
        fits = features if self.rule == "linear" else features >= self.thresholds
        return np.asarray(fits @ self.gains + self.bias)


def regions(spectrogram: Reals, span: int) -> Reals:
    """r: every `span` frames of `(frames, bands)`, centered and of length one, `(frames - span + 1, bands * span)`."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(spectrogram, np.float64), span, axis=0)
    flat = windows.transpose(0, 2, 1).reshape(len(windows), -1)
    centered = flat - flat.mean(axis=1, keepdims=True)
    return np.asarray(centered / np.maximum(np.linalg.norm(centered, axis=1, keepdims=True), 1e-9))


def sliding_maxima(values: Reals, window: int) -> Reals:
    """The largest of every `window` that follow each other, along the first axis, by doubling."""
    best, width = np.asarray(values), 1
    while width < window:
        step = min(width, window - width)
        best = np.maximum(best[:-step], best[step:])
        width += step
    return best


def placed(best: Reals, grid: PatchGrid) -> Reals:
    """What the windows of each bin say of every place: `(windows, patches)` to `(places, patches)`."""
    places = len(best) - (grid.bins - 1) * grid.step
    own = np.arange(grid.patches) // grid.per_bin
    return np.asarray(best[np.arange(places)[:, None] + grid.step * own, np.arange(grid.patches)])


@dataclass(frozen=True)
class _Stump:
    """[m >= threshold], right where the error is small; `sign` -1 where it fits what is not the word."""

    error: float
    threshold: float
    sign: float


@dataclass(frozen=True, eq=False)
class _Column:
    """What one candidate says of all examples, in order."""

    values: Reals

    @cached_property
    def order(self) -> Whole:
        """Examples from the smallest."""
        return np.asarray(np.argsort(self.values), np.int64)

    def best(self, weights: Reals, labels: Reals) -> _Stump:
        """The stump of the least weighted error."""
        signed = (weights * labels)[self.order]
        # Error of [m >= values[order][i]]: the word's weight below, and the others' from there on.
        below = np.concatenate(([0.0], np.cumsum(signed)))
        errors = below[:-1] + weights[labels < 0].sum()
        at, worst = int(errors.argmin()), int(errors.argmax())
        if errors[at] <= 1 - errors[worst]:
            return _Stump(float(errors[at]), self._between(at), 1.0)
        return _Stump(float(1 - errors[worst]), self._between(worst), -1.0)

    def _between(self, at: int) -> float:
        below, here = self.values[self.order[[max(0, at - 1), at]]]
        return float(below + here) / 2


def learn_patches(
    words: Sequence[Reals], others: Sequence[Reals], grid: PatchGrid, candidates: int = 60, seed: int = 0
) -> PatchDetector:
    """A detector from windows of `grid.frames` frames each: with the word in their middle, and without it.

    Candidates are cut from the word at random, so many for each bin; AdaBoost takes the best of each bin in turn.
    Raises ModelError for windows of another length, or none.
    """
    if not words or not others:
        raise ModelError(f"patches are learned from windows with the word and without, got {len(words)}, {len(others)}")
    if {np.shape(each) for each in (*words, *others)} != {(grid.frames, grid.bands)}:
        raise ModelError(f"windows have {grid.frames} frames of {grid.bands} bands each")
    rng = np.random.default_rng(seed)
    seen = np.stack([regions(each, grid.span) for each in (*words, *others)])
    labels = np.array([1.0] * len(words) + [-1.0] * len(others))
    weights = np.where(labels > 0, 0.5 / len(words), 0.5 / len(others))
    cut = [_cut_patches(seen[: len(words)], k, grid, candidates, rng) for k in range(grid.bins)]
    columns = []
    for k, own in enumerate(cut):
        window = seen[:, k * grid.step : k * grid.step + grid.window] @ own.T
        columns.append([_Column(each) for each in window.max(axis=1).T])
    chosen: dict[int, list[tuple[Reals, float, float]]] = {k: [] for k in range(grid.bins)}
    taken: set[tuple[int, int]] = set()
    for turn in range(grid.patches):
        k = turn % grid.bins
        stumps = {at: column.best(weights, labels) for at, column in enumerate(columns[k]) if (k, at) not in taken}
        at = min(stumps, key=lambda each: stumps[each].error)
        stump = stumps[at]
        taken.add((k, at))
        gain = stump.sign * 0.5 * np.log((1 - stump.error + 1e-3) / (stump.error + 1e-3))
        said = np.where(columns[k][at].values >= stump.threshold, 1.0, -1.0)
        weights = weights * np.exp(-gain * labels * said)
        weights /= weights.sum()
        chosen[k].append((cut[k][at], stump.threshold, float(gain)))
    flat = [each for k in range(grid.bins) for each in chosen[k]]
    gains = np.array([gain for *_, gain in flat])
    return PatchDetector(
        grid,
        np.stack([patch for patch, *_ in flat]),
        np.array([threshold for _, threshold, _ in flat]),
        2 * gains,
        -float(gains.sum()),
    )


def weigh_patches(detector: PatchDetector, words: Sequence[Reals], others: Sequence[Reals]) -> PatchDetector:
    """The same patches under a linear rule: gains and bias of the Huber support vector machine on their fits. Both
    kinds of windows weigh the same, however many there are.
    """
    fits = torch.from_numpy(np.concatenate([detector.features(each) for each in (*words, *others)]))
    labels = torch.tensor([1] * len(words) + [0] * len(others))
    weights = torch.where(labels > 0, 0.5 / len(words), 0.5 / len(others)).double()
    machine = HuberSvm(fits.shape[1], dtype=torch.float64)
    found = machine.fit(fits, labels, quadratic=QUADRATIC, weights=weights).theta[0].numpy()
    return replace(detector, gains=found[:-1], bias=float(found[-1]) * machine.constant, rule="linear")


def learn_word(
    words: Sequence[Reals],
    background: Sequence[Reals],
    grid: PatchGrid,
    *,
    others: Sequence[Reals] = (),
    candidates: int = 60,
    again: int = 2,
    seed: int = 0,
) -> dict[Rule, PatchDetector]:
    """Detectors by either rule, of the same patches, from windows with the word and spectrograms of recordings without
    it.

    At first they see places drawn from the recordings, and windows of `others`; then, `again` times, those where
    they would have found the word. Raises ModelError for nothing to learn from.
    """
    rng, long = np.random.default_rng(seed), [each for each in background if len(each) >= grid.frames]
    if not long:
        raise ModelError(f"a recording without the word has {grid.frames} frames or more, and there is none")
    drawn = [(each, at) for each in long for at in rng.integers(0, grid.places(len(each)), WITHOUT).tolist()]
    without = [*others, *(each[at : at + grid.frames] for each, at in drawn)]
    detector = learn_patches(words, without, grid, candidates, seed)
    for _ in range(again):
        without += _hardest(detector, long)
        detector = learn_patches(words, without, grid, candidates, seed)
    machine = weigh_patches(detector, words, without)
    for _ in range(again):
        without += _hardest(machine, long)
        machine = weigh_patches(machine, words, without)
    return {"stumps": detector, "linear": machine}


def _hardest(detector: PatchDetector, background: Sequence[Reals]) -> list[Reals]:
    """Windows of each recording that score highest, `APART` frames apart or more."""
    found = []
    for each in background:
        scores = detector.scores(each)
        for _ in range(HARD):
            at = int(scores.argmax())
            if scores[at] == -np.inf:
                break
            found.append(each[at : at + detector.grid.frames])
            scores[max(0, at - APART + 1) : at + APART] = -np.inf
    return found


def _cut_patches(words: Reals, k: int, grid: PatchGrid, candidates: int, rng: np.random.Generator) -> Reals:
    """Random pieces of the word where bin k looks: some bands of a region, centered and of length one."""
    found = []
    for _ in range(max(candidates, grid.per_bin)):
        at = rng.integers(len(words)), k * grid.step + rng.integers(grid.window)
        region = words[at].reshape(grid.span, grid.bands)
        size = int(rng.integers(max(2, grid.bands // 5), grid.bands + 1))
        low = int(rng.integers(grid.bands - size + 1))
        patch = np.zeros_like(region)
        piece = region[:, low : low + size]
        patch[:, low : low + size] = piece - piece.mean()
        found.append(patch.reshape(-1) / max(float(np.linalg.norm(patch)), 1e-9))
    return np.stack(found)
