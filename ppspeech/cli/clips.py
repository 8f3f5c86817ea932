"""Sound files given on the command line, as features of a model's front end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from ppspeech.audio import MfccConfig


def features_of(clips: Sequence[Path], mfcc: "MfccConfig") -> "list[Tensor]":
    """Features of each clip, `(frames, features)`; a clip that cannot be used is named."""
    from ppspeech.data import FeatureStore, Utterance

    return FeatureStore(mfcc).load([Utterance(clip, speaker="unknown") for clip in clips])
