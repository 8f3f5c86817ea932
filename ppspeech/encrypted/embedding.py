"""A voice as one vector: the background model's means moved towards it, measured from where they were, of length 1.

The cosine of two such vectors says how alike two voices are (Campbell et al. 2006); it is what speaker services compare
encrypted. The device that hears the voice computes it, with the released background model.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ppspeech.bundle import Bundle
from ppspeech.bundle.model_types import SpeakerUbmSettings
from ppspeech.errors import ModelError
from ppspeech.models.mixture import GaussianMixture
from ppspeech.models.ubm import supervectors
from ppspeech.models.verification import adapt_speakers

Reals = NDArray[np.floating]


def embedding_size(bundle: Bundle) -> int:
    """Numbers of an embedding under this bundle's background model.

    Raises:
        ModelError: if it holds another type of model.
    """
    return _background(bundle)[0].components * bundle.mfcc.features


@torch.no_grad()
def embed(bundle: Bundle, clips: Sequence[Tensor]) -> Reals:
    """The embedding of what one speaker said, `(size,)`, of unit length.

    Args:
        bundle: a background model, `speaker_ubm`.
        clips: features of each clip, `(frames, features)`, by the bundle's front end.

    Raises:
        ModelError: if it holds another type of model, or there is no clip.
    """
    ubm, relevance = _background(bundle)
    if not clips:
        raise ModelError("an embedding needs at least one clip")
    adapted = adapt_speakers(ubm, torch.cat(list(clips)).unsqueeze(0), relevance=relevance)
    moved = (supervectors(ubm, adapted) - supervectors(ubm, ubm)).squeeze(0).double()
    return np.asarray(functional.normalize(moved, dim=-1).numpy())


def _background(bundle: Bundle) -> tuple[GaussianMixture, float]:
    settings = bundle.config.settings
    if not isinstance(settings, SpeakerUbmSettings) or not isinstance(bundle.model, GaussianMixture):
        raise ModelError(f"a speaker_ubm is needed to tell speakers, this bundle is a {bundle.config.type}")
    return bundle.model, settings.relevance
