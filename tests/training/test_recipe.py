"""train.py: recipes run from their files, and a result below the promise is an error."""

import csv
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from typer.testing import CliRunner

from ppspeech.audio import MfccConfig
from ppspeech.bundle import load_bundle
from ppspeech.cli import app
from ppspeech.cli.train import in_full
from ppspeech.data import SyntheticCorpus, load_corpus, load_samples
from ppspeech.errors import AudioError, ModelError
from ppspeech.filters import LinearFilter, write_filtered
from ppspeech.recipes import find_recipe, shipped_recipes
from ppspeech.training import FilterRecipe, export_checkpoint, learn, release
from ppspeech.training.recipe import run_recipe as main

EVERY = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
CONFIGS = [path for path in EVERY if "dialect of train.py" in path.read_text()]
FILTERS = [path for path in EVERY if "dialect of `ppspeech filter train`" in path.read_text()]
KEYWORDS = next(config for config in CONFIGS if config.stem == "keyword_hmm")
SMALL = ["--data.options", "{words: [zero, one, two], speakers: 8, takes: 4, seed: 1}", "--trainer.logger", "false"]
QUIET = ["--trainer.enable_progress_bar", "false"]
LONG = {"keyword_dp", "keyword_large_margin", "large_margin"}
QUICK = {
    "keyword_dp": 3, "keyword_hmm": 3, "keyword_large_margin": 1, "keyword_live": 3, "keyword_network": 24,
    "large_margin": 1, "sentences": 3, "sentences_ctc": 18, "sentences_encoder": 3, "sentences_lexicon": 3,
    "sentences_live": 3, "sentences_network": 3, "speaker_ubm": 2, "words_embedded": 1,
}  # fmt: skip
SHORTER = ["--data.words", "[1, 3]", "--data.test_sentences", "3", "--data.batch_size", "8"]
SMALLER = {
    "sentences_encoder": ["--data.encoder", "{corpora: [synthetic], epochs: 3, sentences: 1}"],
    "sentences_ctc": [*SHORTER, "--data.sentences", "28", "--model.dropout", "0.2"],
    "sentences_network": [*SHORTER, "--data.sentences", "8", "--model.iterations", "2", "--model.states", "4"],
}
"""What else makes a recipe quick."""


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_recipe_promises_a_result_and_runs_small(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert yaml.safe_load(config.read_text())["expect"]
    promise = ["--expect", "{test_accuracy: 0.6}"]
    epochs = ["--trainer.max_epochs", str(QUICK[config.stem])]
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", str(tmp_path)]
    main(["fit", "--config", str(config), *SMALL, *SMALLER.get(config.stem, []), *promise, *epochs, *quiet])
    said = capsys.readouterr().out
    assert "test_accuracy" in said
    assert ("1 - equal error rate" in said) == config.stem.startswith("speaker")


def test_every_config_names_its_dialect_and_is_read_by_it() -> None:
    assert sorted([*CONFIGS, *FILTERS]) == EVERY
    for path in CONFIGS:
        assert {"expect", "model", "data", "trainer"} <= set(yaml.safe_load(path.read_text()))  # and is run above
    for path in FILTERS:
        assert FilterRecipe.load(path).expect


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound files and a manifest.csv, as a person would bring them."""
    folder = tmp_path_factory.mktemp("plain") / "voices"
    styles = ("calm", "excited")
    SyntheticCorpus(("zero", "one", "two"), speakers=8, takes=2, styles=styles, sample_rate=8_000).build(folder)
    (folder / "synthetic.json").unlink()
    return folder


@pytest.mark.parametrize(
    "config",
    [pytest.param(path, marks=pytest.mark.slow if path.stem in LONG else ()) for path in CONFIGS],
    ids=[path.stem for path in CONFIGS],
)
def test_every_recipe_takes_a_plain_folder(
    config: Path, plain_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = ["--model.enroll_takes", "[0]"] if config.stem.startswith("speaker") else SMALLER.get(config.stem, [])
    main(["fit", "--config", str(config), "--data.corpus", str(plain_folder),
          "--trainer.max_epochs", str(min(QUICK[config.stem], 3)), "--trainer.logger", "false", *fewer,
          "--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", str(tmp_path)])  # fmt: skip
    assert "test_accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    "config", [path for path in FILTERS if FilterRecipe.load(path).corpus], ids=lambda path: path.stem
)
def test_every_filter_of_speech_is_learned_from_a_plain_folder(config: Path, plain_folder: Path) -> None:
    recipe = FilterRecipe.load(config)
    few = {"expect": {}, "attackers": ("logistic",), "iterations": 2}
    learned = learn(replace(recipe, corpus=str(plain_folder), **few))  # type: ignore[arg-type]
    assert set(learned.evidence) == {"minimax", "none", "pca"}


def test_nobody_to_try_is_told_before_training(
    plain_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the takes to choose from; after training, all of it would be lost."""
    monkeypatch.setattr("ppspeech.training.SpeakerUbm.training_step", lambda *_: pytest.fail("trained"))
    speakers = next(config for config in CONFIGS if config.stem == "speaker_ubm")
    fit = ["fit", "--config", str(speakers), "--data.corpus", str(plain_folder), "--trainer.logger", "false", *QUIET]
    with pytest.raises(ModelError, match=r"0 trials: the takes held out are \[0, 1\]; .*--model.enroll_takes \[0\]"):
        main([*fit, "--model.enroll_takes", "[0, 1, 2]", "--trainer.default_root_dir", str(tmp_path)])


def test_a_promise_is_for_the_recipes_own_corpus(plain_folder: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(KEYWORDS.read_text().replace("test_accuracy: 0.97", "test_accuracy: 1.1"))
    quick = ["--trainer.max_epochs", "1", "--trainer.enable_progress_bar", "false", "--trainer.logger", "false"]
    fit = ["fit", "--config", str(recipe), *quick, "--trainer.default_root_dir", str(tmp_path)]
    main([*fit, "--data.corpus", str(plain_folder)])
    with pytest.raises(ModelError, match=r"below the 1\.2"):  # which is asked for here and now
        main([*fit, "--data.corpus", str(plain_folder), "--expect", "{test_accuracy: 1.2}"])


def test_a_broken_promise_is_an_error(tmp_path: Path) -> None:
    small = [*SMALL, "--trainer.max_epochs", "1", "--trainer.enable_progress_bar", "false"]
    with pytest.raises(ModelError, match=r"test_accuracy is .* below the 1.1"):
        main(["fit", "--config", str(KEYWORDS), *small, "--expect", "{test_accuracy: 1.1}",
              "--trainer.default_root_dir", str(tmp_path)])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_recipe_keeps_its_promise(config: Path, tmp_path: Path) -> None:
    main(["fit", "--config", str(config), "--trainer.logger", "false", "--trainer.default_root_dir", str(tmp_path)])


def test_word_models_are_trained_on_filtered_speech_and_released(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The road of a filter: frames of the voices are filtered, a recipe trains on the folder, the bundle is opened."""
    corpus = load_corpus("synthetic", words=["zero", "one", "two"], speakers=8, takes=4)
    samples = load_samples("word", "speaker", "frames", "synthetic",
                           {"words": ["zero", "one", "two"], "speakers": 8, "takes": 4}, MfccConfig())  # fmt: skip
    weight = torch.linalg.qr(torch.randn(39, 12, generator=torch.Generator().manual_seed(0))).Q.mT
    write_filtered(tmp_path / "filtered", LinearFilter.of(weight), samples, keep="word")
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", str(tmp_path)]
    done = main(["fit", "--config", str(KEYWORDS), "--data.corpus", str(tmp_path / "filtered"), "--trainer.max_epochs",
                 "3", "--trainer.logger", "false", "--expect", "{test_accuracy: 0.6}", *quiet])  # fmt: skip
    assert "test_accuracy" in capsys.readouterr().out
    bundle = release(done.model, tmp_path / "words", not_private=True)
    assert bundle.config.input == "12 given features a frame, as in the filtered corpus it was trained on"
    heard = load_bundle(tmp_path / "words").recognizer.score(list(done.datamodule.parts["test"].features))
    said = [u.word for u in done.datamodule.parts["test"].corpus]
    assert sum(bundle.labels[i] == word for i, word in zip(heard.argmax(-1).tolist(), said, strict=True)) > 0.6 * len(
        said
    )
    with pytest.raises(AudioError, match="not computed from sound"):
        bundle.recognize(corpus[0].path)


@pytest.mark.parametrize(
    "place", ["ppspeech.training.recipe.quiet_lightning", "ppspeech.training.WordModels.training_step"]
)
def test_ctrl_c_is_a_word_while_it_starts_and_while_it_trains(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, press)
    before = signal.getsignal(signal.SIGINT)  # Lightning ignores further ones
    said = CliRunner().invoke(
        app, ["train", "keyword_hmm", *SMALL, *QUIET, "--trainer.default_root_dir", str(tmp_path)]
    )
    signal.signal(signal.SIGINT, before)
    assert said.exit_code == 130, said.output
    assert "stopped: nothing half-written is left behind" in said.output
    assert not list(tmp_path.rglob("*.ckpt"))


def test_training_on_everything_says_that_nothing_was_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = ["--trainer.max_epochs", "1", "--trainer.default_root_dir", str(tmp_path)]
    main(["fit", "--config", str(KEYWORDS), *SMALL, *QUIET, *epochs, "--data.test", "0"])
    said = capsys.readouterr().out
    assert "nothing was held out" in said
    assert "ppspeech export" in said


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The checkpoint of a small run, and what the command line said."""
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PPSPEECH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.chdir(folder)
        said = CliRunner().invoke(app, ["train", "keyword_dp", *SMALL, *QUIET, "--expect", "{}"])
    assert said.exit_code == 0, said.output
    (checkpoint,) = folder.rglob("*.ckpt")
    return checkpoint, said.output


def test_training_says_where_the_checkpoint_is_and_what_it_promises(trained: tuple[Path, str]) -> None:
    checkpoint, said = trained
    assert f"checkpoint: {checkpoint}" in said
    assert "(4, 1e-05)-DP for one utterance (add_remove)" in said
    assert "is right at most 98.2 % of the time" in said
    assert f"ppspeech export {shlex.quote(str(checkpoint))} --out FOLDER\n" in said  # as a shell takes it
    assert checkpoint.stat().st_mode & 0o077 == 0, "a checkpoint remembers people: nobody else may read it"


def test_a_card_says_what_training_measured_where_it_may(trained: tuple[Path, str], tmp_path: Path) -> None:
    checkpoint, _ = trained
    private = export_checkpoint(checkpoint, tmp_path / "private")
    assert not private.metrics
    card = (tmp_path / "private" / "README.md").read_text()
    assert "Not stated: measured on held-out people" in card
    stated = export_checkpoint(checkpoint, tmp_path / "stated", state_test=True)
    figures = {figure.metric: figure for figure in stated.metrics}
    assert set(figures) == {"test_accuracy", "test_accuracy_half_width"}
    assert figures["test_accuracy"].value > 0.6
    assert figures["test_accuracy"].note == "on 24 utterances of 2 speakers, none of them heard in training"
    assert {t.topic: t.status for t in stated.statement.touches}["metrics"] == "not_covered"


def test_predictions_are_written(trained: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["train", "predict", "keyword_dp", *SMALL, *QUIET, "--ckpt_path", str(trained[0]), "--weights_only", "true"]
    said = CliRunner().invoke(app, run)
    assert said.exit_code == 0, said.output
    (path,) = tmp_path.rglob("predictions.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["utterance", "speaker", "said", "heard", "one", "two", "zero"]
    assert len(rows) == 24
    assert sum(row["said"] == row["heard"] for row in rows) > 0.6 * len(rows)
    for row in rows:
        assert row["heard"] == max(("one", "two", "zero"), key=lambda word: float(row[word]))


def test_recipes_are_found_by_name_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # wherever one works
    listed = CliRunner().invoke(app, ["train"]).output
    for recipe in shipped_recipes().values():
        assert recipe.takes, f"{recipe.name} does not say what it takes"
        assert recipe.summary in listed
        assert recipe.takes in listed
    assert find_recipe("keyword_hmm") == find_recipe("configs/keyword_hmm.yaml") == KEYWORDS
    assert in_full(["test", "keyword_hmm", "--x", "1"]) == ["test", "--config", str(KEYWORDS), "--x", "1"]
    for wrong, words in (("keyword_hm", "did you mean keyword_hmm"), ("filter_speaker", "ppspeech filter train")):
        refused = CliRunner().invoke(app, ["train", wrong])
        assert refused.exit_code == 2
        assert words in refused.output
