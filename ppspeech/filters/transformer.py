"""A minimax filter as scikit-learn has its transformers: arrays in, arrays out, at home in a Pipeline."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ppspeech.arrays import Reals
from ppspeech.filters.learn import Learning, learn_filter


class MinimaxTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns features that keep the labels and hide the people; see `learn_filter`, whose arguments it has.

    Labels and people may be numbers or names. `filter_` is the filter, an nn.Module. It proves nothing: attack it
    (`ppspeech.filters.attack.attack`) before it is trusted.
    """

    def __init__(
        self,
        features: int = 10,
        *,
        rho: float = Learning.rho,
        shape: str = "linear",
        solver: str = "alternating",
        iterations: int = Learning.iterations,
        seed: int = 0,
    ) -> None:
        self.features, self.rho, self.shape = features, rho, shape
        self.solver, self.iterations, self.seed = solver, iterations, seed

    def fit(self, X: Any, y: Any, private: Any) -> "MinimaxTransformer":
        """Learn from samples `(n, D)`, the labels to keep and the people to hide, each `(n,)`."""
        people, labels = (np.unique(np.asarray(given), return_inverse=True)[1] for given in (private, y))
        found = learn_filter(np.asarray(X, dtype=np.float64), people, labels, **self.get_params())
        self.filter_ = found.filter
        return self

    def transform(self, X: Any) -> Reals:
        """The filtered samples, `(n, features)`."""
        check_is_fitted(self)
        with torch.no_grad():
            filtered: Reals = self.filter_(torch.from_numpy(np.asarray(X, dtype=np.float64))).numpy()
        return filtered
