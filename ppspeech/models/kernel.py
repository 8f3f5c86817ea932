"""A classifier with a Gaussian kernel whose features are few, public and of norm 1 (Rahimi and Recht 2007).

    phi(x) = m^-1/2 (cos w_1'x, sin w_1'x, ..., cos w_m'x, sin w_m'x),    <phi(x), phi(y)> ~ exp(-|x - y|^2 / 2 width^2)

with frequencies w_j of N(0, 1 / width^2 I), d at a time at right angles (Yu et al. 2016). |phi(x)| = 1 whatever x is,
so that no input needs a clip, and a linear model of phi is trained privately as any other is. The model holds
frequencies, drawn without data, and weights: unlike a kernel machine's dual, which is a list of people
(`evidence/published/kernel.py`). Proposition 1.36 in docs/theory/release.md.
"""

import math

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.linear import LogisticRegression, SoftmaxRegression


class KernelClassifier(nn.Module):
    """Logistic (two classes) or softmax regression on random Fourier features.

    Args:
        features: d, of an input.
        classes: two or more.
        pairs: m, of cosines and sines.
        width: of the kernel, in the inputs' own units; public, as the frequencies are.
        constant: of the intercept.
        seed: of the frequencies; a public number, so that everyone draws the same. None leaves them 0, to be loaded.
    """

    frequencies: Tensor

    def __init__(
        self,
        features: int,
        classes: int,
        pairs: int,
        width: float = 1.0,
        constant: float = 1.0,
        seed: int | None = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if features < 1 or pairs < 1 or not width > 0:
            raise ModelError(f"need features, pairs >= 1 and width > 0, got {features}, {pairs} and {width}")
        self.classes = classes
        drawn = torch.zeros(pairs, features) if seed is None else orthogonal_frequencies(pairs, features, width, seed)
        self.register_buffer("frequencies", drawn.to(dtype))
        self.linear: LogisticRegression | SoftmaxRegression = (
            LogisticRegression(2 * pairs, 1.0, constant, dtype)
            if classes == 2
            else SoftmaxRegression(2 * pairs, classes, 1.0, constant, dtype)
        )

    @property
    def columns(self) -> int:
        """d, of an input."""
        return self.frequencies.shape[1]

    def embed(self, x: Tensor) -> Tensor:
        """phi of inputs `(..., d)`: `(..., 2 m)`, of norm 1."""
        angles = x @ self.frequencies.to(x.dtype).mT
        return torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(len(self.frequencies))

    def scores(self, x: Tensor) -> Tensor:
        """Class scores `(..., classes)`, the higher the better."""
        return self.linear.scores(self.embed(x))

    forward = scores

    def predict(self, x: Tensor) -> Tensor:
        """The class of each input, `(...)`."""
        return self.scores(x).argmax(-1)


def orthogonal_frequencies(pairs: int, features: int, width: float, seed: int) -> Tensor:
    """`(pairs, features)`: random rotations, each row as long as a Gaussian vector would be, over the width."""
    generator = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(features, features, generator=generator, dtype=torch.double)

    blocks = [torch.linalg.qr(normal()).Q * normal().norm(dim=1, keepdim=True) for _ in range(-(-pairs // features))]
    return torch.cat(blocks)[:pairs] / width
