"""Other people's speech, to say how rarely a stranger scores so high: thresholds by false-accept rate.

Scores of strangers grow with the amount of speech on both sides and shift with rooms and microphones, so that no fixed
threshold carries over. Here the claimed voice itself is tried with clips of a cohort, other people recorded like those
who will try, cut to as much speech as the trial has; the threshold is where a stranger's score is as rare as was asked
for. That is right as long as strangers are like the cohort; whoever is not is noticed by the background model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.statistics import mixture_statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors

FEWEST_PEOPLE, MOST_PEOPLE = 5, 64
TRIALS = 6  # of one person; more change little
AMOUNTS = (30, 90, 270, 810)
"""Frames of speech at which strangers are tried; between them thresholds are interpolated."""
TAIL = 0.1  # the share of scores that says how the rarest behave
CAUTION = 8  # of K people's scores, a rate is aimed at K / (K + this) of itself: few people hide who is most alike
UNUSUAL = 0.01  # the share of the cohort's own speech that is called unlike it, where nobody says otherwise


@dataclass(frozen=True, eq=False)
class Impostors:
    """A cohort's speech under one background model.

    Attributes:
        frames: amounts of speech, increasing, `(amounts,)`.
        owners: whose each trial is, `(trials,)`.
        directions: of each trial at each amount, of unit length, `(amounts, trials, size)`.
        likelihoods: average log-likelihood of each trial under the background model, `(amounts, trials)`.
    """

    frames: tuple[int, ...]
    owners: tuple[int, ...]
    directions: Tensor
    likelihoods: Tensor

    @staticmethod
    @torch.no_grad()
    def of(ubm: GaussianMixture, people: Sequence[Sequence[Tensor]], relevance: float = 16.0) -> "Impostors":
        """From clips `(frames, d)` of each person; of more than 64 people, 64 that are evenly spread.

        A trial starts at the beginning of a clip and goes on with the person's next ones, up to as much as the person
        who said least has said. Raises ModelError for fewer than 5 people, or one who said less than 0.3 s.
        """
        if len(people) < FEWEST_PEOPLE:
            raise ModelError(f"a cohort needs {FEWEST_PEOPLE} people or more, got {len(people)}")
        people = [people[place] for place in _spread(len(people), MOST_PEOPLE)]
        least = min(sum(map(len, clips)) for clips in people)
        if least < AMOUNTS[0]:
            raise ModelError(
                f"everybody in a cohort needs {AMOUNTS[0]} frames of speech or more, one person has {least}"
            )
        amounts = tuple(amount for amount in AMOUNTS if amount <= least)
        starts = [(who, start) for who, clips in enumerate(people) for start in _spread(len(clips), TRIALS)]
        spoken = [_going_on(people[who], start, amounts[-1]) for who, start in starts]
        directions, likelihoods = [], []
        for amount in amounts:
            heard = torch.stack([frames[:amount] for frames in spoken])
            directions.append(voice_directions(ubm, heard, relevance))
            likelihoods.append(ubm.average_log_prob(heard))
        return Impostors(amounts, tuple(who for who, _ in starts), torch.stack(directions), torch.stack(likelihoods))

    @property
    def people(self) -> int:
        """How many."""
        return len(set(self.owners))

    def scores(self, template: Tensor) -> Reals:
        """Cosines of all trials with a claimed direction `(size,)`: `(amounts, trials)`."""
        return np.asarray((self.directions.double() @ template.double()).numpy())

    def threshold(self, template: Tensor, frames: int, rate: float) -> float:
        """The cosine that a stranger's trial of so many frames reaches with the claimed direction at this rate."""
        return self._at(frames, [rare_score(scores, self.owners, rate) for scores in self.scores(template)])

    def lowest_likelihood(self, frames: int, share: float = UNUSUAL) -> float:
        """The log-likelihood of a frame below which so many frames of speech are unlike the cohort's, as a share is."""
        lowest = [-rare_score(-each.numpy(), self.owners, share, caution=0) for each in self.likelihoods]
        return self._at(frames, lowest)

    def _at(self, frames: int, values: Sequence[float]) -> float:
        return float(np.interp(np.log(max(1, frames)), np.log(self.frames), values))


@torch.no_grad()
def voice_directions(ubm: GaussianMixture, x: Tensor, relevance: float = 16.0) -> Tensor:
    """How voices move the background model, as unit vectors `(voices, size)`, from frames `(voices, frames, d)`.

    Their inner products are cosines of supervectors measured from the UBM's (Campbell et al. 2006).
    """
    moved = supervectors(ubm, map_adapt(ubm, mixture_statistics(ubm, x), relevance=relevance)) - supervectors(ubm, ubm)
    return functional.normalize(moved, dim=-1)


def rare_score(scores: Reals, owners: Sequence[int], rate: float, caution: int = CAUTION) -> float:
    """The score that another person exceeds at this rate, from scores `(trials,)` of some people's trials.

    Up to a tenth it is a quantile. Beyond, excesses over that quantile are taken to be exponential with a rate that is
    itself known from the n people among them only: P(excess > x) = (1 + x / (n mean))^-n, the predictive distribution,
    so that few people make a cautious threshold; and a part of the rate is left for whom the cohort lacks. Raises
    ModelError for a rate that is not within (0, 1).

    >>> rare_score(np.arange(1000.0), [0] * 1000, 0.5)
    499.5
    """
    if not 0 < rate < 1:
        raise ModelError(f"a rate is within 0 and 1, got {rate}")
    start = float(np.quantile(scores, 1 - max(rate, TAIL)))
    if rate >= TAIL:
        return start
    above = scores > start
    if not above.any():
        return start
    people = len(set(np.asarray(owners)[above].tolist()))
    count = len(set(owners))
    aimed = rate * count / (count + caution)
    farther: float = people * ((TAIL / aimed) ** (1 / people) - 1)
    return start + float((scores[above] - start).mean()) * farther


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
