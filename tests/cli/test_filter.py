"""`ppspeech filter` as a person meets it: train, apply, attack on a few built-in voices."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
import yaml
from typer.testing import CliRunner

from ppspeech.audio import Mfcc, read_audio, utterance_statistics, write_audio
from ppspeech.audio.embeddings import weights_of
from ppspeech.bundle import MinimaxFilterSettings, load_bundle
from ppspeech.cli.app import guarded
from ppspeech.cli.filter import FILTER_COMMANDS
from ppspeech.data import load_corpus, load_samples
from ppspeech.errors import BundleError, CorpusError, MissingPackageError, ModelError
from ppspeech.filters import codes_of
from ppspeech.training.filters import FilterRecipe, learn

app = typer.Typer()
for name, command in FILTER_COMMANDS.items():
    app.command(name)(guarded(command))
runner = CliRunner()

VOICES = {"words": ["go", "stop"], "speakers": 4, "takes": 8}
RECIPE = {"keep": "word", "hide": "speaker", "features": 3, "corpus": "synthetic", "options": VOICES, "test": 0.5}
OPTIONS = [word for key, value in VOICES.items() for word in ("--option", f"{key}={json.dumps(value)}")]


def run(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def recipe_file(folder: Path, **changes: object) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({**RECIPE, "attackers": ["logistic", "neighbors"], **changes}))
    return path


@pytest.mark.parametrize(("level", "shape"), [("utterance", "linear"), ("frames", "mlp")])
def test_train_apply_attack(tmp_path: Path, level: str, shape: str) -> None:
    config = recipe_file(tmp_path, level=level, filter=shape, most_samples=500)
    said = run("train", "--config", config, "--out", tmp_path / "filter", "--plot", tmp_path / "p.png", "--json")
    figures = {f["metric"]: f["value"] for f in map(json.loads, said.splitlines())}
    assert (
        figures["filter.task"] - figures["filter.private"]
        > figures["filter.none.task"] - figures["filter.none.private"]
    )
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    bundle = load_bundle(tmp_path / "filter")
    assert bundle.statement.guarantee.kind == "none"
    assert {figure.metric for figure in bundle.metrics} == set(figures)

    assert "keep it to yourself" in run("apply", tmp_path / "filter", "synthetic", "--out", tmp_path / "out", *OPTIONS)
    manifest = (tmp_path / "out" / "manifest.csv").read_text()
    assert manifest.count("\n") == 1 + 2 * 4 * 8
    mine = tmp_path / "mine"
    for place, utterance in enumerate(load_corpus("synthetic", **VOICES)[:4]):
        write_audio(mine / f"{place}.wav", read_audio(utterance.path), 16_000)
    write_audio(mine / "silent.wav", torch.zeros(8_000), 16_000)
    listed = [f"{path.name},{place % 2},go" for place, path in enumerate(sorted(mine.iterdir()))]
    (mine / "manifest.csv").write_text("\n".join(["path,speaker,word", *listed]) + "\n")
    assert "silent.wav is silent" in run("apply", tmp_path / "filter", mine, "--out", tmp_path / "four", code=1)
    assert (tmp_path / "four" / "manifest.csv").read_text().count("\n") == 1 + 4
    statement = json.loads((tmp_path / "out" / "filtering.json").read_text())["statement"]
    assert load_corpus(tmp_path / "out").words == ("go", "stop")
    assert statement["about"]["filter"] == bundle.fingerprint
    assert statement["about"]["attacks"]["filter.private_worst"] == figures["filter.private_worst"]

    sizes = ("--clips", 1, "--clips", 3)
    shown = run("attack", tmp_path / "out", "--attacker", "logistic", *sizes, "--plot", tmp_path / "a.png")
    assert "worst of 1 attackers: from 1 clip logistic names" in shown
    assert "from 3 clips logistic names" in shown
    assert "did not know the filter" in shown
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    told = run("attack", tmp_path / "out", "--attacker", "plda", *sizes, "--filter", tmp_path / "filter", "--json")
    assert [json.loads(line)["metric"].removeprefix("filter.attack.") for line in told.splitlines()] == [
        "task", "plda", "plda_3", "worst", "worst_3", "chance",
    ]  # fmt: skip


@pytest.mark.parametrize("level", ["utterance", "frames"])
def test_one_clip_is_filtered_as_its_corpus_is(tmp_path: Path, level: str) -> None:
    learned = learn(replace(FilterRecipe.load(recipe_file(tmp_path)), level=level, attackers=("logistic",)))  # type: ignore[arg-type]
    bundle = learned.release(tmp_path / "filter")
    clip = load_corpus("synthetic", **VOICES)[0].path
    run("apply", tmp_path / "filter", clip, "--out", tmp_path / "clip.npy")
    features = torch.from_numpy(np.load(tmp_path / "clip.npy"))
    torch.testing.assert_close(features, bundle.filter(clip))
    frames = Mfcc(bundle.mfcc)(read_audio(clip, bundle.mfcc.sample_rate))
    inputs = frames.features[0] if level == "frames" else utterance_statistics(frames)[0]
    torch.testing.assert_close(features, bundle.model(inputs).detach())
    told = run(
        "apply", tmp_path / "filter", clip, "--out", tmp_path / "noisy.npy", "--epsilon", 1, "--most", 3, "--json"
    )
    assert json.loads(told)["guarantee"]["epsilon"] == pytest.approx(3)
    assert json.loads(told)["shape"] == ([3, 3] if level == "frames" else [3])
    assert "must not exist" in run("apply", tmp_path / "filter", clip, "--out", tmp_path / "clip.npy", code=2)


def test_recordings_without_labels_are_filtered(tmp_path: Path) -> None:
    """Clips, and a corpus that says who speaks but not what; nobody knows more, so they may all be one person's."""
    learn(FilterRecipe.load(recipe_file(tmp_path, attackers=["logistic"]))).release(tmp_path / "filter")
    clips = [u.path for u in load_corpus("synthetic", **VOICES)][:6]
    out = tmp_path / "clips"
    told = run("apply", tmp_path / "filter", *clips, "--out", out, "--epsilon", 1, "--most", 4, "--json")
    assert json.loads(told)["samples"] == 4  # of six, which may be one person's
    assert json.loads(told)["guarantee"]["epsilon"] == pytest.approx(4)
    assert load_corpus(out).words == ()
    assert "is for one sound file" in run("apply", tmp_path / "filter", *clips, "--out", tmp_path / "a.npy", code=2)
    assert "no sound file nowhere" in run("apply", tmp_path / "filter", *clips, "nowhere", "--out", out, code=2)

    folder = tmp_path / "unlabeled"
    folder.mkdir()
    rows = [f"{place}.wav,{'ann' if place < 4 else 'bob'}" for place in range(6)]
    for place, clip in enumerate(clips):
        (folder / f"{place}.wav").write_bytes(clip.read_bytes())
    (folder / "manifest.csv").write_text("\n".join(["path,speaker", *rows]) + "\n")
    told = run("apply", tmp_path / "filter", folder, "--out", tmp_path / "out", "--epsilon", 1, "--most", 7, "--json")
    assert json.loads(told)["guarantee"]["epsilon"] == pytest.approx(7)
    assert "give both" in run("apply", tmp_path / "filter", folder, "--out", tmp_path / "no", "--epsilon", 1, code=2)
    refused = run("apply", tmp_path / "filter", folder, "--out", tmp_path / "again", "--report", code=2)
    assert "--report needs recordings whose word and speaker are known" in refused
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--public", "synthetic"), "give --filter"),
        (("--attacker", "inverted.lda"), "called .*inverted.lda"),
        (("--clips", "0"), ">= 1"),
    ],
)
def test_attacks_that_cannot_be_are_refused(attackable: Path, words: tuple[str, ...], message: str) -> None:
    assert re.search(message, run("attack", attackable, *words, code=2))


def test_the_report_of_a_folder_names_who_was_left_out(attackable: Path) -> None:
    told = run("attack", attackable, "--minutes", "0", "--clips", "1", "--json")
    figures = {f["metric"]: f for f in map(json.loads, told.splitlines())}
    assert set(figures) == {f"filter.attack.{name}" for name in ("task", "plda", "worst", "chance")}
    assert "left out: ranked.plda, lda," in figures["filter.attack.worst"]["note"]
    shown = run("attack", attackable, "--minutes", "0", "--clips", "1")
    assert "networks" in shown[shown.index("left out") :]


def test_changed_sound_is_attacked_as_it_is() -> None:
    try:
        weights_of("voice")
    except MissingPackageError as error:
        pytest.skip(str(error))
    folder = load_corpus("synthetic", **VOICES).utterances[0].path.parent.parent
    told = run("attack", folder, "--attacker", "voice", "--attacker", "lda", "--clips", "3", "--json")
    figures = {f["metric"]: f["value"] for f in map(json.loads, told.splitlines())}
    assert figures["filter.attack.voice_3"] > 0.7  # 1/4 is chance
    assert figures["filter.attack.task"] > 0.7
    assert "is sound" in run("attack", folder, "--private", folder / "whose.csv", code=2)
    assert "no statement" in run("attack", folder / "nothing", code=2)


@pytest.fixture(scope="module")
def attackable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filtered features of four people, as `filter apply` writes them."""
    folder = tmp_path_factory.mktemp("attackable")
    learn(FilterRecipe.load(recipe_file(folder, attackers=["logistic"]))).release(folder / "filter")
    run("apply", folder / "filter", "synthetic", "--out", folder / "out", *OPTIONS)
    return folder / "out"


def test_a_filter_tells_no_words(tmp_path: Path) -> None:
    bundle = learn(FilterRecipe.load(recipe_file(tmp_path, attackers=["logistic"]))).release(tmp_path / "filter")
    with pytest.raises(ModelError, match="it is there to filter"):
        bundle.recognize("clip.wav")
    with pytest.raises(ModelError, match="rows of a table, not sound"):
        replace(bundle.filterer, level="table").filter_all(["clip.wav"])


def test_noise_makes_a_guarantee_and_hides_everything(tmp_path: Path) -> None:
    run("train", "--config", recipe_file(tmp_path), "--out", tmp_path / "filter")
    noise = ("--epsilon", 0.1, "--most", 16)
    said = run("apply", tmp_path / "filter", "synthetic", "--out", tmp_path / "out", *noise, "--json", *OPTIONS)
    guarantee = json.loads(said)["guarantee"]
    assert (guarantee["kind"], guarantee["unit"]) == ("pure", "speaker")
    assert guarantee["epsilon"] == pytest.approx(0.1 * 2 * 8)
    told = [
        json.loads(line) for line in run("attack", tmp_path / "out", "--attacker", "logistic", "--json").splitlines()
    ]
    named = {f["metric"]: f["value"] for f in told}
    assert named["filter.attack.worst"] < 0.7  # one of four people, 32 samples: chance is 0.25 +- 0.08
    noisy = ("--out", tmp_path / "again", *noise, "--report", "--json")
    reported = run("apply", tmp_path / "filter", "synthetic", *noisy, *OPTIONS).splitlines()
    assert "filter.attack.worst_3" in {json.loads(line).get("metric") for line in reported}


def test_codes_and_noise_for_a_target(tmp_path: Path) -> None:
    """What is handed on of codes is one of two vectors, with noise and without; the bound stands beside the attacks."""
    config = recipe_file(tmp_path, filter="codes", features=1)
    target = ("--at-most", 0.4, "--people", 4)
    said = run("train", "--config", config, "--out", tmp_path / "codes", *target, "--clips", 3, "--json")
    figures = {f["metric"]: f for f in map(json.loads, said.splitlines())}
    assert 0.39 < figures["filter.certified_3"]["value"] <= 0.4
    assert figures["filter.task"]["value"] > 0.9
    assert figures["filter.noisy.task"]["value"] < figures["filter.task"]["value"]
    model = load_bundle(tmp_path / "codes").model
    given = {tuple(code) for code in codes_of(model).tolist()}  # type: ignore[union-attr]
    for folder, noise in (("plain", ()), ("noisy", (*target, "--most", 3)), ("told", ("--epsilon", 1, "--most", 3))):
        out = tmp_path / folder
        told = json.loads(run("apply", tmp_path / "codes", "synthetic", "--out", out, *noise, "--json", *OPTIONS))
        rows = {tuple(np.load(path)[0].tolist()) for path in (out / "samples").iterdir()}
        assert rows == given
        assert told["naming"]["kind"] == ("codes" if noise else "none")
        assert told["naming"]["people"] == 4
    assert told["guarantee"]["epsilon"] == pytest.approx(3)
    assert "nothing is certain" in run("apply", tmp_path / "codes", "synthetic", "--out", tmp_path / "again", *OPTIONS)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--at-most", 0.4, "--most", 3), "give --people"),
        (("--at-most", 0.4, "--people", 4), "give --most"),
        (("--at-most", 0.4, "--people", 4, "--most", 3, "--epsilon", 1), "give one of them"),
        (("--at-most", 0.1, "--people", 4, "--most", 3), "by chance in 0.25"),
        (("--epsilon", 1, "--most", 3, "--delta", 1e-6), "--delta is 0"),
    ],
)
def test_noise_that_cannot_be_is_refused(tmp_path: Path, options: tuple[object, ...], word: str) -> None:
    config = recipe_file(tmp_path, filter="codes", features=1, attackers=["logistic"])
    learn(FilterRecipe.load(config)).release(tmp_path / "codes")
    words = [str(option) for option in options]
    assert word in run("apply", tmp_path / "codes", "synthetic", "--out", tmp_path / "out", *words, *OPTIONS, code=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"hide": "word"}, "kept and hidden at once"),
        ({"table": "har"}, "either a corpus or a table"),
        ({"hide": "shoe size"}, "no label 'shoe size'"),
        ({"color": "blue"}, "color"),
        ({"filter": "magic"}, "filter must be one of"),
        ({"features": 99}, "1 to 52 features"),
        ({"filter": "codes", "codes": 3}, "multiple of the 2 classes"),
        ({"mfcc": {"cepstra": 99}}, "the recipe's mfcc"),
        ({"expect": {"task": 2.0}}, "task >= 2.0"),
        ({"expect": {"speed": 2.0}}, "speed"),
        ({"adversarial": {"hidden": 3}}, "solver: alternating"),
        ({"solver": "adversarial", "adversarial": {"color": "blue"}}, "the recipe's adversarial"),
        ({"solver": "magic"}, "solver must be one of"),
    ],
)
def test_a_recipe_that_cannot_be_met_is_refused(tmp_path: Path, changes: dict[str, object], word: str) -> None:
    assert word in run("train", "--config", recipe_file(tmp_path, **changes), "--out", tmp_path / "f", code=2)
    assert not (tmp_path / "f").exists()


def test_wrong_folders_are_refused(tmp_path: Path) -> None:
    config = recipe_file(tmp_path)
    assert "exists already" in run("train", "--config", config, "--out", tmp_path, code=2)
    assert "no recipe" in run("train", "--config", tmp_path / "none.yaml", "--out", tmp_path / "f", code=2)
    run("apply", tmp_path / "none", "synthetic", "--out", tmp_path / "out", code=2)
    assert "no statement" in run("attack", tmp_path / "none", code=2)
    for command in FILTER_COMMANDS:
        assert "Examples" in run(command, "--help")


def test_a_table_divides_recordings_never_rows(data: Path, tmp_path: Path) -> None:
    samples = load_samples("class", "person", "table", "har", {}, None)
    assert len(samples.inputs) == 10_299
    assert samples.inputs[0].shape == (561,)
    assert len(set(samples.recordings)) < len(samples.inputs) / 10
    with pytest.raises(CorpusError, match="no label 'shoe'"):
        load_samples("shoe", "person", "table", "har", {}, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["speaker", "emotion", "motion", "network", "codes"])
def test_the_recipes_give_what_they_promise(data: Path, name: str) -> None:
    recipe = FilterRecipe.load(Path(__file__).parents[2] / "configs" / f"filter_{name}.yaml")
    assert recipe.expect
    learn(recipe).check()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"features": 0}, "inputs and features"),
        ({"hidden": 3}, "hidden units"),
        ({"shape": "mlp"}, "hidden units"),
        ({"codes": 3}, "3 codes"),
        ({"shape": "codes", "hidden": 3}, "0 codes"),
    ],
)
def test_a_bundle_holds_no_impossible_filter(changes: dict[str, object], word: str) -> None:
    good: dict[str, object] = {"shape": "linear", "inputs": 4, "hidden": 0, "features": 2, "level": "table"}
    with pytest.raises(BundleError, match=word):
        MinimaxFilterSettings(**{**good, "keep": "a", "hide": "b", **changes})  # type: ignore[arg-type]
