"""What parties who train together agree on in advance, and what all of them hold at the end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from ppspeech.bundle import BundleConfig, DataTouch, LargeMarginTableSettings, LinearTableSettings
from ppspeech.errors import PrivacyError, RangeError
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression, TableClassifier
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss
from ppspeech.privacy import Guarantee, Relation, Unit, check_positive, check_single_rows
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.privacy.gradients import unit_index
from ppspeech.protocols.sums import WholeSum
from ppspeech.training.private.objective import ConvexModule, fit_privately, theta_shape

ModelName = Literal["logistic", "softmax", "huber_svm", "large_margin"]


@dataclass(frozen=True, eq=False)
class JointFit:
    """What training together gave; the same for every party.

    `account`: every sum that was released, to be composed with others on the same data. `theta`: the released
    parameters of a convex model, `(heads, features)`, before any projection. `own`: those that stay with this party
    alone; nothing protects its records in them.
    """

    module: nn.Module
    guarantee: Guarantee
    account: Accountant = field(repr=False)
    theta: Tensor = field(repr=False, default_factory=lambda: torch.empty(0))
    own: Tensor | None = field(repr=False, default=None)


class JointTerms(Protocol):
    """The public terms of one way to train together: a frozen dataclass of plain values, the same for all parties."""

    @property
    def rounds(self) -> int:
        """How many sums."""

    @property
    def dimension(self) -> int:
        """How many numbers every sum has."""

    def check(self, parties: int) -> None:
        """Refuse another number of parties than the terms are for."""

    def examine(self, place: int, *inputs: Any) -> None:
        """Refuse our own data where they do not fit, before anyone is met; `place`: our number among the parties."""

    def fit(self, add_up: WholeSum, parties: int, place: int, *inputs: Any) -> JointFit:
        """One party's training, from its private inputs as JSON can hold them."""

    def config(self) -> BundleConfig:
        """The public choices of the released model."""

    def released(self, module: nn.Module) -> nn.Module:
        """The model with the tensors that a bundle of `config` holds."""

    @property
    def begun(self) -> DataTouch:
        """Where the first parameters come from."""


@dataclass(frozen=True, kw_only=True)
class TableTerms:
    """What all terms about rows of a table have in common; chosen without looking at the data.

    `radius`: examples are clipped to this norm, after rows are divided by `scale`, a public number. `delta`: 0 for pure
    privacy, with Polya noise. `unit`: `record`, which a row is; or `utterance` or `speaker`, and then every party says
    whose each of its rows is: an utterance has one row, a speaker counts once, as the average over rows. `colluders`:
    how many parties may share what they know. `constant`: the last element of every example; 0 leaves the intercept
    out. `width`: h of the hinge of `huber_svm` and `large_margin`. `columns` and `labels`: names; numbers by default.
    """

    begun: ClassVar[DataTouch] = DataTouch("initialization", "untouched", "all begin at zero, or solve for a minimum")
    units: ClassVar[tuple[str, ...]] = ("record", "utterance", "speaker")

    model: ModelName
    features: int
    classes: int
    radius: float
    epsilon: float
    delta: float = 1e-5
    unit: Unit = "record"
    colluders: int = 1
    constant: float = 1.0
    width: float = 0.5
    scale: float = 1.0
    columns: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "labels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("epsilon", "radius", "scale"):
            check_positive(name, getattr(self, name))
        for name, texts, wanted in (("columns", self.columns, self.features), ("labels", self.labels, self.classes)):
            if texts and len(texts) != wanted:
                raise PrivacyError(f"{wanted} {name} need as many names, or none at all, got {len(texts)}")
        if self.unit not in self.units:
            raise PrivacyError(f"one {' or '.join(self.units)} can be protected here, got unit {self.unit!r}")
        self.build()

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        heads, features = theta_shape(self.build())
        return heads * features

    def build(self) -> ConvexModule:
        """The untrained model, in double precision."""
        linear: dict[str, Any] = {"radius": self.radius, "constant": self.constant, "dtype": torch.double}
        if self.model in ("logistic", "huber_svm") and self.classes != 2:
            raise PrivacyError(f"{self.model} tells two classes apart, got {self.classes}: use softmax")
        if self.model == "logistic":
            return LogisticRegression(self.features, **linear)
        if self.model == "softmax":
            return SoftmaxRegression(self.features, self.classes, **linear)
        if self.model == "huber_svm":
            return HuberSvm(self.features, self.width, **linear)
        if self.model == "large_margin":
            loss = MarginLoss(width=self.width)
            return LargeMarginGaussians(self.classes, self.features, loss=loss, psd="projection", **linear)
        raise PrivacyError(f"model must be logistic, softmax, huber_svm or large_margin, got {self.model!r}")

    def examine(self, place: int, *inputs: Any) -> None:  # noqa: ARG002
        """Refuse rows that do not fit, or are not tied to the unit."""
        rows, *groups = inputs
        self.tied(self.read(rows)[0], *map(torch.as_tensor, groups))

    def tied(self, x: Tensor, groups: Tensor | None = None) -> int:
        """How many units examples `(n, features)` are of. Raises PrivacyError if they are not tied to the unit."""
        check_single_rows(self.unit, len(x), groups)
        return len(x) if groups is None else unit_index(groups)[1]

    def read(self, rows: Sequence[Sequence[float]]) -> tuple[Tensor, Tensor]:
        """Examples `(n, features)`, scaled, and classes `(n,)` from finite rows whose last number is the class."""
        try:
            given = torch.as_tensor(rows, dtype=torch.double)
        except (TypeError, ValueError):
            raise RangeError(f"rows are lists of {self.features} numbers and a class each, all as long") from None
        if given.ndim != 2 or given.shape[1] != self.features + 1 or not bool(given.isfinite().all()):
            raise RangeError(
                f"rows are {self.features} finite numbers and a whole class each, got shape {tuple(given.shape)}"
            )
        y = given[:, -1]
        if not bool(((y == y.round()) & (y >= 0) & (y < self.classes)).all()):
            raise RangeError(f"the last number of every row is its class, 0 to {self.classes - 1}")
        return given[:, :-1] / self.scale, y.long()

    def fit_alone(self, rows: Sequence[Sequence[float]]) -> ConvexModule:
        """What one party who holds all rows would release with the same epsilon and delta: noise in the objective."""
        module = self.build()
        hook = ObjectivePerturbation(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=Relation("record", "add_remove"),
            regularization=1.0,
            norm=math.sqrt(self.dimension) / 2,
        )
        fit_privately(module, *self.read(rows), hook)
        return module

    def config(self) -> BundleConfig:
        """The public choices of the released model."""
        module = self.build()
        large = isinstance(module, LargeMarginGaussians)
        settings = LargeMarginTableSettings.of(module) if large else LinearTableSettings.of(module)  # type: ignore[arg-type]
        labels = self.labels or tuple(str(number) for number in range(self.classes))
        columns = self.columns or tuple(f"column {number}" for number in range(self.features))
        return BundleConfig(settings, labels, None, columns)

    def released(self, module: nn.Module) -> nn.Module:
        """The model as a classifier of rows as they come, in single precision."""
        classifier = TableClassifier(module.float())  # type: ignore[arg-type]
        classifier.std.fill_(self.scale)
        return classifier
