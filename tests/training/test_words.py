"""Word recipes: EM and large margin under one Trainer, resumed, loaded, refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch
from torch.nn.utils.rnn import pad_sequence

from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import baum_welch, flat_start_
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.training import WordModels, load_checkpoint

Make = Callable[..., lightning.Trainer]


def test_em_under_the_trainer_equals_em_by_hand(voices: SpeechDataModule, trainer: Make) -> None:
    model = WordModels(states=3, covariance="diagonal")
    trainer(max_epochs=3).fit(model, datamodule=voices)
    part = voices.parts["train"]
    bank = HiddenMarkovModel(left_right(3), GaussianEmission(3, 3, 39, covariance="diagonal", floor=1e-2))
    data = (
        pad_sequence(list(part.features), batch_first=True),
        torch.tensor(part.lengths),
        torch.stack([item["word"] for item in part]),
    )
    flat_start_(bank, *data)
    baum_welch(bank, *data, iterations=3)
    for ours, theirs in zip(model.bank.parameters(), bank.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)


def test_likelihood_rises_and_words_are_recognized(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    model = WordModels(states=4, covariance="diagonal")
    run = trainer(max_epochs=4)
    run.fit(model, datamodule=voices)
    assert run.global_step == 4
    result = run.test(model, datamodule=voices, verbose=False)[0]
    assert result["test_accuracy"] >= 0.8
    log_dir = Path(str(run.log_dir))
    assert (log_dir / "confusion.png").read_bytes().startswith(b"\x89PNG")
    rows = (log_dir / "metrics.csv").read_text().splitlines()
    column = rows[0].split(",").index("train_log_likelihood")
    history = [float(row.split(",")[column]) for row in rows[1:] if row.split(",")[column]]
    assert len(history) == 4
    assert history == sorted(history)


def test_checkpoint_is_plain_resumes_and_loads(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    whole = WordModels(states=3, covariance="diagonal")
    trainer(max_epochs=4).fit(whole, datamodule=voices)
    first = trainer(max_epochs=2)
    first.fit(WordModels(states=3, covariance="diagonal"), datamodule=voices)
    path = tmp_path / "half.ckpt"
    first.save_checkpoint(path)
    assert torch.load(path, weights_only=True)["model"]["config"]["type"] == "keyword_hmm"
    resumed = WordModels(states=3, covariance="diagonal")
    trainer(max_epochs=4).fit(resumed, datamodule=voices, ckpt_path=path, weights_only=True)
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)

    loaded = load_checkpoint(path, "recognize")
    assert loaded.config.labels == ("one", "two", "zero")
    batch = next(iter(voices.test_dataloader()))
    assert loaded.model(batch["features"], batch["lengths"]).shape == (len(batch["word"]), 3)
    with pytest.raises(ModelError, match="holds a keyword_hmm, which can recognize, transcribe: it cannot verify"):
        load_checkpoint(path, "verify")


def test_bad_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "absent.ckpt")
    (tmp_path / "rubbish.ckpt").write_bytes(b"rubbish")
    with pytest.raises(ModelError, match="not a checkpoint of ppspeech"):
        load_checkpoint(tmp_path / "rubbish.ckpt")
    torch.save({"model": {"config": {"type": "os.system"}}}, tmp_path / "strange.ckpt")
    with pytest.raises(ModelError, match="not a checkpoint of ppspeech"):
        load_checkpoint(tmp_path / "strange.ckpt")


def test_large_margin_starts_from_likelihood_and_keeps_phi_psd(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path
) -> None:
    model = WordModels("margin", states=3, iterations=3, learning_rate=1e-3)
    run = trainer(max_epochs=2)
    run.fit(model, datamodule=voices)
    assert torch.linalg.eigvalsh(model.margin_bank.phi()).min() > -1e-3
    assert run.test(model, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.8
    run.save_checkpoint(tmp_path / "margin.ckpt")
    loaded = load_checkpoint(tmp_path / "margin.ckpt", "recognize")
    assert loaded.config.type == "large_margin_keyword"
    torch.testing.assert_close(loaded.model.state_dict()["vector"], model.margin_bank.vector.detach())


def test_large_margin_step_compiles_whole(voices: SpeechDataModule) -> None:
    voices.setup()
    batch = next(iter(voices.train_dataloader()))
    model = WordModels("margin", states=2)
    model.build_(("one", "two", "zero"), voices.config(voices.corpus))
    bank = model.margin_bank
    features, lengths, words = batch["features"][:4, :6], batch["lengths"][:4].clamp_max(6), batch["word"][:4]

    def step() -> torch.Tensor:
        return bank.loss(features, lengths, words).mean()

    torch.testing.assert_close(torch.compile(step, fullgraph=True, backend="aot_eager")(), step())


def test_one_word_is_refused(trainer: Make) -> None:
    alone = SpeechDataModule("synthetic", {"words": ["one"], "speakers": 4, "takes": 1})
    with pytest.raises(ModelError, match="at least two to choose from"):
        trainer(max_epochs=1).fit(WordModels(), datamodule=alone)
