"""Other people's voices, to norm scores by: what impostors score under a model, and what a trial scores elsewhere.

Whoever serves chooses them; they are public speech, or that of people who have agreed, and stay with the server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle
from ppspeech.data import FeatureStore, SyntheticCorpus, Utterance, clips_by_speaker
from ppspeech.errors import ModelError
from ppspeech.service.tasks.speakers import MOST_COHORT

FEWEST = 3  # a member's own clips say nothing about impostors: there must be two others
MOST_CLIPS = 8  # of one member; more change little
BUILT_IN, BUILT_IN_VOICES = "synthetic", 16


@dataclass(frozen=True, eq=False)
class Cohort:
    """Some people's voices under one background model.

    Attributes:
        directions: their templates for cosines, `(members, size)`.
        means: their templates for mixtures, `(members, size)`.
        trials: frames of each clip, `(frames, features)`.
        trial_directions: of each clip alone, `(clips, size)`.
        owners: whose clip it is, `(clips,)`.
    """

    directions: Reals
    means: Reals
    trials: tuple[Reals, ...]
    trial_directions: Reals
    owners: NDArray[np.int64]

    @staticmethod
    def of(bundle: Bundle, speakers: Sequence[Sequence[Tensor]]) -> "Cohort":
        """From features `(frames, features)` of members' clips. Raises ModelError unless there are 3 to 64 members."""
        if not FEWEST <= len(speakers) <= MOST_COHORT:
            raise ModelError(f"a cohort has {FEWEST} to {MOST_COHORT} members, got {len(speakers)}")
        verifier = bundle.verifier
        clips = [clip for member in speakers for clip in member]
        return Cohort(
            np.stack([verifier.direction(member) for member in speakers]),
            np.stack([verifier.means(member) for member in speakers]),
            tuple(np.asarray(clip.double().numpy()) for clip in clips),
            np.stack([verifier.direction([clip]) for clip in clips]),
            np.repeat(np.arange(len(speakers)), [len(member) for member in speakers]),
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


def cohort_at(bundle: Bundle, where: str) -> Cohort:
    """The cohort that people name: a folder with one folder of clips a person, or `synthetic`, the built-in voices.

    Raises CorpusError without such a folder, or for a person without a clip; ModelError for too few or too many people.
    """
    if where == BUILT_IN:
        found: dict[str, list[Utterance]] = {}
        voices = SyntheticCorpus(speakers=BUILT_IN_VOICES, takes=1, sample_rate=bundle.mfcc.sample_rate)
        for utterance in voices.build(progress=False):
            found.setdefault(utterance.speaker, []).append(utterance)
        members = list(found.values())
    else:
        members = [[Utterance(clip, who) for clip in clips] for who, clips in clips_by_speaker(Path(where)).items()]
    store = FeatureStore(bundle.mfcc)
    return Cohort.of(bundle, [store.load(clips[:MOST_CLIPS]) for clips in members])
