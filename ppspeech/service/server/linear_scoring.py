"""The server's side of cosines: enrolled directions as columns, normed by a cohort where there is one."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.models import FEWEST_PEOPLE, Impostors
from ppspeech.protocols import WORKERS, Meeting
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.speakers import (
    HardenedScorer,
    Identity,
    arrange_columns,
    cosines_of,
    identify_as_server,
    judge_as_server,
    verify_as_server,
    voice_codes,
)
from ppspeech.service.server.cohort import Cohort, Rule
from ppspeech.service.server.stores import Enrolled
from ppspeech.service.tasks.speakers import Speakers

SMALLEST_SPREAD = 1 / 8
"""Of impostors' cosines: a template that all impostors are equally far from must not be normed beyond the range."""


def rule_for_cosines(
    threshold: float | None, rate: float, frames: int, impostors: Impostors | None, bits: int | None = None
) -> Rule:
    """One cosine for everybody, or each direction's own for trials of so many frames; of codes of `bits`, if given.

    Raises PpspeechError without threshold and cohort: which cosine is rare among strangers is not known then.
    """
    if threshold is not None:
        return Rule(threshold)
    if impostors is None:
        raise PpspeechError(
            f"which cosine is rare among strangers is not known: give clips of {FEWEST_PEOPLE} or more other people "
            "recorded like those who will try, cohort=FOLDER, or a cosine of your own, threshold=…"
        )

    compare = impostors.scores if bits is None else by_codes(impostors, bits)

    def own(templates: Reals, rate: float) -> Reals:
        found = (impostors.exceeded(compare(torch.from_numpy(each)), frames, rate) for each in templates)
        return np.fromiter(found, np.float64, len(templates))

    return Rule(0.0, rate, own)


def by_codes(impostors: Impostors, bits: int) -> Callable[[torch.Tensor], Reals]:
    """As `Impostors.scores`, where codes are compared: a direction's cosines with all trials, `(amounts, trials)`."""
    tried = np.packbits([voice_codes(each.double().numpy(), bits) for each in impostors.directions], axis=-1)

    def compare(template: torch.Tensor) -> Reals:
        differing = tried ^ np.packbits(voice_codes(template.numpy()[None], bits))
        return cosines_of(bits - np.bitwise_count(differing).sum(axis=-1, dtype=np.int64), bits)

    return compare


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
        LinearScorer.of(alone, self._columns(template[None], np.zeros(1, np.int64), 1), self._threshold)

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool | None:
        """One claim, against all places."""
        if self._made is None or self._made[0] != len(enrolled):  # galleries only grow: their size names their state
            plan = self._terms.plan
            columns = self._columns(enrolled.templates, enrolled.places, plan.models)
            self._made = len(enrolled), LinearScorer.of(plan, columns, self._threshold, WORKERS)
        return verify_as_server(met, self._terms.verification, self._made[1])

    def identify(self, met: Meeting, enrolled: Enrolled) -> Identity | None:
        """One question, in a new order of the speakers; where there are none, one that nobody is like."""
        job, known = self._terms.identification, len(enrolled)
        columns = self._columns(enrolled.templates, np.arange(known), max(1, known), known)
        named = enrolled.names or ["nobody"]
        return identify_as_server(met, job, arrange_columns(job, columns, named, self._threshold))

    def _columns(self, templates: Reals, at: NDArray[np.int64], places: int, names: int = 1) -> LinearColumns:
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
        models[:, at], constants[at] = weights[:, :known], bias[:known] - self._rule.own(templates, names)
        return LinearColumns(models, constants, weights[:, known:compared], bias[known:compared])


class HardenedScoring:
    """Codes whose decision an active client cannot bend; PpspeechError for a threshold that is no cosine."""

    def __init__(self, terms: Speakers, rule: Rule) -> None:
        if not -1 <= rule.threshold <= 1:
            raise PpspeechError(f"a threshold is a cosine, -1 to 1, got {rule.threshold}")
        self._terms = terms
        self._rule = rule
        self._made: tuple[int, HardenedScorer] | None = None

    def check(self, template: Reals) -> None:
        """Every direction has a code."""

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool:
        """One claim, against all places; the decision is ours."""
        if self._made is None or self._made[0] != len(enrolled):  # galleries only grow: their size names their state
            models = dict(zip(enrolled.places.tolist(), enrolled.templates, strict=True))
            least = np.clip(self._rule.threshold + self._rule.own(enrolled.templates), -1, 1)
            self._made = len(enrolled), HardenedScorer.of(self._terms.hardened, models, least)
        return judge_as_server(met.channel, met.setup, self._made[1])
