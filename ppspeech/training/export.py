"""A training checkpoint into a bundle: only what may leave the building, with a statement of what it promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path

import pytorch_lightning as lightning
import torch
from torch import nn

from ppspeech.bundle import (
    REQUIRED,
    Bundle,
    BundleConfig,
    DataTouch,
    KeywordHmmSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    PrivacyStatement,
    SpeakerUbmSettings,
    Topic,
    write_bundle,
)
from ppspeech.data import public_scale
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.models import UtteranceClassifier
from ppspeech.models.hmm import GaussianEmission
from ppspeech.privacy import Accountant, NonPrivateEvent, Relation
from ppspeech.training.checkpoint import KINDS, load_checkpoint
from ppspeech.training.classifier import LargeMarginClassifier
from ppspeech.training.keyword import KeywordHmm
from ppspeech.training.large_margin_keyword import LargeMarginKeyword
from ppspeech.training.private.record import KEY, PrivacyRecord
from ppspeech.training.speakers import SpeakerUbm

NO_THRESHOLD = DataTouch("threshold", "untouched", "the model has none: the highest score wins")
NOT_PRIVATE = "trained without differential privacy; the weights may reveal the training data"


@dataclass(frozen=True)
class Released:
    """What of a trained module goes into a bundle.

    Attributes:
        model: the module whose tensors are released.
        config: the public choices.
        touches: data touches that are in the nature of the recipe.
        names_speakers: whether the labels are the people of the training data.
    """

    model: nn.Module
    config: BundleConfig
    touches: tuple[DataTouch, ...] = ()
    names_speakers: bool = False


def export_checkpoint(
    checkpoint: str | Path, folder: str | Path, *, not_private: bool = False, metrics: Sequence[Figure] = ()
) -> Bundle:
    """Write the bundle of a checkpoint.

    Args:
        checkpoint: written by a training run; a private run has entered a `PrivacyRecord` under "privacy".
        folder: of the bundle; must not exist.
        not_private: release a model without any guarantee, and say so in it.
        metrics: figures to state in the bundle.

    Raises:
        BundleError: if the run was not private and `not_private` is not given, or the other way round; or for what a
            bundle refuses.
        ModelError: for a file that is no checkpoint of ppspeech.
        PrivacyError: for a damaged privacy record.
    """
    path = Path(checkpoint)
    module: lightning.LightningModule = load_checkpoint(path, *KINDS.values())
    record = _record(path)
    if record is not None and not record.guarantee().proven:
        reason = record.guarantee().caveat
        if not not_private:
            raise BundleError(
                f"{path} was trained with events that prove nothing ({reason}): export it with --not-private, which "
                "states that there is no guarantee, or train it with a sound mechanism"
            )
    elif record is not None and not_private:
        raise BundleError(
            f"{path} has a guarantee ({record.guarantee()}): leave --not-private out, so that it is stated"
        )
    elif record is None and not not_private:
        raise BundleError(
            f"{path} has no privacy record: it was trained without differential privacy. Export it with --not-private, "
            "which states in the bundle that it gives no guarantee"
        )
    # A threshold of a private run leaves only if the run says that it was paid for.
    charged = record is not None and any((t.topic, t.status) == ("threshold", "charged") for t in record.touches)
    released = release(module, threshold=not_private or charged)
    account = record.account if record is not None else _plain_account()
    statement = _statement(record, account, released, bool(metrics))
    return write_bundle(
        folder,
        model=released.model,
        config=released.config,
        statement=statement,
        account=account,
        metrics=metrics,
    )


@singledispatch
def release(module: lightning.LightningModule, *, threshold: bool) -> Released:  # noqa: ARG001
    """What of a trained module goes into a bundle; register a function for each kind of module.

    Args:
        module: trained, as loaded from a checkpoint.
        threshold: whether a threshold that was chosen on private speech may be released.
    """
    raise BundleError(
        f"a {type(module).__name__} cannot be exported: register how with ppspeech.training.export.release"
    )


@release.register
def _(module: KeywordHmm, *, threshold: bool) -> Released:  # noqa: ARG001
    assert module.bank is not None
    topology, emission = module.bank.topology, module.bank.emission
    assert isinstance(emission, GaussianEmission)
    settings = KeywordHmmSettings(
        states=topology.states,
        components=emission.components,
        covariance=emission.gaussians.kind,
        floor=emission.gaussians.floor,
        skips=max(0, topology.offsets[-1] - 1),
        must_finish=not all(topology.final),
    )
    return Released(module.bank, BundleConfig(settings, module.names, module.mfcc), (NO_THRESHOLD,))


@release.register
def _(module: LargeMarginKeyword, *, threshold: bool) -> Released:  # noqa: ARG001
    assert module.bank is not None
    settings = LargeMarginKeywordSettings(
        states=module.topology.states, margin=float(module.margin), width=float(module.width)
    )
    return Released(module.bank, BundleConfig(settings, module.names, module.mfcc), (NO_THRESHOLD,))


@release.register
def _(module: SpeakerUbm, *, threshold: bool) -> Released:
    assert module.ubm is not None
    settings = SpeakerUbmSettings(
        components=module.components,
        covariance=module.covariance,
        floor=float(module.floor),
        relevance=float(module.relevance),
        threshold=float(module.threshold) if threshold else None,
    )
    chosen = DataTouch("threshold", "not_covered", "the equal error threshold among the training speakers")
    withheld = DataTouch("threshold", "untouched", "none is released: calibrate one on speech of your own")
    touches = (chosen if threshold else withheld,)
    return Released(module.ubm, BundleConfig(settings, (), module.mfcc), touches)


@release.register
def _(module: LargeMarginClassifier, *, threshold: bool) -> Released:  # noqa: ARG001
    assert module.model is not None
    settings = LargeMarginClassifierSettings(label=module.label, width=float(module.width), radius=float(module.radius))
    model = UtteranceClassifier(module.model)
    with torch.no_grad():
        for ours, public in zip((model.mean, model.std), public_scale(module.mfcc), strict=True):
            ours.copy_(public)
    scaled = DataTouch("normalization", "untouched", "features are scaled by statistics of the built-in, public voices")
    config = BundleConfig(settings, module.names, module.mfcc)
    return Released(model, config, (scaled, NO_THRESHOLD), names_speakers=module.label == "speaker")


def _record(path: Path) -> PrivacyRecord | None:
    """The privacy record of a checkpoint that `load_checkpoint` has accepted."""
    plain = torch.load(path, map_location="cpu", weights_only=True).get(KEY)
    return None if plain is None else PrivacyRecord.from_plain(plain)


def _plain_account() -> Accountant:
    account = Accountant(Relation("speaker", "add_remove"))
    account.compose(NonPrivateEvent(NOT_PRIVATE, Relation("speaker", "add_remove")))
    return account


def _statement(
    record: PrivacyRecord | None, account: Accountant, released: Released, measured: bool
) -> PrivacyStatement:
    guarantee = record.guarantee() if record is not None else account.guarantee(0.0)
    private = guarantee.proven
    if private and released.names_speakers and guarantee.unit in {"speaker", "party"}:
        raise BundleError(
            "the labels of this model are the speakers themselves: no guarantee for a whole speaker can hold for it. "
            "Train it with unit utterance"
        )
    caveats = [*(record.caveats if record is not None else ())]
    if private:
        caveats.append(
            "The guarantee is about the training data. It does not protect what is said to the model in use."
        )
        if guarantee.unit in {"frame", "utterance", "record"}:
            caveats.append(
                f"One {guarantee.unit} is protected, not a person: for someone with k of them in the data, epsilon is "
                "up to k times as large, and delta grows too."
            )
        if not guarantee.float_safe:
            caveats.append(
                "Noise was drawn in floating point; the guarantee is for real numbers, not for their last bits."
            )
        if released.names_speakers:
            caveats.append("The labels name people who took part in training.")
    else:
        caveats.append("This model gives no privacy guarantee of any kind.")
    return PrivacyStatement(
        guarantee=guarantee,
        method=account.report(guarantee.delta).method if private else "none",
        covers=("the weights in model.safetensors",) if private else (),
        touches=_touches(record, released, measured),
        caveats=tuple(caveats),
    )


def _touches(record: PrivacyRecord | None, released: Released, measured: bool) -> tuple[DataTouch, ...]:
    """What the run says goes before what the recipe says; whatever nobody mentions is not covered."""
    found: dict[Topic, DataTouch] = {}
    for touch in (*(record.touches if record is not None else ()), *released.touches):
        found.setdefault(touch.topic, touch)
    if released.config.mfcc is not None and released.config.mfcc.cmvn == "utterance":
        note = "each utterance is normalized by its own mean and variance"
        found.setdefault("normalization", DataTouch("normalization", "untouched", note))
    for topic in REQUIRED:
        found.setdefault(topic, DataTouch(topic, "not_covered", "the training run does not say"))
    if released.config.labels:
        found.setdefault("labels", DataTouch("labels", "not_covered", "the list of labels is released as it is"))
    if measured:
        found.setdefault("metrics", DataTouch("metrics", "not_covered", "the figures are exact results on test data"))
    return tuple(found.values())
