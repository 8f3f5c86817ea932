"""Models of rows of a table: linear, kernel and large-margin classifiers, with the public scale of the columns."""

from dataclasses import dataclass
from typing import Literal

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models import HuberSvm, KernelClassifier, LogisticRegression, SoftmaxRegression, TableClassifier
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss

Loss = Literal["logistic", "softmax", "huber"]


@model_type("linear_table", "classify")
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTableSettings:
    """A linear classifier of rows: `TableClassifier` around the module; rows are clipped to `radius` after scaling."""

    loss: Loss
    radius: float | None
    constant: float
    width: float | None = None

    def __post_init__(self) -> None:
        if (self.loss == "huber") != (self.width is not None):
            raise BundleError(f"width belongs to the huber loss and only to it, got {self.width} for {self.loss}")

    @classmethod
    def of(cls, model: LogisticRegression | SoftmaxRegression | HuberSvm) -> "LinearTableSettings":
        """The settings of a module in hand."""
        public = {"radius": _number(model.radius), "constant": float(model.constant)}
        if isinstance(model, HuberSvm):
            return cls(loss="huber", width=float(model.width), **public)  # type: ignore[arg-type]
        return cls(loss="logistic" if isinstance(model, LogisticRegression) else "softmax", **public)  # type: ignore[arg-type]

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Tells which of {len(labels)} classes a row of a table belongs to, by a linear {self.loss} model."

    def build(self, labels: tuple[str, ...], features: int) -> TableClassifier:
        """The classifier: rows `(..., columns)` to scores `(..., classes)`."""
        if self.loss == "softmax":
            return TableClassifier(SoftmaxRegression(features, len(labels), self.radius, self.constant))
        if len(labels) != 2:
            raise BundleError(f"a {self.loss} model tells two classes apart, got {len(labels)} labels")
        if self.width is not None:
            return TableClassifier(HuberSvm(features, self.width, self.radius, self.constant))
        return TableClassifier(LogisticRegression(features, self.radius, self.constant))


@model_type("large_margin_table", "classify")
@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMarginTableSettings:
    """Large-margin Gaussians, or mixtures of them, on rows: `TableClassifier` around the module that was trained."""

    components: int
    width: float
    radius: float | None
    constant: float

    @classmethod
    def of(cls, model: LargeMarginGaussians) -> "LargeMarginTableSettings":
        """The settings of a module in hand. Raises BundleError for a factorized module, whose tensors are others."""
        if model.psd == "factorization":
            raise BundleError("a factorized large-margin model is not released: train it with psd 'projection'")
        return cls(
            components=model.components,
            width=float(model.margin.width),
            radius=_number(model.radius),
            constant=float(model.constant),
        )

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Tells which of {len(labels)} classes a row of a table belongs to, by large-margin Gaussians."

    def build(self, labels: tuple[str, ...], features: int) -> TableClassifier:
        """The classifier: rows `(..., columns)` to scores `(..., classes)`."""
        loss = MarginLoss(width=self.width)
        model = LargeMarginGaussians(
            len(labels), features, self.components, loss, "projection", self.radius, self.constant
        )
        return TableClassifier(model)


@model_type("kernel_table", "classify")
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTableSettings:
    """A classifier with a Gaussian kernel on rows: `TableClassifier` around random Fourier features, which it holds."""

    pairs: int
    constant: float

    @classmethod
    def of(cls, model: KernelClassifier) -> "KernelTableSettings":
        """The settings of a module in hand."""
        return cls(pairs=len(model.frequencies), constant=float(model.linear.constant))

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Tells which of {len(labels)} classes a row of a table belongs to, by a Gaussian kernel."

    def build(self, labels: tuple[str, ...], features: int) -> TableClassifier:
        """The classifier: rows `(..., columns)` to scores `(..., classes)`."""
        return TableClassifier(KernelClassifier(features, len(labels), self.pairs, constant=self.constant, seed=None))


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
