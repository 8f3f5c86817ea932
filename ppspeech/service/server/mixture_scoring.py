"""The server's side of GMM-UBM: speakers' mixtures against the background, normed by a cohort where there is one."""

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.audio import usual_range
from ppspeech.bundle import Bundle
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.models import FEWEST_PEOPLE, rare_score
from ppspeech.protocols import WORKERS, Meeting
from ppspeech.protocols.scores import Covariance, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import (
    UNLIKELY,
    Arranged,
    Identity,
    arrange_mixtures,
    identify_as_server,
    verify_as_server,
)
from ppspeech.service.server.cohort import Cohort, Rule
from ppspeech.service.server.stores import Enrolled
from ppspeech.service.tasks.speakers import Speakers, trial_frames

DEVIATIONS = {"none": 4.0, "public": 2.5, "utterance": 2.5}
"""Frames are held to so many usual spreads on average over features, which those of speech rarely reach; what is usual
is known within a factor of two where features are not normalized."""
LONGEST_FRAME = 100.0
LARGEST_REACH = 16
SMALLEST_SPREAD, LARGEST_SPREAD = 1 / 16, 4.0
"""Of impostors' ratios, in nats a frame: T-norm takes spreads that differ by a factor of 64 at most."""


def rule_for_mixtures(
    threshold: float | None, rate: float, plan: MixturePlan, background: Mixtures, cohort: Cohort | None
) -> Rule:
    """One ratio in nats a frame for everybody, or each speaker's own, among the cohort's clips.

    Raises PpspeechError without threshold and cohort.
    """
    if threshold is not None:
        return Rule(threshold)
    if cohort is None or cohort.by_amount is None:
        raise PpspeechError(
            f"which ratio is rare among strangers is not known: give clips of {FEWEST_PEOPLE} or more other people "
            "recorded like those who will try, cohort=FOLDER or a corpus such as cohort=synthetic (a bundle's own has "
            "directions, for cosines, and ratios need frames), or a ratio of your own in nats a frame, threshold=…"
        )
    tried, owners = cohort.trials, cohort.owners.tolist()

    def own(templates: Reals, rate: float) -> Reals:
        speakers = with_means(background, templates)
        scores = np.stack([plain_ratios(plan, background, speakers, trial) for trial in tried])
        found = (rare_score(each, owners, rate) for each in scores.T)
        return np.fromiter(found, np.float64, len(templates))

    return Rule(0.0, rate, own)


class MixtureScoring:
    """Average log-likelihood ratios in nats a frame, or normed ones, less a threshold that stays here.

    Raises PpspeechError for a threshold below what empty places score; RangeError for a cohort whose log-densities
    could leave the range.
    """

    def __init__(
        self, terms: Speakers, background: Mixtures, rule: Rule, cohort: Cohort | None, z_normed: bool
    ) -> None:
        if not -UNLIKELY / 2 < rule.threshold < UNLIKELY / 2:
            raise PpspeechError(f"a threshold is a ratio within ±{UNLIKELY / 2:g} nats a frame, got {rule.threshold}")
        assert terms.mixture is not None
        self._terms = terms
        self._plan = terms.mixture
        self._background = background
        self._rule = rule
        self._threshold = rule.threshold
        self._cohort = cohort
        self._z_normed = z_normed
        self._made: tuple[int, MixtureScorer] | None = None
        self._named: tuple[int, Arranged] | None = None
        self.check(background.means.reshape(-1))  # the cohort alone must fit

    def check(self, template: Reals) -> None:
        """Refuse, with a RangeError, means whose log-densities could leave the range, alone or in a full gallery."""
        alone, some = replace(self._plan, models=1), template[None]
        self._scorer(alone, some, np.zeros(1, np.int64), 1)
        if self._terms.identifies:
            MixtureScorer.of(alone, self._background, self._known(some, self._terms.places), self._threshold)

    def warm(self, enrolled: Enrolled) -> None:
        """Nothing: encoding takes the time of a question, and every session has its own."""

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool | None:
        """One claim, against all places."""
        if self._made is None or self._made[0] != len(enrolled):  # galleries only grow: their size names their state
            self._made = len(enrolled), self._scorer(self._plan, enrolled.templates, enrolled.places, WORKERS)
        return verify_as_server(met, self._terms.verification, self._made[1])

    def identify(self, met: Meeting, enrolled: Enrolled) -> Identity | None:
        """One question; where there are no speakers, one that nobody is like."""
        job, known = self._terms.identification, len(enrolled)
        if self._named is None or self._named[0] != known:
            speakers = self._known(enrolled.templates, known) if known else unlikely(self._background, 1)
            found = arrange_mixtures(job, self._background, speakers, enrolled.names or ["nobody"], self._threshold)
            self._named = known, found
        return identify_as_server(met, job, self._named[1])

    def _scorer(self, plan: MixturePlan, templates: Reals, at: NDArray[np.int64], workers: int) -> MixtureScorer:
        speakers, mean, std = self._enrolled(templates, at, plan.models)
        norm = {"mean": mean, "std": std}
        if self._cohort is None or not plan.cohort:  # without T-norm the cohort has done its work
            cohort, norm = None, {name: each[: plan.models] for name, each in norm.items()}
        else:
            cohort = with_means(self._background, self._cohort.means)
        return MixtureScorer.of(
            plan, self._background, speakers, self._threshold, cohort=cohort, workers=workers, **norm
        )

    def _enrolled(self, templates: Reals, at: NDArray[np.int64], places: int) -> tuple[Mixtures, Reals, Reals]:
        """All places, empty ones unlikely, and the Z-norm of all and of the cohort."""
        members = 0 if self._cohort is None else self._cohort.members
        mean, std = np.zeros(places + members), np.ones(places + members)
        if self._cohort is not None and self._z_normed:
            heard = with_means(self._background, np.concatenate([templates, self._cohort.means]))
            scores = np.stack([plain_ratios(self._plan, self._background, heard, t) for t in self._cohort.trials])
            middle, spread = self._cohort.impostors(scores)
            used = np.r_[at, places : places + members]
            mean[used], std[used] = middle, spread.clip(SMALLEST_SPREAD, LARGEST_SPREAD)
        filled = unlikely(self._background, places)
        for field, given in zip(vars(filled).values(), vars(self._known(templates)).values(), strict=True):
            field[at] = given
        return filled, mean, std

    def _known(self, templates: Reals, names: int = 1) -> Mixtures:
        """Enrolled speakers' mixtures, each less likely by its own threshold, or as unlikely as in an empty place."""
        own = self._rule.own(templates, names).clip(max=UNLIKELY)
        found = with_means(self._background, templates)
        return replace(found, log_weights=found.log_weights - own[:, None])


def covariance_of(bundle: Bundle) -> Covariance:
    """Which monomials its Gaussians need."""
    return "full" if bundle.verifier.background.ubm.gaussians.kind in {"full", "tied"} else "diagonal"


@torch.no_grad()
def background_mixture(bundle: Bundle) -> Mixtures:
    """The background model, a batch of one, of frames about their usual center in units of their usual spread.

    All densities change by the same constant then, which ratios do not have. Gaussians so narrow that the longest frame
    would leave half the range are widened in that direction to what fits, about a seventh of what is usual there. The
    other half is for enrolled means.
    """
    ubm, (center, spread) = bundle.verifier.background.ubm, map(torch.from_numpy, usual_range(bundle.mfcc))
    means = (ubm.gaussians.mean.double() - center) / spread
    farthest = _longest_frame(bundle) + float(means.norm(dim=-1).max())
    least = farthest**2 / 2.0**LARGEST_REACH
    matrices = ubm.gaussians.covariances().double() / (spread[:, None] * spread)
    if covariance_of(bundle) == "full":
        variances, directions = torch.linalg.eigh(matrices)
        covariances = (directions * variances.clamp_min(least)[..., None, :]) @ directions.mT
    else:
        covariances = matrices.diagonal(dim1=-2, dim2=-1).clamp_min(least)
    parts = (ubm.log_weights().double(), means, covariances)
    return Mixtures(*(np.array(part.cpu().numpy())[None] for part in parts))


def _longest_frame(bundle: Bundle) -> float:
    """What frames are held to, in usual spreads."""
    return min(LONGEST_FRAME, DEVIATIONS[bundle.mfcc.cmvn] * math.sqrt(bundle.mfcc.features))


def with_means(background: Mixtures, means: Reals) -> Mixtures:
    """The mixtures of speakers whose templates are means `(speakers, size)`."""
    count = len(means)
    logs, covariances = (np.repeat(each, count, axis=0) for each in (background.log_weights, background.covariances))
    return Mixtures(logs, means.reshape(count, *background.means.shape[1:]), covariances)


def unlikely(background: Mixtures, count: int) -> Mixtures:
    """What stands in empty places: the background made so unlikely that nobody is accepted."""
    lowered = replace(background, log_weights=background.log_weights - UNLIKELY)
    return Mixtures(*(np.repeat(each, count, axis=0) for each in vars(lowered).values()))


def together(*mixtures: Mixtures) -> Mixtures:
    """All of them as one batch."""
    return Mixtures(*(np.concatenate(parts) for parts in zip(*(vars(each).values() for each in mixtures), strict=True)))


def plan_mixtures(bundle: Bundle, frames: int, places: int, cohort: int) -> MixturePlan:
    """Public sizes and scales, a bit wider than the background needs. Raises RangeError if none is wide enough."""
    ubm = bundle.verifier.background.ubm
    background, size = background_mixture(bundle), bundle.mfcc.features
    norm = _longest_frame(bundle)
    for reach in range(7, LARGEST_REACH + 1):
        tried = MixturePlan(frames, size, ubm.components, covariance=covariance_of(bundle), norm=norm, reach=reach)
        try:
            MixtureScorer.of(tried, background, unlikely(background, 1), 0.0)
        except RangeError:
            continue
        return replace(tried, models=places, cohort=cohort, reach=min(LARGEST_REACH, reach + 1))
    raise RangeError(
        f"log-densities of the background model can leave 2^{LARGEST_REACH} nats: train it with wider Gaussians "
        "(--model.floor, or --model.covariance diagonal), or serve it with scoring=linear"
    )


def plain_ratios(plan: MixturePlan, background: Mixtures, speakers: Mixtures, frames: Reals) -> Reals:
    """Average log-likelihood ratios of one trial in the clear, `(speakers,)`."""
    held = trial_frames(plan, frames)
    weights = together(background, speakers).weights(plan.covariance)
    densities = np.tensordot(plan.rows(held)[: len(held)], weights, axes=1)
    highest = densities.max(axis=-1)
    joined = highest + np.log(np.exp(densities - highest[..., None]).sum(axis=-1))
    ratios: Reals = (joined[:, 1:] - joined[:, :1]).mean(axis=0)
    return ratios
