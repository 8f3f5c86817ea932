"""How alike a voice must be to be somebody's: set among the people of a cohort, each a stranger to every other.

    threshold of u  =  how alike the cohort's people are to u, on average  +  a margin for everybody

The margin is what strangers exceed at the rate: every person of the cohort is tried with the voice of every other, with
as much speech as four digits take, each against the average of the rest. A tail of its own for everybody, from some
twenty people, would turn people away for nothing. A stranger who sends a code of more speech than that passes more
often; and what all have in common, which needs no voice, passes for nobody.
"""

from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.models import Impostors, rare_score

SPOKEN_FRAMES = 270  # of speech, 10 ms each: what four digits take, with their silences left out about two thirds
COMMON_MARGIN = 0.06  # of cosines: beyond what codes of 8192 bits err by, three standard deviations


def amount_of(impostors: Impostors) -> int:
    """Which of the cohort's amounts of speech is the largest that is no more than digits take; else the least."""
    fitting = [place for place, frames in enumerate(impostors.frames) if frames <= SPOKEN_FRAMES]
    return fitting[-1] if fitting else 0


@dataclass(frozen=True, eq=False)
class VoiceThresholds:
    """A cohort's voices `(trials, 256)`, and the margin; `among` makes one."""

    voices: Reals
    margin: float

    @staticmethod
    def among(voices: Reals, owners: tuple[int, ...], rate: float) -> "VoiceThresholds":
        """From directions of trials `(trials, 256)` and whose each is, at a rate of strangers who pass.

        Raises ModelError for a rate that is not within 0 and 1.
        """
        whose = np.asarray(owners)
        people = sorted(set(owners))
        each = np.stack([voices[whose == who].mean(axis=0) for who in people])
        scores = voices @ (each / np.linalg.norm(each, axis=1, keepdims=True)).T
        beyond, strangers = [], []
        for place, own in enumerate(people):
            for stranger in people:
                if stranger == own:
                    continue
                others = (whose != own) & (whose != stranger)
                beyond.append(scores[whose == stranger, place] - scores[others, place].mean())
                strangers += [stranger] * int((whose == stranger).sum())
        return VoiceThresholds(voices, rare_score(np.concatenate(beyond), strangers, rate, caution=0))

    def least(self, template: Reals) -> float:
        """The cosine that a voice must have with a direction `(256,)`."""
        common = self.voices.mean(axis=0)
        common = common / max(float(np.linalg.norm(common)), 1e-12)
        usual = float((self.voices @ template).mean()) + self.margin
        return float(np.clip(max(usual, float(common @ template) + COMMON_MARGIN), -1, 1))
