"""Other people's speech, to say how rarely a stranger scores so high: thresholds by false-accept rate.

Scores of strangers grow with the amount of speech on both sides and shift with rooms and microphones, so that no fixed
threshold carries over. Here the claimed voice itself is tried with clips of a cohort, other people recorded like those
who will try, cut to as much speech as the trial has; the threshold is where a stranger's score is as rare as was asked
for. That is right as long as strangers are like the cohort; whoever is not is noticed: the background model finds the
speech unlikely, or, where there is none, no voice of the cohort is near.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError
from ppspeech.models.voices import Voices

FEWEST_PEOPLE, MOST_PEOPLE = 5, 64
TRIALS = 6  # of one person; more change little
LARGEST = 1 - 1e-9  # cosine whose Fisher's z is looked at, or that is asked for
TAIL = 0.1  # the share of scores that says how the rarest behave
CAUTION = 8  # of K people's scores, a rate is aimed at K / (K + this) of itself: few people hide who is most alike
AT_A_TIME = 1024  # directions, so that thousands of them take little memory
NEAREST = 10  # trials of the cohort that say how usual a voice is, where there is no background model
UNUSUAL = 0.01  # the share of the cohort's own speech that is called unlike it, where nobody says otherwise


@dataclass(frozen=True, eq=False)
class Impostors:
    """A cohort's speech, as one `Voices` hears it.

    Attributes:
        frames: amounts of speech, increasing, `(amounts,)`.
        owners: whose each trial is, `(trials,)`.
        directions: of each trial at each amount, of unit length, `(amounts, trials, size)`.
        usual: how usual each trial is, `(amounts, trials)`: its average log-likelihood under the background model, or
            its mean cosine with the nearest trials of other people where there is none.
        stretched: whether rare cosines are extrapolated on the scale of Fisher's z, artanh, which ends at no cosine.
    """

    frames: tuple[int, ...]
    owners: tuple[int, ...]
    directions: Tensor
    usual: Tensor
    stretched: bool = False

    @staticmethod
    @torch.no_grad()
    def of(voices: Voices, people: Sequence[Sequence[Tensor]]) -> "Impostors":
        """From clips `(frames, d)` of each person; of more than 64 people, 64 that are evenly spread.

        A trial starts at the beginning of a clip and goes on with the person's next ones, up to as much as the person
        who said least has said. Raises ModelError for fewer than 5 people, or one who said less than 0.3 s.
        """
        if len(people) < FEWEST_PEOPLE:
            raise ModelError(f"a cohort needs {FEWEST_PEOPLE} people or more, got {len(people)}")
        people = [people[place] for place in _spread(len(people), MOST_PEOPLE)]
        least = min(sum(map(len, clips)) for clips in people)
        if least < voices.amounts[0]:
            raise ModelError(
                f"everybody in a cohort needs {voices.amounts[0]} frames of speech or more, one person has {least}"
            )
        amounts = tuple(amount for amount in voices.amounts if amount <= least)
        starts = [(who, start) for who, clips in enumerate(people) for start in _spread(len(clips), TRIALS)]
        spoken = [_going_on(people[who], start, amounts[-1]) for who, start in starts]
        owners, directions, usual = tuple(who for who, _ in starts), [], []
        for amount in amounts:
            heard = torch.stack([frames[:amount] for frames in spoken])
            directions.append(voices.directions(heard))
            likelihoods = voices.likelihoods(heard)
            usual.append(_near_others(directions[-1], owners) if likelihoods is None else likelihoods)
        return Impostors(amounts, owners, torch.stack(directions), torch.stack(usual), voices.stretched)

    @property
    def people(self) -> int:
        """How many."""
        return len(set(self.owners))

    def scores(self, template: Tensor) -> Reals:
        """Cosines of all trials with a claimed direction `(size,)`: `(amounts, trials)`."""
        return np.asarray((self.directions.double() @ template.double()).numpy())

    def threshold(self, template: Tensor, frames: int, rate: float) -> float:
        """The cosine that a stranger's trial of so many frames reaches with the claimed direction at this rate."""
        return float(self.thresholds(np.asarray(template.double().numpy())[None], frames, rate)[0])

    def thresholds(self, templates: Reals, frames: int, rate: float) -> Reals:
        """The same of many directions `(count, size)`: `(count,)`."""
        below = max(0, int(np.searchsorted(self.frames, frames, side="right")) - 1)
        amounts = range(below, min(below + 2, len(self.frames)))  # between which it is interpolated
        tried = self.directions.double().numpy()
        found: Reals = np.empty((len(amounts), len(templates)))
        for start in range(0, len(templates), AT_A_TIME):
            some = np.asarray(templates[start : start + AT_A_TIME], np.float64).T
            for row, amount in zip(found, amounts, strict=True):
                row[start : start + AT_A_TIME] = self.rare(tried[amount] @ some, rate)
        at, logs = np.log(max(1, frames)), np.log([self.frames[amount] for amount in amounts])
        part = 0.0 if len(amounts) == 1 else float(np.clip((at - logs[0]) / (logs[1] - logs[0]), 0, 1))
        between: Reals = found[0] * (1 - part) + found[-1] * part
        return between

    def rare(self, cosines: Reals, rate: float) -> Reals:
        """The cosines that strangers exceed at this rate, `(claims,)`, from those of all trials, `(trials, claims)`.

        Where one person alone is alike they are extrapolated beyond all cosines; what is asked for then is the largest.
        """
        if self.stretched:
            found = np.tanh(rare_scores(np.arctanh(cosines.clip(-LARGEST, LARGEST)), self.owners, rate))
        else:
            found = rare_scores(cosines, self.owners, rate)
        return np.asarray(found).clip(-LARGEST, LARGEST)

    @torch.no_grad()
    def usualness(self, voices: Voices, frames: Tensor, share: float = UNUSUAL) -> tuple[float, float]:
        """How usual speech `(frames, features)` is among the cohort's, in the units of `usual`, and below what it is
        unlike it. Without a background model, as much of it is looked at as the cohort was tried with.
        """
        likelihoods = voices.likelihoods(frames.unsqueeze(0))
        if likelihoods is not None:
            return float(likelihoods), self.least_usual(len(frames), share)
        at = max(0, int(np.searchsorted(self.frames, len(frames), side="right")) - 1)
        heard = frames[: self.frames[at]]
        (direction,) = voices.directions(heard.unsqueeze(0))
        near = (self.directions[at] @ direction).topk(_nearest(self.owners)).values.mean()
        return float(near), self.least_usual(self.frames[at], share)

    def least_usual(self, frames: int, share: float = UNUSUAL) -> float:
        """Below which so many frames of speech are unlike the cohort's, as a share of its own is."""
        lowest = [-rare_score(-each.numpy(), self.owners, share, caution=0) for each in self.usual]
        return self._at(frames, lowest)

    def _at(self, frames: int, values: Sequence[float]) -> float:
        return float(np.interp(np.log(max(1, frames)), np.log(self.frames), values))


def _nearest(owners: Sequence[int]) -> int:
    """As many trials of others as everybody has."""
    return min(NEAREST, len(owners) - max(Counter(owners).values()))


def _near_others(directions: Tensor, owners: Sequence[int]) -> Tensor:
    """The mean cosine of each trial `(trials, size)` with the nearest of other people."""
    whose = torch.tensor(owners)
    cosines = (directions @ directions.mT).masked_fill(whose[:, None] == whose, -2.0)
    return cosines.topk(_nearest(owners)).values.mean(-1)


def rare_score(scores: Reals, owners: Sequence[int], rate: float, caution: int = CAUTION) -> float:
    """The score that another person exceeds at this rate, from scores `(trials,)` of some people's trials.

    Up to a tenth it is a quantile. Beyond, excesses over that quantile are taken to be exponential with a rate that is
    itself known from the n people among them only: P(excess > x) = (1 + x / (n mean))^-n, the predictive distribution,
    so that few people make a cautious threshold; and a part of the rate is left for whom the cohort lacks. Raises
    ModelError for a rate that is not within (0, 1).

    >>> rare_score(np.arange(1000.0), [0] * 1000, 0.5)
    499.5
    """
    return float(rare_scores(np.asarray(scores)[:, None], owners, rate, caution)[0])


def rare_scores(scores: Reals, owners: Sequence[int], rate: float, caution: int = CAUTION) -> Reals:
    """The same of many claims at once, from scores `(trials, claims)`: `(claims,)`."""
    if not 0 < rate < 1:
        raise ModelError(f"a rate is within 0 and 1, got {rate}")
    start: Reals = np.quantile(scores, 1 - max(rate, TAIL), axis=0)
    if rate >= TAIL:
        return start
    above = scores > start
    known, whose = np.unique(np.asarray(owners), return_inverse=True)
    people = np.zeros((len(known), scores.shape[1]), np.bool_)
    np.logical_or.at(people, whose, above)
    several = people.sum(axis=0)
    excess = np.where(above, scores - start, 0.0).sum(axis=0) / np.maximum(1, above.sum(axis=0))
    aimed = rate * len(known) / (len(known) + caution)
    farther = several * ((TAIL / aimed) ** (1 / np.maximum(1, several)) - 1)
    found: Reals = start + excess * farther
    return found


def _spread(count: int, most: int) -> list[int]:
    """Places of at most so many of `count` things, evenly spread."""
    return [round(float(place)) for place in np.linspace(0, count - 1, min(count, most))]


def _going_on(clips: Sequence[Tensor], start: int, frames: int) -> Tensor:
    """So many frames from the beginning of a clip, through the next ones, and round to the first again."""
    found, count = [], 0
    for place in range(len(clips)):
        if count >= frames:
            break
        found.append(clips[(start + place) % len(clips)])
        count += len(found[-1])
    return torch.cat(found)[:frames]
