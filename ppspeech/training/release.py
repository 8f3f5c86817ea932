"""A trained model into a bundle: only what may leave the building, with a statement of what it promises."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ppspeech.bundle import (
    METRIC,
    Bundle,
    BundleConfig,
    DataTouch,
    PrivacyStatement,
    Topic,
    Use,
    WeightsSettings,
    write_bundle,
)
from ppspeech.errors import BundleError, ModelError
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant, NonPrivateEvent, Relation
from ppspeech.storage import atomic_write
from ppspeech.training.module import KEY, SpeechModule, Trained
from ppspeech.training.private import PrivacyHook
from ppspeech.training.private.record import KEY as PRIVACY
from ppspeech.training.private.record import PrivacyRecord

MEASURED = "measured"  # where a checkpoint says how well it did
AUDITED = "audited"  # where it says what an audit of its recipe found
KEPT = "measured on held-out people when it was trained, and not released: no guarantee would cover it"
NOT_PRIVATE = "trained without differential privacy; the weights may reveal the training data"


def load_checkpoint(path: str | Path, use: Use | None = None) -> Trained:
    """Load a training checkpoint for use; nothing is unpickled, and only registered kinds of models are built.

    A checkpoint holds private data's traces: it is not for release. The model is in evaluation mode, on the CPU. Raises
    ModelError if the file is missing, damaged, not a checkpoint of this package, or of another use; PrivacyError for a
    damaged privacy record.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"no checkpoint at {path}")
    try:
        checkpoint: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        weights = checkpoint["state_dict"]
        told = checkpoint.get(KEY)
        if told is not None:
            config = BundleConfig.from_json(told["config"])
            touches = tuple(DataTouch(**touch) for touch in told["touches"])
            weights = {k.removeprefix(f"{KEY}."): v for k, v in weights.items() if k.startswith(f"{KEY}.")}
        measured, audited = (
            tuple(Figure(**figure) for figure in checkpoint.get(key, ())) for key in (MEASURED, AUDITED)
        )
    except Exception as damaged:
        raise ModelError(
            f"{path} is not a checkpoint of ppspeech, nor one of tensors and plain values alone: "
            f"{type(damaged).__name__}. A module of your own is released by `ppspeech.training.release(module, folder)`"
        ) from None
    if told is None:  # of a module that is not ours: its tensors are all there is to know
        config, touches = BundleConfig(WeightsSettings.of("module", weights), (), None), ()
    if use is not None and use not in config.kind.uses:
        raise ModelError(f"{path} holds a {config.type}, which can {_uses(config)}: it cannot {use}")
    model = config.build()
    try:
        model.load_state_dict(weights)
    except RuntimeError as damaged:
        raise ModelError(f"{path} does not fit a {config.type}: {damaged}") from None
    record = PrivacyRecord.from_plain(checkpoint[PRIVACY]) if PRIVACY in checkpoint else None
    return Trained(model.eval(), config, touches, record, measured, audited)


def _uses(config: BundleConfig) -> str:
    return ", ".join(config.kind.uses) or "be loaded into the module it is of, and no more"


def note_measured(path: str | Path, figures: Sequence[Figure]) -> None:
    """Enter into a checkpoint how well it did; a figure that a bundle could not state is left out."""
    _note(path, MEASURED, figures)


def note_audited(path: str | Path, figures: Sequence[Figure]) -> None:
    """Enter what an audit of the recipe found. It heard canaries and public speech alone: a bundle always states it."""
    _note(path, AUDITED, figures)


def _note(path: str | Path, key: str, figures: Sequence[Figure]) -> None:
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    stated = [figure for figure in figures if math.isfinite(figure.value) and METRIC.fullmatch(figure.metric)]
    checkpoint[key] = [asdict(figure) for figure in stated]
    with atomic_write(Path(path)) as temporary:
        torch.save(checkpoint, temporary)


def export_checkpoint(
    checkpoint: str | Path,
    folder: str | Path,
    *,
    not_private: bool = False,
    metrics: Sequence[Figure] = (),
    state_test: bool = False,
    admit: Callable[[Bundle], object] | None = None,
) -> Bundle:
    """Write the bundle of a checkpoint; arguments and errors as those of `release` and `load_checkpoint`.

    What training measured on held-out people is stated where nothing is promised anyway. A private model states it only
    with `state_test`: exact results on people's speech are a release of their own, which no guarantee covers.
    """
    trained = load_checkpoint(checkpoint)
    measured = trained.measured if not_private or state_test else ()
    if trained.measured and not measured:
        kept = DataTouch("metrics", "untouched", KEPT)
        trained = replace(trained, touches=(*trained.touches, kept))
    told: dict[str, Any] = {"metrics": (*metrics, *measured), "name": str(checkpoint), "admit": admit}
    return release(trained, folder, not_private=not_private, **told)


def release(
    trained: nn.Module | Trained,
    folder: str | Path,
    *,
    record: PrivacyRecord | None = None,
    not_private: bool = False,
    metrics: Sequence[Figure] = (),
    name: str = "the model",
    admit: Callable[[Bundle], object] | None = None,
) -> Bundle:
    """Write the bundle of a trained model.

    `trained` is a recipe's module after fitting, which knows the hook it was fitted with; or any module: the bundle
    then holds its tensors, for `load_bundle(folder).load_into(module)`; or a model with its config. `record` is what
    training spent, where `trained` does not hold it itself; `admit` is asked before it is there, as by `write_bundle`.
    Raises BundleError if the run was not private and `not_private` is not given, or the other way round; or for what a
    bundle refuses.
    """
    if isinstance(trained, SpeechModule):
        trained = replace(trained.trained(), record=_spent(trained))
    elif isinstance(trained, nn.Module):
        config = BundleConfig(WeightsSettings.of(type(trained).__name__, trained.state_dict()), (), None)
        touches = trained.touches() if hasattr(trained, "touches") else ()  # type: ignore[operator]
        trained = Trained(trained, config, touches, _spent(trained))
    record = record if record is not None else trained.record
    if record is not None and not record.guarantee().proven:
        reason = record.guarantee().caveat
        if not not_private:
            raise BundleError(
                f"{name} was trained with events that prove nothing ({reason}): export it with --not-private, which "
                "states that there is no guarantee, or train it with a sound mechanism"
            )
    elif record is not None and not_private:
        raise BundleError(
            f"{name} has a guarantee ({record.guarantee()}): leave --not-private out, so that it is stated"
        )
    elif record is None and not not_private:
        raise BundleError(
            f"{name} has no privacy record: it was trained without differential privacy. Export it with --not-private, "
            "which states in the bundle that it gives no guarantee"
        )
    trained = _with_cohort(trained, not_private)
    account = record.account if record is not None else _plain_account()
    return write_bundle(
        folder,
        model=trained.model,
        config=trained.config,
        statement=_statement(record, account, trained, bool(metrics)),
        account=account,
        metrics=(*metrics, *trained.audited),
        admit=admit,
    )


def _spent(module: nn.Module) -> PrivacyRecord | None:
    """The record of the privacy hook that a module was fitted with."""
    try:
        callbacks: Any = module.trainer.callbacks  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # not Lightning's, or never fitted
        return None
    hooks = [hook for hook in callbacks if isinstance(hook, PrivacyHook)]
    return hooks[0].record() if hooks and hooks[0].spent else None


def _with_cohort(trained: Trained, not_private: bool) -> Trained:
    """Say whose voices leave with the model. Raises BundleError for those of people to whom something is promised."""
    settings = trained.config.settings
    if not hasattr(settings, "cohort"):
        return trained
    cohort = settings.cohort
    touch = DataTouch("threshold", "untouched", "none is released: decide with a cohort of your own")
    if cohort is not None and cohort.source != "public":
        if not not_private:
            raise BundleError(f"the cohort is {cohort}, whose voices would leave: train with cohort public or none")
        touch = DataTouch("threshold", "not_covered", f"the voices of {cohort} are in the bundle, to set thresholds by")
    elif cohort is not None:
        touch = DataTouch("threshold", "untouched", f"set among {cohort}: public speech")
    return replace(trained, touches=(*trained.touches, touch))


def _plain_account() -> Accountant:
    account = Accountant(Relation("speaker", "add_remove"))
    account.compose(NonPrivateEvent(NOT_PRIVATE, Relation("speaker", "add_remove")))
    return account


def _statement(record: PrivacyRecord | None, account: Accountant, trained: Trained, measured: bool) -> PrivacyStatement:
    guarantee = record.guarantee() if record is not None else account.guarantee(0.0)
    of_people = getattr(trained.config.settings, "label", None) == "speaker"
    if guarantee.proven and of_people and guarantee.unit in {"speaker", "party"}:
        raise BundleError(
            "the labels of this model are the speakers themselves: no guarantee for a whole speaker can hold for it. "
            "Train it with unit utterance"
        )
    return PrivacyStatement.of(
        account,
        trained.config,
        _touches(record, trained, measured),
        delta=guarantee.delta,
        assumptions=guarantee.assumptions,
        caveats=record.caveats if record is not None else (),
    )


def _touches(record: PrivacyRecord | None, trained: Trained, measured: bool) -> tuple[DataTouch, ...]:
    """What the run says goes before what the recipe says; whatever nobody mentions is not covered."""
    found: dict[Topic, DataTouch] = {}
    for touch in (*(record.touches if record is not None else ()), *trained.touches):
        found.setdefault(touch.topic, touch)
    if trained.config.mfcc is not None and trained.config.mfcc.cmvn == "utterance":
        note = "each utterance is normalized by its own mean and variance"
        found.setdefault("normalization", DataTouch("normalization", "untouched", note))
    listed = DataTouch("labels", "not_covered", "the list of labels is released as it is")
    found.setdefault("labels", listed if trained.config.labels else DataTouch("labels", "untouched", "there are none"))
    if measured:
        found.setdefault("metrics", DataTouch("metrics", "not_covered", "the figures are exact results on test data"))
    return tuple(found.values())
