"""Words on a public embedding: a head trained by one convex solve, the same with and without privacy."""

from functools import lru_cache

import numpy as np
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings import EmbeddingConfig, WordVectors
from ppspeech.data import scale_corpus
from ppspeech.errors import PrivacyError
from ppspeech.models import EmbeddingHead, LargeMarginGaussians
from ppspeech.training.private.objective import ConvexHook, PrivateFit, fit_privately

TOLERANCE = 1e-3
"""Of the gradient's norm, where nothing is promised: far below what changes an answer."""


def fit_head(
    head: EmbeddingHead,
    vectors: Tensor,
    labels: Tensor,
    *,
    quadratic: float,
    weights: Tensor | None = None,
    privacy: ConvexHook | None = None,
    units: Tensor | None = None,
) -> PrivateFit | None:
    """Train a head, whose scale is set, on vectors `(n, features)` of classes `(n,)` to its certified minimum.

    Formal guarantee: with `privacy` the head's weights are what `fit_privately` promises under its relation, if the
    scale (`EmbeddingHead.scale_`), `quadratic` and the radius are public; `units` `(n,)` tell whose each vector is.
    Vectors of public speech may be among them: each is a unit of its own, to which the same is promised. `weights` `(n,)`
    are for training without privacy; with it each unit counts once, and they are refused.
    """
    x = head.embed(vectors.to(head.mean))
    if privacy is not None:
        if weights is not None:
            raise PrivacyError("each unit counts once in private training: leave weights out")
        return fit_privately(head.head, x, labels, privacy, units)
    if isinstance(head.head, LargeMarginGaussians):
        terms = {"tolerance": TOLERANCE, "post_hoc": True}
        head.head.fit(x, labels, quadratic=quadratic, weights=weights, **terms)
    else:
        head.head.fit(x, labels, quadratic=quadratic, weights=weights, tolerance=TOLERANCE)
    return None


@lru_cache(maxsize=8)
def public_vectors(embedding: EmbeddingConfig) -> Reals:
    """Vectors of the built-in voices, which are nobody's, `(many, features)`: what scales a head without background."""
    vectors = WordVectors(embedding)
    return np.stack([vectors.of(utterance.path) for utterance in scale_corpus(embedding.sample_rate)])
