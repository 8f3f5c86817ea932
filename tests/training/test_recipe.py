"""train.py: recipes run from their files, and a result below the promise is an error."""

from pathlib import Path

import pytest
import yaml

from ppspeech.data import load_corpus
from ppspeech.errors import ModelError
from ppspeech.training.recipe import main

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("[!f]*.yaml"))
"""Those for train.py; `filter_….yaml` are for `ppspeech filter train` (tests/cli/test_filter.py)."""
KEYWORDS = next(config for config in CONFIGS if config.stem == "keyword_hmm")
SMALL = ["--data.options", "{words: [zero, one, two], speakers: 8, takes: 4}", "--trainer.logger", "false"]
QUICK = {"keyword_dp": 3, "keyword_hmm": 3, "keyword_large_margin": 1, "large_margin": 1, "speaker_ubm": 2}


@pytest.fixture(autouse=True)
def _no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py"])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_recipe_promises_a_result_and_runs_small(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert yaml.safe_load(config.read_text())["expect"]
    promise = ["--expect", "{test_accuracy: 0.6}"]
    epochs = ["--trainer.max_epochs", str(QUICK[config.stem])]
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", str(tmp_path)]
    main(["fit", "--config", str(config), *SMALL, *promise, *epochs, *quiet])
    assert "test_accuracy" in capsys.readouterr().out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's own recordings: sound files and a manifest.csv."""
    folder = tmp_path_factory.mktemp("mine")
    rows = ["path,speaker,word,take"]
    for number, said in enumerate(load_corpus("synthetic", words=("zero", "one", "two"), speakers=6, takes=4)):
        assert said.path is not None
        (folder / f"{number}.wav").symlink_to(said.path)
        rows.append(f"{number}.wav,{said.speaker},{said.word},{said.take}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_recipe_trains_on_a_folder_of_recordings(config: Path, folder: Path, tmp_path: Path) -> None:
    epochs = ["--trainer.max_epochs", str(QUICK[config.stem])]
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.logger", "false"]
    where = ["--data.corpus", str(folder), "--trainer.default_root_dir", str(tmp_path)]
    main(["fit", "--config", str(config), *where, *epochs, *quiet, "--expect", "{test_accuracy: 0.34}"])


def test_a_broken_promise_is_an_error(tmp_path: Path) -> None:
    small = [*SMALL, "--trainer.max_epochs", "1", "--trainer.enable_progress_bar", "false"]
    with pytest.raises(ModelError, match=r"test_accuracy is .* below the 1.1"):
        main(["fit", "--config", str(KEYWORDS), *small, "--expect", "{test_accuracy: 1.1}",
              "--trainer.default_root_dir", str(tmp_path)])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_recipe_keeps_its_promise(config: Path, tmp_path: Path) -> None:
    main(["fit", "--config", str(config), "--trainer.logger", "false", "--trainer.default_root_dir", str(tmp_path)])
