"""The data module on the built-in voices and on real corpora."""

from pathlib import Path

import pytest
import torch

from ppspeech.data import load_corpus
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import CorpusError

SMALL = {"words": ["yes", "no"], "speakers": 6, "takes": 2}


def test_holds_out_people_and_yields_batches() -> None:
    module = SpeechDataModule("synthetic", SMALL, test=1 / 3, validation=1 / 6, batch_size=5)
    module.prepare_data()
    module.setup("fit")
    assert {name: len(part) for name, part in module.parts.items()} == {"train": 12, "test": 8, "validation": 4}
    heard = {name: {u.speaker for u in part.corpus} for name, part in module.parts.items()}
    assert not heard["train"] & heard["test"]
    assert not heard["validation"] & (heard["train"] | heard["test"])
    batches = list(module.train_dataloader())
    assert [len(batch["word"]) for batch in batches].count(5) == 2
    for batch in batches:
        assert batch["features"].shape[2] == 39
        assert batch["features"].shape[1] == batch["lengths"].max()
        assert set(batch) == {"features", "lengths", "word", "speaker", "emotion", "gender", "take", "index"}
    assert module.vocabulary["word"] == ("no", "yes")
    assert isinstance(module.val_dataloader(), torch.utils.data.DataLoader)


def test_splits_by_take() -> None:
    module = SpeechDataModule("synthetic", SMALL, split="take", test=[1])
    module.setup()
    assert {u.take for u in module.parts["test"].corpus} == {1}
    assert module.val_dataloader() == []
    shared = SpeechDataModule("synthetic", SMALL, split="take", test=0.25)
    shared.setup()
    assert {u.take for u in shared.parts["test"].corpus} == {1}  # of two takes, at least one is left to train on
    with pytest.raises(CorpusError, match=r"given by number, so give those to validate on, got 0.5"):
        SpeechDataModule("synthetic", SMALL, split="take", test=[1], validation=0.5).setup()


def test_unknown_options_are_refused() -> None:
    with pytest.raises(CorpusError, match="options"):
        SpeechDataModule("synthetic", {"color": "red"}).setup()
    with pytest.raises(CorpusError, match="did you mean 'fsdd'"):
        SpeechDataModule("fssd").setup()


def test_official_split_of_a_real_corpus(data: Path) -> None:
    parts = SpeechDataModule("fsdd", split="official").divide(load_corpus("fsdd", folder=data / "fsdd"))
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes == {"train": 2_700, "test": 300}
