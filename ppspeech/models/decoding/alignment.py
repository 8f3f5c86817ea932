"""Dynamic time warping: utterances of one public length, and a recognizer of a few templates.

Two utterances of n frames each are as alike as the best way to walk through both together, (0, 0) to (n - 1, n - 1) by
steps (1, 0), (0, 1), (1, 1), no further apart than a band:

    v(i, j) = s(i, j) + max(v(i-1, j-1), v(i-1, j), v(i, j-1)),    s(i, j) = <x_i, y_j> - |x_i|²/2 - |y_j|²/2

s is minus half the squared distance. Every utterance is resampled to the same length, so there are no lengths to hide
and none to normalize by; and frames are no longer than a public radius, so no score is below -2 n radius².
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError


@dataclass(frozen=True)
class Alignment:
    """How alike two utterances are, and which frames belong together: pairs `(i, j)` from the first to the last."""

    score: float
    pairs: tuple[tuple[int, int], ...]


def resampled(frames: Tensor, length: int) -> Tensor:
    """An utterance `(frames, features)` at so many evenly spaced times, by straight lines: `(length, features)`."""
    if frames.ndim != 2 or len(frames) < 1 or length < 2:
        raise ModelError(f"at least one frame is resampled to two or more, got {tuple(frames.shape)} to {length}")
    if len(frames) == 1:
        return frames.expand(length, -1).clone()
    times = torch.linspace(0, len(frames) - 1, length, dtype=torch.float64)
    before = times.long().clamp_max(len(frames) - 2)
    part = (times - before).to(frames).unsqueeze(-1)
    return frames[before] * (1 - part) + frames[before + 1] * part


def within_radius(frames: Tensor, radius: float) -> Tensor:
    """Frames `(..., features)` that are longer, shortened to the radius."""
    norms: Tensor = torch.linalg.vector_norm(frames, dim=-1, keepdim=True)
    return frames * radius / norms.clamp_min(radius)


def similarities(left: Tensor, right: Tensor) -> Tensor:
    """Minus half the squared distance of all frames, `(*batch, n, d)` and `(*batch, m, d)` to `(*batch, n, m)`."""
    squares = left.square().sum(-1).unsqueeze(-1) + right.square().sum(-1).unsqueeze(-2)
    return left @ right.transpose(-1, -2) - squares / 2


def warp(similarity: Tensor, band: int) -> Tensor:
    """v(n - 1, n - 1), `(*batch)`, of `(*batch, n, n)` scores, real or whole. Raises ModelError if they are not square
    or the band is negative.
    """
    n = similarity.shape[-1]
    if similarity.shape[-2] != n or n < 1 or band < 0:
        raise ModelError(f"square scores and a band >= 0 are needed, got {tuple(similarity.shape[-2:])}, {band}")
    return _walked(similarity, band)[n - 1][n - 1]


def align(left: Tensor, right: Tensor, band: int) -> Alignment:
    """Two utterances of one length, `(n, features)` each; of equal walks the one that moves in both."""
    walked = _walked(similarities(left, right).double(), band)
    i = j = len(left) - 1
    pairs = [(i, j)]
    while i or j:
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = max(
            (each for each in before if each[1] in walked.get(each[0], {})), key=lambda at: float(walked[at[0]][at[1]])
        )
        pairs.append((i, j))
    return Alignment(float(walked[len(left) - 1][len(left) - 1]), tuple(reversed(pairs)))


def _walked(similarity: Tensor, band: int) -> dict[int, dict[int, Tensor]]:
    """v of every cell of the band, `(*batch)` each."""
    n = similarity.shape[-1]
    cells: dict[int, dict[int, Tensor]] = {i: {} for i in range(-1, n)}
    for i in range(n):
        for j in range(max(0, i - band), min(n, i + band + 1)):
            before = [cells[p][q] for p, q in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if q in cells[p]]
            here = similarity[..., i, j]
            cells[i][j] = here + torch.stack(before).amax(0) if before else here
    return cells


@dataclass(frozen=True)
class TemplateRecognizer:
    """Names an utterance after the most similar of a few templates, `(templates, n, features)`, within `radius`."""

    templates: Tensor
    labels: tuple[str, ...]
    band: int
    radius: float

    def __post_init__(self) -> None:
        if self.templates.ndim != 3 or len(self.templates) != len(self.labels) or not self.labels:
            raise ModelError(f"templates and labels differ: {tuple(self.templates.shape)}, {len(self.labels)} labels")
        if not self.radius > 0 or self.band < 0:
            raise ModelError(f"a radius is > 0 and a band >= 0, got {self.radius} and {self.band}")

    @classmethod
    def of(
        cls, clips: Sequence[Tensor], labels: Sequence[str], *, length: int = 24, band: int = 5, radius: float = 12.0
    ) -> "TemplateRecognizer":
        """From clips `(frames, features)`, of any length."""
        chosen = torch.stack([within_radius(resampled(each, length), radius) for each in clips])
        return cls(chosen, tuple(labels), band, radius)

    def scores(self, frames: Tensor) -> Tensor:
        """Of every template, `(templates,)`."""
        heard = within_radius(resampled(frames, self.templates.shape[1]), self.radius)
        return warp(similarities(heard, self.templates), self.band)

    def recognize(self, frames: Tensor) -> str:
        """The label of the most similar template; of equals the first."""
        return self.labels[int(self.scores(frames).argmax())]
