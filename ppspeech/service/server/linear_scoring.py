"""The server's side of cosines: enrolled directions as columns, normed by a cohort where there is one; as codes; and as
small whole numbers, for crowds.
"""

import atexit
from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Bytes, Reals
from ppspeech.cluster import shards as on_cluster
from ppspeech.errors import PpspeechError
from ppspeech.models import FEWEST_PEOPLE, Impostors
from ppspeech.protocols import WORKERS, Meeting
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.speakers import (
    Crowd,
    CrowdShard,
    Entries,
    HardenedScorer,
    Identity,
    OwnShards,
    Shards,
    arrange_columns,
    cosines_of,
    identify_as_server,
    identify_in_crowd_as_server,
    judge_as_server,
    verify_as_server,
    verify_in_crowd_as_server,
    voice_codes,
)
from ppspeech.service.server.cohort import Cohort, Rule
from ppspeech.service.server.stores import Enrolled
from ppspeech.service.tasks.speakers import Speakers

SMALLEST_SPREAD = 1 / 8
"""Of impostors' cosines: a template that all impostors are equally far from must not be normed beyond the range."""
HIGHEST = 1.25  # a threshold of a crowd: nobody reaches it
KEPT_BLOCKS = 32  # of a crowd that a session keeps for those who came since it began: 4 MB each, of 256 numbers a voice
CAUTION = 3.0  # standard deviations, of as many coins as bits, by which a code must be more like somebody than all are


def rule_for_cosines(threshold: float | None, rate: float, frames: int, impostors: Impostors | None) -> Rule:
    """One cosine for everybody, or each direction's own for trials of so many frames.

    Raises PpspeechError without threshold and cohort: which cosine is rare among strangers is not known then.
    """
    if threshold is not None:
        return Rule(threshold)
    known = _known(impostors)

    def own(templates: Reals, rate: float) -> Reals:
        return known.thresholds(templates, frames, rate)

    return Rule(0.0, rate, own)


def rule_for_codes(threshold: float | None, rate: float, impostors: Impostors | None, bits: int) -> Rule:
    """As `rule_for_cosines`, where codes are compared and clients send what they like: each direction's own is what
    strangers reach at the rate with as much speech as there is of them, and more than what all of them have in common,
    which needs no voice.
    """
    if threshold is not None:
        return Rule(threshold)
    known = _known(impostors)
    directions = known.directions[-1].double().numpy()
    tried, common = _packed(directions, bits), _packed(directions.mean(axis=0, keepdims=True), bits)

    def own(templates: Reals, rate: float) -> Reals:
        codes = _packed(templates, bits)
        strangers, guessed = (_agreeing(each, codes, bits) for each in (tried, common))
        beyond = guessed[0] + CAUTION * np.sqrt(guessed[0] * (1 - guessed[0] / bits))
        rare = known.rare(cosines_of(strangers, bits), rate)
        return np.maximum(rare, cosines_of(beyond.clip(max=bits), bits))

    return Rule(0.0, rate, own)


def _known(impostors: Impostors | None) -> Impostors:
    if impostors is None:
        raise PpspeechError(
            f"which cosine is rare among strangers is not known: give clips of {FEWEST_PEOPLE} or more other people "
            "recorded like those who will try, cohort=FOLDER, or a cosine of your own, threshold=…"
        )
    return impostors


def _agreeing(some: Bytes, others: Bytes, bits: int) -> NDArray[np.int64]:
    """How many bits of codes agree, `(some, others)`."""
    one, other = (np.ascontiguousarray(each).view(np.uint64) for each in (some, others))
    differing = np.empty((len(one), len(other)), np.int64)
    for row, code in zip(differing, one, strict=True):
        row[:] = np.bitwise_count(other ^ code).sum(axis=-1, dtype=np.int64)
    found: NDArray[np.int64] = bits - differing
    return found


def _packed(directions: Reals, bits: int) -> Bytes:
    """Codes of directions, 8 bits a byte."""
    return np.packbits(voice_codes(directions, bits), axis=-1)


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
        self._named: tuple[int, LinearColumns] | None = None
        self.check(np.zeros(terms.features))  # the cohort alone must fit

    def check(self, template: Reals) -> None:
        """Refuse, with a RangeError, a direction whose scores could leave the range."""
        plan = self._terms.plan
        alone = LinearPlan(plan.features, 1, plan.cohort, reach=plan.reach)
        LinearScorer.of(alone, self._columns(template[None], np.zeros(1, np.int64), 1), self._threshold)

    def warm(self, enrolled: Enrolled) -> None:
        """Encode who is enrolled now, before sessions begin: what they inherit they need not make."""
        self._scorer(enrolled, 1)  # the server forks: threads would not survive it
        self._speakers(enrolled)

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool | None:
        """One claim, against all places."""
        return verify_as_server(met, self._terms.verification, self._scorer(enrolled, WORKERS))

    def identify(self, met: Meeting, enrolled: Enrolled) -> Identity | None:
        """One question, in a new order of the speakers; where there are none, one that nobody is like."""
        job, named = self._terms.identification, enrolled.names or ["nobody"]
        arranged = arrange_columns(job, self._speakers(enrolled), named, self._threshold, WORKERS)
        return identify_as_server(met, job, arranged)

    def _scorer(self, enrolled: Enrolled, workers: int) -> LinearScorer:
        if self._made is None or self._made[0] != len(enrolled):  # galleries only grow: their size names their state
            plan = self._terms.plan
            columns = self._columns(enrolled.templates, enrolled.places, plan.models)
            self._made = len(enrolled), LinearScorer.of(plan, columns, self._threshold, workers)
        return self._made[1]

    def _speakers(self, enrolled: Enrolled) -> LinearColumns:
        known = len(enrolled)
        if self._named is None or self._named[0] != known:
            self._named = known, self._columns(enrolled.templates, np.arange(known), max(1, known), known)
        return self._named[1]

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

    def warm(self, enrolled: Enrolled) -> None:
        """Encode who is enrolled now, before sessions begin."""
        self._scorer(enrolled)

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool:
        """One claim, against all places; the decision is ours."""
        return judge_as_server(met.channel, met.setup, self._scorer(enrolled))

    def _scorer(self, enrolled: Enrolled) -> HardenedScorer:
        if self._made is None or self._made[0] != len(enrolled):  # galleries only grow: their size names their state
            models = dict(zip(enrolled.places.tolist(), enrolled.templates, strict=True))
            least = np.clip(self._rule.threshold + self._rule.own(enrolled.templates), -1, 1)
            self._made = len(enrolled), HardenedScorer.of(self._terms.hardened, models, least)
        return self._made[1]


class CrowdScoring:
    """Cosines among up to a million people. For names, thresholds share the rate as if all places were taken, so that
    who is enrolled later changes nobody else's; a claim has the rate to itself. Raises PpspeechError for a threshold
    that is no cosine of 0 to 1.
    """

    def __init__(self, terms: Speakers, rule: Rule, shards: Shards | None = None) -> None:
        if not 0 <= rule.threshold <= 1:
            raise PpspeechError(f"a threshold of a crowd is a cosine, 0 to 1, got {rule.threshold}")
        self._terms = terms
        self._rule = rule
        self.known: Bits = np.zeros(terms.places, np.uint8)
        """A 1 for the place of everybody who is in the crowd."""
        plan = terms.crowd
        self._own = CrowdShard(plan.product, plan.blocks, workers=WORKERS) if shards is None else None
        held = shards or OwnShards([] if self._own is None else [self._own])
        self._names = self._claims = Crowd.empty(plan, held)

    def check(self, template: Reals) -> None:
        """Every direction fits."""

    @property
    def is_ours(self) -> bool:
        """Whether this process holds the crowd, and sessions that are forked from it inherit whom it knows."""
        return self._own is not None

    def begin_session(self) -> None:
        """Be a session: whom the server has not taken in before it forked takes memory of the session's own."""
        if self._own is not None:
            self._own.room = KEPT_BLOCKS

    def warm(self, enrolled: Enrolled) -> None:
        """Add who is not in it yet. Galleries only grow: blocks of slots where nobody is new are kept."""
        new = np.flatnonzero(self.known[enrolled.places] == 0)
        if not len(new):
            return
        plan, templates, places = self._terms.crowd, enrolled.templates[new], enrolled.places[new]
        shared, alone = (self._least(templates, names) for names in (plan.places, 1))
        entries = Entries.of(plan, templates, [enrolled.names[each] for each in new], shared)
        self._names = self._names.added(entries, places)
        self._claims = self._claims.named(entries.with_thresholds(alone), 1 + places)
        self.known[places] = 1

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool | None:
        """One claim, against all places; `enrolled`: at least those who are not in it yet."""
        self.warm(enrolled)
        return verify_in_crowd_as_server(met, self._claims, self._terms.decision)

    def identify(self, met: Meeting, enrolled: Enrolled) -> Identity | None:
        """One question; places are never opened to clients, so that their order stays."""
        self.warm(enrolled)
        return identify_in_crowd_as_server(met, self._names)

    def _least(self, templates: Reals, names: int) -> Reals:
        """Thresholds `(speakers,)`, no lower than 0, nor so high that scores leave their range."""
        own: Reals = self._rule.own(templates, names) + self._rule.threshold
        return own.clip(0.0, HIGHEST)


def crowd_on_ray(terms: Speakers, address: str, count: int) -> Shards:
    """So many shards of a crowd as actors of a Ray cluster, until this process ends. Raises PpspeechError for an
    address or a number that cannot be.
    """
    plan = terms.crowd
    if not 1 <= count <= plan.blocks:
        raise PpspeechError(f"{plan.places:,} places are cut into 1 to {plan.blocks} shards, got {count}")
    bounds = np.linspace(0, plan.blocks, count + 1).astype(int).tolist()
    size = plan.product.columns
    factories = [partial(CrowdShard, plan.product, end - start, start * size) for start, end in pairwise(bounds)]
    lasting = ExitStack()
    atexit.register(lasting.close)
    return lasting.enter_context(on_cluster(factories, address))
