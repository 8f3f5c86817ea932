"""The server's side of cosines: enrolled directions as columns, normed by a cohort where there is one."""

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.models import FEWEST_PEOPLE, Impostors
from ppspeech.protocols import WORKERS, Meeting
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.speakers import (
    HardenedScorer,
    Identity,
    arrange_columns,
    identify_as_server,
    judge_as_server,
    verify_as_server,
)
from ppspeech.service.server.cohort import Cohort, Rule
from ppspeech.service.tasks.speakers import Speakers

SMALLEST_SPREAD = 1 / 8
"""Of impostors' cosines: a template that all impostors are equally far from must not be normed beyond the range."""


def rule_for_cosines(threshold: float | None, rate: float, frames: int, impostors: Impostors | None) -> Rule:
    """One cosine for everybody, or each direction's own for trials of so many frames.

    Raises PpspeechError without threshold and cohort: which cosine is rare among strangers is not known then.
    """
    if threshold is not None:
        return Rule(threshold)
    if impostors is None:
        raise PpspeechError(
            f"which cosine is rare among strangers is not known: give clips of {FEWEST_PEOPLE} or more other people "
            "recorded like those who will try, cohort=FOLDER, or a cosine of your own, threshold=…"
        )

    def own(templates: Reals, rate: float) -> Reals:
        found = (impostors.threshold(torch.from_numpy(each), frames, rate) for each in templates)
        return np.fromiter(found, np.float64, len(templates))

    return Rule(0.0, rate, own)


class LinearScoring:
    """Cosines of directions, less a threshold that stays here: of cosines, or of normed ones where there is a cohort.

    Raises PpspeechError for a threshold that no cosine can reach or miss; RangeError for a cohort whose normed scores
    could leave the range.
    """

    def __init__(self, terms: Speakers, rule: Rule, cohort: Cohort | None, z_normed: bool) -> None:
        if not terms.normed and not -1 <= rule.threshold <= 1:
            raise PpspeechError(f"a threshold is a cosine, -1 to 1, got {rule.threshold}")
        self._terms = terms
        self._rule = rule
        self._threshold = rule.threshold
        self._cohort = cohort
        self._z_normed = z_normed
        self._empty = -(2.0 ** (terms.plan.reach - 1))
        self._made: tuple[int, LinearScorer] | None = None
        self.check(np.zeros(terms.features))  # the cohort alone must fit

    def check(self, template: Reals) -> None:
        """Refuse, with a RangeError, a direction whose scores could leave the range."""
        plan = self._terms.plan
        alone = LinearPlan(plan.features, 1, plan.cohort, reach=plan.reach)
        LinearScorer.of(alone, self._columns(template[None], 1), self._threshold)

    def verify(self, met: Meeting, templates: Reals) -> bool | None:
        """One claim, against all places."""
        if self._made is None or self._made[0] != len(templates):  # galleries only grow: their size names their state
            plan = self._terms.plan
            columns = self._columns(templates, plan.models)
            self._made = len(templates), LinearScorer.of(plan, columns, self._threshold, WORKERS)
        return verify_as_server(met, self._terms.verification, self._made[1])

    def identify(self, met: Meeting, names: list[str], templates: Reals) -> Identity | None:
        """One question, in a new order of the speakers; where there are none, one that nobody is like."""
        job = self._terms.identification
        columns = self._columns(templates, max(1, len(names)), len(names))
        return identify_as_server(met, job, arrange_columns(job, columns, names or ["nobody"], self._threshold))

    def _columns(self, templates: Reals, places: int, names: int = 1) -> LinearColumns:
        """All places; empty ones score below every threshold. `names` share the rate of a stranger who gets any."""
        plan, known = self._terms.plan, len(templates)
        cohort = np.zeros((0, plan.features)) if self._cohort is None else self._cohort.directions
        weights: Reals = np.concatenate([templates, cohort]).T
        bias: Reals = np.zeros(known + len(cohort))
        if self._cohort is not None and self._z_normed:
            mean, std = self._cohort.impostors(self._cohort.trial_directions @ weights)
            weights, bias = ScoreNorm(mean, np.maximum(std, SMALLEST_SPREAD)).fold(weights, bias)
        compared = known + plan.cohort  # without T-norm the cohort has done its work
        models, constants = np.zeros((plan.features, places)), np.full(places, self._empty)
        models[:, :known], constants[:known] = weights[:, :known], bias[:known] - self._rule.own(templates, names)
        return LinearColumns(models, constants, weights[:, known:compared], bias[known:compared])


class HardenedScoring:
    """Cosines whose decision an active client cannot bend; PpspeechError for a threshold that is no cosine."""

    def __init__(self, terms: Speakers, rule: Rule) -> None:
        if not -1 <= rule.threshold <= 1:
            raise PpspeechError(f"a threshold is a cosine, -1 to 1, got {rule.threshold}")
        self._terms = terms
        self._rule = rule

    def check(self, template: Reals) -> None:
        """Every direction of unit length is within the range."""

    def verify(self, met: Meeting, templates: Reals) -> bool:
        """One claim, against all places; the decision is ours."""
        plan, known = self._terms.hardened, len(templates)
        weights, bias = np.zeros((plan.features, plan.models)), np.full(plan.models, -2.0)
        weights[:, :known], bias[:known] = templates.T, -self._rule.own(templates)
        columns = LinearColumns(weights, bias, np.zeros((plan.features, 0)), np.zeros(0))
        return judge_as_server(met.channel, HardenedScorer.of(plan, columns, self._rule.threshold))
