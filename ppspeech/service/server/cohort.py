"""Other people's voices, to norm scores by: what impostors score under a model, and what a trial scores elsewhere.

Whoever serves chooses them; they are public speech, or that of people who have agreed, and stay with the server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import in_usual_range
from ppspeech.bundle import Bundle
from ppspeech.data import FeatureStore, cohort_at
from ppspeech.errors import ModelError
from ppspeech.models import FEWEST_PEOPLE, Impostors, UbmVoices
from ppspeech.service.tasks.speakers import MOST_COHORT


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a claim is accepted: a threshold for everybody, or one for each template, at a rate of false accepts.

    The own ones are taken off the scores, so that what is left is compared with 0.
    """

    threshold: float
    rate: float = 1.0
    least: Callable[[Reals, float], Reals] | None = None

    def own(self, templates: Reals, names: int = 1) -> Reals:
        """What is taken off the scores of each template, `(templates,)`; with several names, each at its share."""
        return np.zeros(len(templates)) if self.least is None else self.least(templates, self.rate / max(1, names))


FEWEST = 3  # a member's own clips say nothing about impostors: there must be two others
MOST_CLIPS = 8  # of one member; more change little


@dataclass(frozen=True, eq=False)
class Cohort:
    """Some people's voices under one model.

    Attributes:
        directions: their templates for cosines, `(members, size)`.
        means: their templates for mixtures, `(members, size)`; of size 0 without a background model.
        trials: frames of each clip where they usually lie, `(frames, features)`; none without a background model.
        trial_directions: of each clip alone, `(clips, size)`.
        owners: whose clip it is, `(clips,)`.
        by_amount: the same speech by its amount, for cosines; None where there are too few people for a rate.
    """

    directions: Reals
    means: Reals
    trials: tuple[Reals, ...]
    trial_directions: Reals
    owners: NDArray[np.int64]
    by_amount: Impostors | None

    @staticmethod
    def of(bundle: Bundle, speakers: Sequence[Sequence[Tensor]]) -> "Cohort":
        """From features `(frames, features)` of members' clips. Raises ModelError unless there are 3 to 64 members."""
        if not FEWEST <= len(speakers) <= MOST_COHORT:
            raise ModelError(f"a cohort has {FEWEST} to {MOST_COHORT} members, got {len(speakers)}")
        verifier = bundle.verifier
        enough = len(speakers) >= FEWEST_PEOPLE
        by_amount = Impostors.of(verifier.voices, speakers) if enough else None
        speakers = [member[:MOST_CLIPS] for member in speakers]
        clips = [clip for member in speakers for clip in member]
        means: Reals = np.zeros((len(speakers), 0))
        trials: tuple[Reals, ...] = ()
        if isinstance(verifier.voices, UbmVoices):
            means = np.stack([verifier.means(member) for member in speakers])
            trials = tuple(in_usual_range(clip, bundle.mfcc) for clip in clips)
        return Cohort(
            np.stack([verifier.direction(member) for member in speakers]),
            means,
            trials,
            np.stack([verifier.direction([clip]) for clip in clips]),
            np.repeat(np.arange(len(speakers)), [len(member) for member in speakers]),
            by_amount,
        )

    @property
    def members(self) -> int:
        """How many."""
        return len(self.directions)

    def impostors(self, scores: Reals) -> tuple[Reals, Reals]:
        """Mean and spread of impostors' scores `(clips, speakers + members)`; members' own clips are left out."""
        foreign = np.ones(scores.shape, bool)
        foreign[:, scores.shape[1] - self.members :] = self.owners[:, None] != np.arange(self.members)
        mean = scores.mean(axis=0, where=foreign)
        return mean, scores.std(axis=0, ddof=1, where=foreign)


def cohort_of(bundle: Bundle, where: str) -> Cohort:
    """The cohort that people name: a folder with one folder of clips a person, or a corpus by its name or folder.

    Raises CorpusError where there is none, or for a person without a clip; ModelError for too few or too many people.
    """
    people = cohort_at(where)
    if bundle.config.mfcc is None:
        heard = [bundle.verifier.features([clip.path for clip in clips]) for clips in people]
    else:
        heard = [list(FeatureStore(bundle.mfcc).load(clips)) for clips in people]
    return Cohort.of(bundle, heard)
