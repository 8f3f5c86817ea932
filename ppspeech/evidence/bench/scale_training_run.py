"""One process of a training that `bench scale-training` measures: how long an epoch took, and its peak memory."""

import json
import sys
import time
from typing import Any

import pytorch_lightning as lightning
import torch

from ppspeech.data import SpeechDataModule
from ppspeech.evidence.bench.clock import peak_megabytes
from ppspeech.evidence.bench.scale_training import NOISE, SAMPLING, STATES
from ppspeech.training import WordModels, WordNetwork, quiet_lightning
from ppspeech.training.private import PrivacyHook


class Clock(lightning.Callback):
    """From the first batch to the end of training."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on_train_epoch_start(self, *_: Any) -> None:
        """Start."""
        self.seconds = -time.perf_counter()

    def on_train_end(self, *_: Any) -> None:
        """Stop."""
        self.seconds += time.perf_counter()


def main(corpus: str, what: str, processes: int, out: str) -> None:
    """Train for an epoch."""
    quiet_lightning()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data, clock = SpeechDataModule(corpus, test=0, batch_size=128), Clock()
    data.setup()
    callbacks: list[lightning.Callback] = [clock]
    module: WordModels | WordNetwork = WordModels(states=STATES, covariance="diagonal")
    if what == "gradients":
        module = WordNetwork(frames=40)
        expected = SAMPLING * len(data.parts["train"])
        said = {"noise_multiplier": NOISE, "sampling": SAMPLING, "expected_units": expected}
        callbacks.append(PrivacyHook(**said, public_start="drawn at random", chunk=64))  # type: ignore[arg-type]
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=processes,
        strategy="auto" if processes == 1 else "ddp",
        use_distributed_sampler=False,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
    )
    trainer.fit(module, datamodule=data)
    torch.save(module.state_dict(), out)
    sys.stdout.write(json.dumps({"seconds": clock.seconds, "peak_mb": peak_megabytes()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
