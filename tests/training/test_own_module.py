"""A module of one's own: trained with differential privacy, released, and loaded again."""

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
import pytorch_lightning as lightning
import torch
from dp_accounting import rdp
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from ppspeech.bundle import load_bundle
from ppspeech.errors import BundleError, ModelError, PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.renyi import ORDERS
from ppspeech.privacy.gradients.plan import SampledGaussianEvent
from ppspeech.training import PrivacyHook, export_checkpoint, release

Make = Callable[..., lightning.Trainer]


class Mine(lightning.LightningModule):
    """What a person writes who never heard of us, but for `losses`."""

    def __init__(self, *more: nn.Module) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), *more, nn.Tanh(), nn.Linear(8, 2))
        self.sizes: list[int] = []

    def losses(self, batch: Any) -> Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y, reduction="none")

    def training_step(self, batch: Any) -> Tensor:
        return self.losses(batch).mean()

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self.sizes.append(len(batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 0.05)


def rows(count: int = 300) -> TensorDataset:
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, (x.sum(1) > 0).long())


def data(dataset: Dataset[Any] | None = None) -> lightning.LightningDataModule:
    return lightning.LightningDataModule.from_datasets(dataset or rows(), batch_size=32)


def test_a_module_of_ones_own_is_trained_released_and_loaded(trainer: Make, tmp_path: Path) -> None:
    module, hook = Mine(nn.Dropout(0.1)), PrivacyHook(epsilon=4.0, unit="record", sampling=0.1)
    step, loaders = module.training_step, data()
    loader = loaders.train_dataloader
    run = trainer(max_epochs=4, callbacks=[hook])
    run.fit(module, datamodule=loaders)
    assert hook.spent == 40
    assert len(set(module.sizes)) > 10, "Poisson samples differ in size"
    assert module.training_step == step
    assert loaders.train_dataloader is loader
    x, y = rows().tensors
    assert (module.eval().net(x).argmax(-1) == y).float().mean() > 0.8

    bundle = release(module, tmp_path / "mine")
    assert str(bundle.statement.guarantee.relation) == "one record (add_remove)"
    assert bundle.statement.guarantee.epsilon == pytest.approx(4.0, rel=1e-2)
    assert any("author's word" in caveat for caveat in bundle.statement.caveats)
    again = load_bundle(tmp_path / "mine").load_into(Mine(nn.Dropout(0.1)))
    torch.testing.assert_close(again.net(x), module.net(x))
    with pytest.raises(ModelError, match="does not take these weights"):
        bundle.load_into(nn.Linear(2, 2))
    with pytest.raises(ModelError, match="load it by `load_into`"):
        _ = bundle.recognizer

    run.save_checkpoint(tmp_path / "mine.ckpt")
    exported = export_checkpoint(tmp_path / "mine.ckpt", tmp_path / "exported")
    assert exported.statement.guarantee == bundle.statement.guarantee
    assert all(torch.equal(exported.model.state_dict()[k], v) for k, v in module.state_dict().items())


@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_without_privacy_a_release_says_so(trainer: Make, tmp_path: Path) -> None:
    module = Mine()
    trainer(max_epochs=1).fit(module, datamodule=data())
    with pytest.raises(BundleError, match="--not-private"):
        release(module, tmp_path / "mine")
    assert not release(module, tmp_path / "mine", not_private=True).statement.private
    with pytest.raises(BundleError, match="num_batches_tracked is torch"):
        release(nn.BatchNorm1d(3), tmp_path / "other", not_private=True)


class Remembers(Mine):
    """Keeps an average of what it saw, which no noise covers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.seen += batch[0].sum(0)


class OwnLoader(Mine):
    """Brings its data along."""

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(rows(), 32)


def test_what_no_noise_covers_is_refused(trainer: Make) -> None:
    run = trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=4.0, unit="record")], enable_checkpointing=False)
    with pytest.raises(PrivacyError, match="seen changed in private training"):
        run.fit(Remembers(), datamodule=data())


def test_a_loader_of_the_modules_own_is_sampled_too(trainer: Make) -> None:
    module = OwnLoader()
    trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=4.0, unit="record")]).fit(module)
    assert len(set(module.sizes)) > 3


class Worded(Dataset[Any]):
    """Items that are no tensors."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return {"text": "yes"}


REFUSED: list[Any] = [
    (Mine, {"train_dataloaders": DataLoader(rows(), 32)}, {}, "LightningDataModule.from_datasets"),
    (OwnLoader, {"train_dataloaders": DataLoader(rows(), 32)}, {}, "takes its batches elsewhere"),
    (lambda: Mine(nn.BatchNorm1d(8)), {"datamodule": data()}, {}, "net.1 mixes the examples.*GroupNorm"),
    (Mine, {"datamodule": data()}, {"unit": "speaker"}, "TensorDataset has no `speakers`"),
    (Mine, {"datamodule": data()}, {"unit": "utterance"}, "TensorDataset has no `utterances`.*protect one record"),
    (Mine, {"datamodule": data(Worded())}, {}, "holds tensors, in dicts, lists or tuples, got list|got str"),
]


@pytest.mark.parametrize(("make", "given", "settings", "message"), REFUSED, ids=[row[3] for row in REFUSED])
def test_what_would_break_the_guarantee_is_refused(
    trainer: Make, make: Any, given: Any, settings: Any, message: str
) -> None:
    module = make()
    with pytest.raises(PrivacyError, match=message):
        trainer(max_epochs=1, callbacks=[PrivacyHook(**({"epsilon": 4.0, "unit": "record"} | settings))]).fit(
            module, **given
        )
    assert "training_step" not in vars(module), "a failed fit leaves the module as it was"


def test_orders_at_which_a_series_diverges_are_bounded_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """Divergences grow with the order: a whole order above bounds those that dp-accounting gives up on."""
    event = SampledGaussianEvent(0.5, 0.4, 1, Relation("record", "add_remove"))
    with caplog.at_level(logging.WARNING):
        found = {order: event.rdp(order) for order in ORDERS[:99]}
    assert not caplog.records
    given_up = [order for order in found if math.isinf(theirs(event, order))]
    assert given_up, "choose an event of which some order does not converge"
    for order, divergence in found.items():
        assert divergence == (event.rdp(math.ceil(order)) if order in given_up else theirs(event, order))


def theirs(event: SampledGaussianEvent, order: float) -> float:
    accountant = rdp.RdpAccountant(orders=[order])
    noise = dp_accounting.GaussianDpEvent(event.noise_multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(event.sampling, noise))
    return float(accountant.rdp[0])
