"""One hook that makes any recipe private, from one block of its YAML file.

    privacy: {unit: speaker, adjacency: add_remove, epsilon: 4, delta: 1.0e-5}

A recipe's module stays what it is; what it exposes decides how it is protected: per-utterance statistics and an M-step
(word models by Baum-Welch, a background model), a convex objective that is solved once (the classifier), or a
`training_step` (word models by gradients, and any LightningModule of your own).
"""

import math
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import EarlyStopping
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch import Tensor

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import MOST_DELTA, Adjacency, Guarantee, Relation, Unit, check_positive, check_probability
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.gradients import GradientPlan, noise_multiplier_for
from ppspeech.privacy.mechanisms import StatisticsRelease
from ppspeech.ranks import Ranks
from ppspeech.training.module import SpeechModule, check_strategy
from ppspeech.training.private.gradients import GradientPrivacy
from ppspeech.training.private.objective import ObjectivePrivacy
from ppspeech.training.private.observed import (
    TUNING,
    beginnings,
    check_exact,
    check_public,
    check_whole,
    stopping,
    watchers,
)
from ppspeech.training.private.record import PrivacyRecord
from ppspeech.training.private.shifts import ShiftPrivacy
from ppspeech.training.private.statistics import StatisticsPrivacy
from ppspeech.training.words import WordModels

SETTINGS = {
    "statistics": ("transition_share", "emission_norm", "transition_norm"),
    "gradients": (
        "noise_multiplier",
        "sampling",
        "expected_units",
        "public_start",
        "clip",
        "automatic",
        "most",
        "chunk",
    ),
    "objective": ("norm",),
    "shifts": (),
}
"""What belongs to one way of training only."""

FITTED: "WeakKeyDictionary[lightning.LightningModule, object]" = WeakKeyDictionary()
"""Modules that were trained privately, and a mark of the hook whose account has it."""


class Way(Protocol):
    """How one kind of training is made private: attach, account, record."""

    spent: int
    """Releases made so far."""

    @property
    def planned(self) -> int:
        """Releases that the run was to make, fixed in advance."""

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on; plain values."""

    @property
    def touches(self) -> tuple[DataTouch, ...]:
        """Where the run looks, or does not look, at private data outside its releases."""

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Take part in a fit, or refuse it."""

    def after_backward(self) -> None:
        """After each backward pass of automatic optimization."""

    def finish(self, module: lightning.LightningModule) -> None:
        """When the fit is over."""

    def account(self) -> Accountant:
        """The releases so far, as events."""

    def guarantee(self) -> Guarantee:
        """What they promise."""


class PrivacyHook(lightning.Callback):
    """Makes the fit of a recipe's module differentially private, and its checkpoints say what was spent.

    Formal guarantee: that of the way it picks, `StatisticsPrivacy`, `GradientPrivacy` or `ObjectivePrivacy`. None of
    them covers what is tried on private data before or after: other settings, validation, tests.

    Args:
        epsilon: spend this over the whole run. By gradients, `noise_multiplier` may be given in its place.
        delta: where the guarantee is stated; 0 for pure privacy, which only a convex objective has.
        unit: one `utterance`, or one `speaker` with all utterances; by gradients also one `record` of any data set.
        adjacency: what neighboring means.
        transition_share: by statistics: see `StatisticsRelease`, as for the next two. Word models for whole speakers
            are trained by people's shifts (`ShiftPrivacy`) where none of these is given.
        emission_norm: by statistics.
        transition_norm: by statistics.
        noise_multiplier: by gradients: z; what it costs is told by `guarantee`.
        sampling: by gradients: q, the probability with which a unit joins a step; 0.1 unless given.
        expected_units: by gradients, needed: how many units join a step, about q times their number as the public
            knows it. The noisy sum is divided by it; the data's own number would tell whether one more is there.
        public_start: by gradients: where the parameters come from, in words that the statement quotes ("drawn at
            random", "trained on the built-in voices"); recipes that start from public speech say it themselves.
        clip: by gradients: C, the largest norm of a unit's gradient; 1 unless given.
        automatic: by gradients: whether all gradients are brought near that norm, short ones too.
        most: by gradients: utterances of a unit in one step; all unless given.
        chunk: by gradients: utterances whose gradients are computed at once; all unless given.
        norm: by a convex objective: a public guess of the length of the weights.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-5,
        unit: Unit = "utterance",
        adjacency: Adjacency = "add_remove",
        transition_share: float | None = None,
        emission_norm: float | None = None,
        transition_norm: float | None = None,
        noise_multiplier: float | None = None,
        sampling: float | None = None,
        expected_units: float | None = None,
        public_start: str | None = None,
        clip: float | None = None,
        automatic: bool | None = None,
        most: int | None = None,
        chunk: int | None = None,
        norm: float | None = None,
    ) -> None:
        super().__init__()
        if (epsilon is None) == (noise_multiplier is None):
            raise PrivacyError("give epsilon, from which the noise follows, or noise_multiplier: one of the two")
        if epsilon is not None:
            check_positive("epsilon", epsilon)
        if not check_probability("delta", delta, zero=True) <= MOST_DELTA:
            raise PrivacyError(f"delta must be at most {MOST_DELTA:g}, far below one over the people, got {delta}")
        self.relation = Relation(unit, adjacency)
        if unit not in ("utterance", "speaker", "record"):
            raise PrivacyError(f"training protects one utterance, one speaker or one record, got unit {unit!r}")
        self.epsilon, self.delta = epsilon, delta
        given = locals()
        self.settings = {name: given[name] for names in SETTINGS.values() for name in names if given[name] is not None}
        for name in ("noise_multiplier", "expected_units", "clip", "emission_norm", "transition_norm", "norm"):
            if name in self.settings:
                check_positive(name, self.settings[name])
        if sampling is not None:
            check_probability("sampling", sampling, one=True)
        self.way: Way | None = None
        self._watched: tuple[str, ...] = ()
        self._begun: tuple[DataTouch, ...] = ()
        self._mark = object()
        self._last: tuple[lightning.Trainer, int] | None = None
        self._restored: int | None = None
        self._heard: Tensor | None = None

    @property
    def spent(self) -> int:
        """Releases made so far."""
        return 0 if self.way is None else self.way.spent

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Pick the way that fits the module, and attach it, or refuse the module or the run."""
        if stage != "fit":
            return
        check_strategy(trainer)
        check_exact(trainer, pl_module)
        data = getattr(trainer, "datamodule", None)
        refused: str = getattr(pl_module, "refuses_privacy", "") or getattr(data, "refuses_privacy", "")
        if refused:
            raise PrivacyError(f"{type(pl_module).__name__} cannot be trained privately: {refused}")
        kind = self._kind(pl_module)
        strange = sorted(set(self.settings) - set(SETTINGS[kind]))
        if strange:
            raise PrivacyError(
                f"{type(pl_module).__name__} is made private by its {kind}, where {', '.join(strange)} mean nothing: "
                f"leave them out; there are {', '.join(SETTINGS[kind])}"
            )
        if kind != "gradients" and self.relation.unit == "record":
            raise PrivacyError(
                f"{type(pl_module).__name__} learns from utterances: protect one utterance or one speaker"
            )
        if kind != "objective" and getattr(pl_module, "public_start", True) is False:
            raise PrivacyError(
                f"{type(pl_module).__name__} finds its starting point in the training data: set its `start` to public"
            )
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, EarlyStopping) and str(callback.monitor).startswith("train"):
                raise PrivacyError(
                    f"EarlyStopping watches {callback.monitor}, which private training tells nobody: leave it out of "
                    "trainer.callbacks"
                )
        epochs = trainer.max_epochs
        if epochs is None or epochs < 1:
            raise PrivacyError("cannot train privately: no end: set trainer.max_epochs")
        if FITTED.get(pl_module, self._mark) is not self._mark:
            raise PrivacyError(
                f"{type(pl_module).__name__} was trained privately before, with another hook: go on with that one, "
                "whose account has it, or from its checkpoint"
            )
        before, self.way = self.state_dict(), self._made(kind, epochs, pl_module)
        self.load_state_dict(before)  # another fit with this hook goes on with its account
        self._restored = None
        self.way.attach(trainer, pl_module)

    def _kind(self, module: lightning.LightningModule) -> str:
        """By what a module exposes; word models for whole speakers by shifts, unless bounds of statistics are given."""
        kind, people = kind_of(module), Relation("speaker", "add_remove")
        by_shifts = isinstance(module, WordModels) and self.relation == people and not self.settings
        return "shifts" if kind == "statistics" and by_shifts else kind

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """See who watches; refuse a public start that is not, and to go on from steps that no account has: those of a
        checkpoint that was trained without privacy. The module's own start comes after.
        """
        check_public(trainer, pl_module)
        self._watched = tuple(dict.fromkeys((*self._watched, *watchers(trainer, self))))
        said = self.settings.get("public_start")
        self._begun = beginnings(pl_module, convex=isinstance(self.way, ObjectivePrivacy), said=said)
        known = 0
        if self._restored is not None:
            known = self._restored
        elif self._last is not None and self._last[0] is trainer:
            known = self._last[1]
        if trainer.global_step != known:
            raise PrivacyError(
                f"{trainer.global_step} steps were made before, of which the account has {known}: start anew, or from "
                "a checkpoint of private training"
            )
        FITTED[pl_module] = self._mark
        self._heard = None

    def on_train_batch_start(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        """Before a release of sums: see that they are of everybody, once.

        Which utterances are in a part of an epoch depends on how many there are: one more would change that of others.
        """
        if isinstance(self.way, GradientPrivacy) or not isinstance(pl_module, SpeechModule):
            return
        if self._heard is None:
            utterances = len(trainer.datamodule.parts["train"])  # type: ignore[attr-defined]
            self._heard = torch.zeros(utterances, dtype=torch.int64, device=pl_module.device)
        if len(batch["lengths"]):
            self._heard.index_add_(0, batch["index"], torch.ones_like(batch["index"]))
        if trainer.is_last_batch:
            heard, self._heard = self._heard, None
            check_whole(Ranks.of(trainer).added(heard))

    def _made(self, kind: str, epochs: int, module: lightning.LightningModule) -> Way:
        settings = dict(self.settings)
        if kind == "gradients":
            chunk, sampling = settings.pop("chunk", None), settings.pop("sampling", 0.1)
            start = settings.pop("public_start", None) or ", ".join(getattr(module, "public", ()))
            expected, unit = settings.pop("expected_units", None), self.relation.unit
            if not start:
                raise PrivacyError(
                    f"nobody can see where the parameters of {type(module).__name__} come from: say it in "
                    'public_start, such as "drawn at random", or by which public data they were trained'
                )
            if expected is None:
                raise PrivacyError(
                    f"expected_units is missing: how many {unit}s join a step, about {sampling:g} times their number "
                    "as the public knows it (the data's own number would tell whether one more is there)"
                )
            if self.relation.adjacency != "add_remove":
                raise PrivacyError("private gradients are for adjacency add_remove: units join by their own coin")
            if "noise_multiplier" not in settings:
                assert self.epsilon is not None
                steps = epochs * math.ceil(1 / sampling)
                settings["noise_multiplier"] = noise_multiplier_for(
                    self.epsilon, self.delta, sampling=sampling, steps=steps, relation=self.relation
                )
            plan = GradientPlan(
                relation=self.relation, sampling=sampling, delta=self.delta, clip=settings.pop("clip", 1.0), **settings
            )
            return GradientPrivacy(plan, expected, start, chunk, epochs)
        assert self.epsilon is not None
        if kind == "objective":
            return ObjectivePrivacy(self.relation, self.epsilon, self.delta, **settings)
        if kind == "shifts":
            return ShiftPrivacy(self.epsilon, self.delta, epochs, self.relation)
        return StatisticsPrivacy(StatisticsRelease(self.epsilon, self.delta, epochs, self.relation, **settings))

    def on_after_backward(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Let the way have its gradients."""
        if self.way is not None:
            self.way.after_backward()

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """The fit is over."""
        self._last = (trainer, trainer.global_step)
        if self.way is not None:
            self.way.finish(pl_module)

    def on_exception(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        exception: BaseException,  # noqa: ARG002
    ) -> None:
        """So it is where it failed: the module and the data are as they were."""
        with suppress(PrivacyError):
            self.on_train_end(trainer, pl_module)

    def account(self) -> Accountant:
        """The releases so far, as events."""
        return Accountant(self.relation) if self.way is None else self.way.account()

    def guarantee(self) -> Guarantee:
        """What the releases so far promise together."""
        return self.account().guarantee(self.delta) if self.way is None else self.way.guarantee()

    def record(self) -> PrivacyRecord:
        """What was spent, as a checkpoint and a bundle tell it."""
        return PrivacyRecord.of(self.account(), self.guarantee(), self.touches())

    def touches(self) -> tuple[DataTouch, ...]:
        """Where the run looked, or was seen not to look, at private data outside its releases."""
        if self.way is None:
            return ()
        ended = stopping(self._watched, self.way.spent, self.way.planned)
        return (ended, TUNING, *self._begun, *self.way.touches)

    def on_save_checkpoint(
        self,
        trainer: lightning.Trainer,  # noqa: ARG002
        pl_module: lightning.LightningModule,  # noqa: ARG002
        checkpoint: dict[str, Any],
    ) -> None:
        """Put the record of what was spent beside the parameters; plain values only."""
        if self.way is not None:
            self.record().write_(checkpoint)

    def state_dict(self) -> dict[str, Any]:
        """The terms of the run and what is spent, for a checkpoint: no noise, no generator."""
        if self.way is None:
            return {}
        return {"terms": self.way.terms, "spent": self.way.spent, "watched": list(self._watched)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with an account. Raises PrivacyError if the terms differ from those of the releases already made."""
        if self.way is None or not state:
            return
        before, now = state["terms"], self.way.terms
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if changed:
            differing = ", ".join(f"{name} {before.get(name)} (now {now.get(name)})" for name in changed)
            raise PrivacyError(f"what is spent was spent with {differing}: go on with the same settings")
        self.way.spent = self._restored = state["spent"]
        self._watched = tuple(dict.fromkeys((*self._watched, *state.get("watched", ()))))


def kind_of(module: lightning.LightningModule) -> str:
    """How a module can be made private, by what it exposes: `statistics`, `gradients` or `objective`."""
    if hasattr(module, "private_fit") and not module.automatic_optimization:
        return "objective"
    if hasattr(module, "statistics_hook") and not module.automatic_optimization:
        return "statistics"
    is_own = not isinstance(module, SpeechModule) and is_overridden("training_step", module)
    if (is_own or callable(getattr(module, "losses", None))) and module.automatic_optimization:
        return "gradients"
    raise PrivacyError(
        f"{type(module).__name__} exposes nothing that can be made private: per-utterance statistics with an M-step, "
        "a `training_step` under automatic optimization, or a convex objective (LargeMarginClassifier with solver "
        "'newton')"
    )
