"""A voice as a template: the background model's means moved towards it.

Measured from where they were and brought to length 1, they are a direction; the cosine of two directions says how alike
two voices are (Campbell et al. 2006). As they are, they are the means of the speaker's mixture (Reynolds et al. 2000).
The device that hears the voice computes either, with the released background model.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle, SpeakerUbmSettings
from ppspeech.errors import ModelError
from ppspeech.models import adapt_speakers
from ppspeech.models.gaussian import GaussianMixture, supervectors


def embedding_size(bundle: Bundle) -> int:
    """Numbers of a template under this bundle's background model.

    Raises:
        ModelError: if it holds another type of model.
    """
    return background_of(bundle)[0].components * bundle.mfcc.features


@torch.no_grad()
def embed(bundle: Bundle, clips: Sequence[Tensor]) -> Reals:
    """The direction of what one speaker said, `(size,)`, of unit length.

    Args:
        bundle: a background model, `speaker_ubm`.
        clips: features of each clip, `(frames, features)`, by the bundle's front end.

    Raises:
        ModelError: if it holds another type of model, or there is no clip.
    """
    ubm, _ = background_of(bundle)
    moved = (supervectors(ubm, _adapted(bundle, clips)) - supervectors(ubm, ubm)).squeeze(0).double()
    return np.asarray(functional.normalize(moved, dim=-1).numpy())


@torch.no_grad()
def adapted_means(bundle: Bundle, clips: Sequence[Tensor]) -> Reals:
    """The means of the speaker's mixture, `(size,)`; its weights and covariances are the background's.

    Args:
        bundle: a background model, `speaker_ubm`.
        clips: features of each clip, `(frames, features)`.

    Raises:
        ModelError: if it holds another type of model, or there is no clip.
    """
    return np.asarray(_adapted(bundle, clips).gaussians.mean.double().flatten().numpy())


def background_of(bundle: Bundle) -> tuple[GaussianMixture, float]:
    """The background model and the relevance of its adaptation.

    Raises:
        ModelError: if the bundle holds another type of model.
    """
    settings = bundle.config.settings
    if not isinstance(settings, SpeakerUbmSettings) or not isinstance(bundle.model, GaussianMixture):
        raise ModelError(f"a speaker_ubm is needed to tell speakers, this bundle is a {bundle.config.type}")
    return bundle.model, settings.relevance


def released_threshold(bundle: Bundle) -> float | None:
    """The likelihood ratio that was released with a background model; None where none was.

    Raises:
        ModelError: if the bundle holds another type of model.
    """
    background_of(bundle)
    settings = bundle.config.settings
    assert isinstance(settings, SpeakerUbmSettings)
    return settings.threshold


def _adapted(bundle: Bundle, clips: Sequence[Tensor]) -> GaussianMixture:
    ubm, relevance = background_of(bundle)
    if not clips:
        raise ModelError("a template needs at least one clip")
    return adapt_speakers(ubm, torch.cat(list(clips)).unsqueeze(0), relevance=relevance)
