"""Checkpoints back into models: nothing is unpickled, and only known kinds are built."""

import inspect
from pathlib import Path
from typing import TypeVar

import pytorch_lightning as lightning
import torch

from ppspeech.errors import ModelError
from ppspeech.training.classifier import LargeMarginClassifier
from ppspeech.training.keyword import KeywordHmm
from ppspeech.training.large_margin_keyword import LargeMarginKeyword
from ppspeech.training.speakers import SpeakerUbm

Module = TypeVar("Module", bound=lightning.LightningModule)

KINDS: dict[str, type[lightning.LightningModule]] = {
    "keyword_hmm": KeywordHmm,
    "large_margin_keyword": LargeMarginKeyword,
    "speaker_ubm": SpeakerUbm,
    "large_margin_classifier": LargeMarginClassifier,
}
"""What a checkpoint may say it is. A checkpoint holds private data's traces: it is not for release."""


def load_checkpoint(path: str | Path, *expected: type[Module]) -> Module:
    """Load a training checkpoint for use.

    Args:
        path: written by a training run.
        *expected: the kinds of model the caller can use.

    Returns:
        The module, in evaluation mode, on the CPU.

    Raises:
        ModelError: if the file is missing, damaged, not a checkpoint of this package, or of another kind.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"no checkpoint at {path}")
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        told, settings, weights = checkpoint["recognizer"], checkpoint["hyper_parameters"], checkpoint["state_dict"]
        kind = KINDS[told["kind"]]
    except Exception as damaged:
        raise ModelError(f"{path} is not a checkpoint of ppspeech: {type(damaged).__name__}") from None
    wanted = next((one for one in expected if one is kind), None)
    if wanted is None:
        names = " or ".join(one.__name__ for one in expected)
        raise ModelError(f"{path} holds a {kind.__name__}; a {names} is needed here")
    known = inspect.signature(wanted).parameters
    try:
        module = wanted(**{name: value for name, value in settings.items() if name in known})
        module.on_load_checkpoint(checkpoint)
        module.load_state_dict(weights)
    except (TypeError, KeyError, ValueError, RuntimeError) as damaged:
        raise ModelError(f"{path} does not fit a {kind.__name__}: {damaged}") from None
    return module.eval()
