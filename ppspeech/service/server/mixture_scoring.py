"""The server's side of GMM-UBM: speakers' mixtures against the background, normed by a cohort where there is one."""

from dataclasses import dataclass, replace

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.protocols import WORKERS, MetServer
from ppspeech.protocols.scores import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import (
    UNLIKELY,
    Arranged,
    Identity,
    arrange_mixtures,
    identify_as_server,
    verify_as_server,
)
from ppspeech.service.mixture_form import plain_ratios, together, unlikely, with_means
from ppspeech.service.server.cohort import Cohort
from ppspeech.service.speaker_offer import SpeakerOffer

SMALLEST_SPREAD, LARGEST_SPREAD = 1 / 16, 4.0
"""Of impostors' ratios, in nats a frame: T-norm takes spreads that differ by a factor of 64 at most."""


@dataclass(frozen=True, eq=False)
class _Enrolled:
    """Mixtures of all places, and the Z-norm of them and the cohort."""

    mixtures: Mixtures
    mean: Reals
    std: Reals


class MixtureScoring:
    """Average log-likelihood ratios, less a threshold that stays here.

    Args:
        offer: what clients are told, mixtures among it.
        background: the released model.
        threshold: a voice is accepted at or above it: a ratio in nats a frame, or a normed one.
        cohort: for norms; None without.
        z_normed: whether to norm by what impostors score under each model.

    Raises:
        PpspeechError: for a threshold below what empty places score.
        RangeError: for a cohort whose log-densities could leave the range.
    """

    def __init__(
        self, offer: SpeakerOffer, background: Mixtures, threshold: float, cohort: Cohort | None, z_normed: bool
    ) -> None:
        if not -UNLIKELY / 2 < threshold < UNLIKELY / 2:
            raise PpspeechError(f"a threshold is a ratio within ±{UNLIKELY / 2:g} nats a frame, got {threshold}")
        assert offer.mixture is not None
        self._offer = offer
        self._plan = offer.mixture
        self._background = background
        self._threshold = threshold
        self._cohort = cohort
        self._z_normed = z_normed
        self._made: tuple[int, MixtureScorer] | None = None
        self._named: tuple[int, Arranged] | None = None
        self.check(background.means.reshape(-1))  # the cohort alone must fit

    def check(self, template: Reals) -> None:
        """Refuse means whose log-densities could leave the range.

        Raises:
            RangeError: for such.
        """
        self._scorer(replace(self._plan, models=1), template[None], 1)

    def verify(self, met: MetServer, templates: Reals) -> bool | None:
        """One claim, against all places."""
        if self._made is None or self._made[0] != len(templates):  # galleries only grow: their size names their state
            self._made = len(templates), self._scorer(self._plan, templates, WORKERS)
        return verify_as_server(met, self._offer.verification, self._made[1])

    def identify(self, met: MetServer, names: list[str], templates: Reals) -> Identity | None:
        """One question; where there are no speakers, one that nobody is like."""
        job = self._offer.identification
        if self._named is None or self._named[0] != len(names):
            speakers = with_means(self._background, templates) if names else unlikely(self._background, 1)
            found = arrange_mixtures(job, self._background, speakers, names or ["nobody"], self._threshold)
            self._named = len(names), found
        return identify_as_server(met, job, self._named[1])

    def _scorer(self, plan: MixturePlan, templates: Reals, workers: int) -> MixtureScorer:
        found = self._enrolled(templates, plan.models)
        compared = plan.models + plan.cohort
        cohort = None
        if self._cohort is not None and plan.cohort:
            cohort = with_means(self._background, self._cohort.means)
        return MixtureScorer.of(
            plan,
            self._background,
            found.mixtures,
            self._threshold,
            cohort=cohort,
            mean=found.mean[:compared],  # without T-norm the cohort has done its work
            std=found.std[:compared],
            workers=workers,
        )

    def _enrolled(self, templates: Reals, places: int) -> _Enrolled:
        """All places, empty ones unlikely, and the Z-norm of all and of the cohort."""
        known = len(templates)
        members = 0 if self._cohort is None else self._cohort.members
        mean, std = np.zeros(places + members), np.ones(places + members)
        if self._cohort is not None and self._z_normed:
            heard = with_means(self._background, np.concatenate([templates, self._cohort.means]))
            scores = np.stack([plain_ratios(self._plan, self._background, heard, t) for t in self._cohort.trials])
            middle, spread = self._cohort.impostors(scores)
            used = np.r_[:known, places : places + members]
            mean[used], std[used] = middle, spread.clip(SMALLEST_SPREAD, LARGEST_SPREAD)
        empty = unlikely(self._background, places - known)
        return _Enrolled(together(with_means(self._background, templates), empty), mean, std)
