"""Small trainers for small data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
from pytorch_lightning.loggers import CSVLogger

from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.training.module import quiet_lightning

WORDS = ["zero", "one", "two"]


@pytest.fixture
def voices() -> SpeechDataModule:
    # The seed is not that of the public start, which must not have heard them.
    options = {"words": WORDS, "speakers": 8, "takes": 2, "seed": 1}
    return SpeechDataModule("synthetic", options, test=0.25, batch_size=16)


@pytest.fixture
def trainer(tmp_path: Path) -> Callable[..., lightning.Trainer]:
    def make(**options: Any) -> lightning.Trainer:
        quiet_lightning()
        defaults = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False}
        return lightning.Trainer(**defaults, logger=CSVLogger(tmp_path), **options)

    return make
