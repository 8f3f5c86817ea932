"""DP-SGD of a hidden Markov model: our callback under Lightning beside Opacus used by hand, step by step.

Both sides train the same bank of ten words on the same corpus, in Poisson batches of the same rate, clip by utterance
and add noise. By hand means what Opacus asks for: inputs packed into one tensor, a module that owns its parameters,
`GradSampleModule` and `DPOptimizer` in a plain loop with no Trainer.

Needs nothing.
"""

import time
import warnings
from importlib.metadata import version

import pytorch_lightning as lightning
import torch
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader

from ppspeech.data import Batch, SpeechDataModule, collate
from ppspeech.evidence.bench import BENCHES
from ppspeech.figures import Figure
from ppspeech.privacy.gradients import PoissonBatches
from ppspeech.training import WordModels, quiet_lightning
from ppspeech.training.private import CollateWithEmpty, Losses, PrivacyHook

SAMPLING = 0.1
CLIP = 1.0
NOISE = 1.0
STATES = 8


class _Packed(nn.Module):
    """The losses of a module as a function of one tensor, with the trained parameters its own."""

    def __init__(self, module: WordModels, names: list[str]) -> None:
        super().__init__()
        self.hidden = [Losses(module)]  # in a list: not a submodule, whose parameters Opacus would not see here
        self.names = names
        parameters = dict(module.named_parameters())
        for i, name in enumerate(names):
            self.register_parameter(f"p{i}", nn.Parameter(parameters[name].detach().clone()))
        self.size = module.mfcc.features

    def forward(self, packed: Tensor) -> Tensor:
        own = {f"module.{name}": getattr(self, f"p{i}") for i, name in enumerate(self.names)}
        batch = {
            "lengths": packed[:, 0].long(),
            "word": packed[:, 1].long(),
            "features": packed[:, 2:].reshape(len(packed), -1, self.size),
        }
        losses: Tensor = functional_call(self.hidden[0], own, (batch,))
        return losses


@BENCHES.register("privacy-sgd")
def run(quick: bool) -> list[Figure]:
    """Measure both sides in turn; `quick` takes fewer steps."""
    quiet_lightning()
    rounds, epochs = (2, 1) if quick else (3, 2)
    options = {"speakers": 8 if quick else 20, "takes": 2, "seed": 1}  # not the takes of the public start
    data = SpeechDataModule("synthetic", options, test=0.25)
    data.setup()
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_callback(data, epochs))
        theirs.append(_by_hand(data, epochs))
    mine, peer = min(ours), min(theirs)
    about = f"{len(data.parts['train'])} utterances, sampling {SAMPLING}, {torch.get_num_threads()} threads"
    return [
        Figure.less("privacy.dp_sgd.step_s", mine, "s", f"Opacus {version('opacus')} by hand", peer, about),
        Figure("privacy.dp_sgd.overhead", mine / peer, "x", note="our step over Opacus by hand; at most 1.1 is asked"),
    ]


def _module(data: SpeechDataModule) -> WordModels:
    """Random word models: a step takes as long from any start."""
    module = WordModels("gradient", states=STATES, covariance="diagonal", start="public", learning_rate=1e-2)
    module.build_(data.vocabulary["word"], data.config(data.corpus))
    for name, parameter in module.bank.emission.named_parameters():
        if name.endswith("mean"):
            nn.init.normal_(parameter)
    module.resumed = True  # stay there
    return module


def _callback(data: SpeechDataModule, epochs: int) -> float:
    """Seconds a step of a fit under the Trainer, the noise given so that no search for it is timed."""
    fresh = SpeechDataModule("synthetic", data.options, test=0.25)
    fresh.setup()
    module, hook, clock = _module(fresh), PrivacyHook(noise_multiplier=NOISE, sampling=SAMPLING), _Clock()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[hook, clock],
    )
    trainer.fit(module, datamodule=fresh)
    return clock.seconds / hook.spent


class _Clock(lightning.Callback):
    """From the first batch to the last step."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Start, once."""
        if trainer.current_epoch == 0:
            self.seconds = -time.perf_counter()

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Stop."""
        self.seconds += time.perf_counter()


def _by_hand(data: SpeechDataModule, epochs: int) -> float:
    module = _module(data)
    trained = {id(p) for p in module.bank.emission.parameters()}
    packed = _Packed(module, [name for name, p in module.named_parameters() if id(p) in trained])
    model = GradSampleModule(packed, loss_reduction="sum")
    dataset = data.parts["train"]
    steps = round(1 / SAMPLING)
    batches = PoissonBatches(torch.arange(len(dataset)), SAMPLING, steps)
    loader = DataLoader(dataset, batch_sampler=batches, collate_fn=CollateWithEmpty(dataset, collate))
    optimizer = DPOptimizer(
        torch.optim.Adam(model.parameters(), module.learning_rate),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        expected_batch_size=SAMPLING * len(dataset),
    )
    start = time.perf_counter()
    with warnings.catch_warnings():  # features need no gradient: that is as it should be
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        for _ in range(epochs):
            for batch in loader:
                optimizer.zero_grad()
                torch.autograd.backward(model(_pack(batch)).sum())
                optimizer.step()
    return (time.perf_counter() - start) / (epochs * steps)


def _pack(batch: Batch) -> Tensor:
    labels = torch.stack([batch["lengths"], batch["word"]], dim=1).to(batch["features"].dtype)
    return torch.cat([labels, batch["features"].flatten(1)], dim=1)
