"""Recordings that cannot be used, or not as one thinks: all found at once, refused or left out, never silently."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from typer.testing import CliRunner

from ppspeech.audio import MfccConfig
from ppspeech.cli.app import app
from ppspeech.data import SpeechDataModule, load_corpus, summarize
from ppspeech.data.sound_check import usable
from ppspeech.errors import CorpusError, SpeechWarning

RATE = 16_000


def noise(seconds: float, seed: int, rate: int = RATE) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, int(seconds * rate)).clip(-1, 1)


@pytest.fixture
def good(tmp_path: Path) -> Callable[[], Path]:
    """A function that writes the manifest of all sound files in a folder of 4 people, 2 words, 3 takes."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for place, (who, word, take) in enumerate(
        (who, word, take) for who in "abcd" for word in ("yes", "no") for take in range(3)
    ):
        soundfile.write(folder / f"{who}-{word}-{take}.wav", noise(0.5, place), RATE)

    def listed() -> Path:
        names = sorted(path.name for path in folder.glob("*.*") if path.suffix != ".csv")
        rows = [f"{name},{name.split('-')[0]},{name.split('-')[1]}" for name in names]
        (folder / "manifest.csv").write_text("\n".join(["path,speaker,word", *rows]) + "\n")
        return folder

    return listed


def damage(folder: Path) -> dict[str, str]:
    """One file of every fault, with the kind it must be found as."""
    soundfile.write(folder / "a-yes-empty.wav", np.zeros(0), RATE)
    soundfile.write(folder / "a-yes-nan.wav", np.append(noise(0.5, 100), np.nan), RATE, subtype="FLOAT")
    soundfile.write(folder / "a-yes-silent.wav", np.zeros(RATE // 2), RATE)
    soundfile.write(folder / "a-yes-short.wav", noise(0.005, 101), RATE)
    (folder / "a-yes-text.wav").write_text("this is no sound")
    soundfile.write(folder / "a-yes-cut.wav", noise(0.5, 102), RATE)
    whole = (folder / "a-yes-cut.wav").read_bytes()
    (folder / "a-yes-cut.wav").write_bytes(whole[: len(whole) // 2])
    soundfile.write(folder / "a-yes-narrow.wav", noise(0.5, 103, 8_000), 8_000)
    soundfile.write(folder / "b-yes-twin.flac", *soundfile.read(folder / "a-yes-0.wav"))
    soundfile.write(folder / "a-yes-loud.wav", np.sign(noise(0.5, 104)), RATE)
    soundfile.write(folder / "a-yes-long.wav", noise(60, 105, RATE), RATE)
    unusable = dict.fromkeys((f"a-yes-{fault}.wav" for fault in ("empty", "nan", "silent", "short", "text", "cut")), "")
    return dict.fromkeys(unusable, "unusable") | {
        "a-yes-narrow.wav": "narrow",
        "b-yes-twin.flac": "shared",
        "a-yes-0.wav": "shared",
        "a-yes-loud.wav": "doubtful",
        "a-yes-long.wav": "doubtful",
    }


def test_every_fault_is_found_at_once(good: Callable[[], Path]) -> None:
    folder = good()
    assert summarize(load_corpus(folder)).faults == ()
    expected = damage(folder)
    summary = summarize(load_corpus(good()))
    assert {fault.utterance.path.name: fault.kind for fault in summary.faults} == expected
    assert summary.rates == {16_000: 24 + 5, 8_000: 1}
    assert not summary.is_sound
    assert summary.lengths["longest"] == 60


def test_corpus_lists_them_and_fails(good: Callable[[], Path]) -> None:
    run = CliRunner()
    assert run.invoke(app, ["corpus", str(good())]).exit_code == 0
    expected = damage(good())
    for extra in ([], ["--json"]):
        result = run.invoke(app, ["corpus", str(good()), *extra])
        assert result.exit_code == 1
        assert all(name in result.output for name in expected)
    assert "mixed rates: 29 at 16,000 Hz, 1 at 8,000 Hz" in run.invoke(app, ["corpus", str(good())]).output


def test_training_tells_all_bad_recordings_or_leaves_them_out(good: Callable[[], Path]) -> None:
    damage(good())
    folder = good()
    with pytest.raises(CorpusError, match=r"7 of 34 recordings of 'mine' cannot be used: .*a-yes-cut.wav is cut short"):
        SpeechDataModule(str(folder)).setup()
    module = SpeechDataModule(str(folder), skip_bad=True)
    with pytest.warns(SpeechWarning) as said:
        module.setup()
    assert any("7 of 34 recordings are left out" in str(w.message) for w in said)
    assert any("under another name" in str(w.message) for w in said)
    assert len(module.corpus) == 27


class TestRates:
    def test_one_narrow_clip_does_not_narrow_the_corpus(self, good: Callable[[], Path]) -> None:
        folder = good()
        soundfile.write(folder / "a-no-!first.wav", noise(0.5, 1, 8_000), 8_000)
        corpus = load_corpus(good())
        assert corpus[0].path.name == "a-no-!first.wav"
        assert corpus.sample_rate == RATE
        with pytest.raises(CorpusError, match=r"first.wav is recorded at 8,000 Hz.*`--data.rate 8000`"):
            SpeechDataModule(str(folder)).setup()
        for rate in (8_000, 16_000):  # whoever chooses knows what he does, and is told all the same
            module = SpeechDataModule(str(folder), rate=rate)
            with pytest.warns(SpeechWarning) as said:
                module.setup()
            assert "mixed rates (24 at 16,000 Hz, 1 at 8,000 Hz)" in str(said[0].message)
            assert len(said) == (1 if rate == 8_000 else 2)
            assert module.config(module.corpus).sample_rate == rate
            assert len(module.corpus) == 25

    def test_wider_clips_are_brought_to_the_rate_and_said(self, good: Callable[[], Path]) -> None:
        soundfile.write(good() / "a-no-!first.wav", noise(0.5, 1, 44_100), 44_100)
        module = SpeechDataModule(str(good()))
        with pytest.warns(SpeechWarning, match="1 at 44,100 Hz.; all are brought to 16,000 Hz"):
            module.setup()
        assert module.corpus.sample_rate == RATE

    @pytest.mark.parametrize(("rate", "heard"), [(8_000, 8_000), (11_025, 8_000), (22_050, 16_000)])
    def test_front_ends_listen_to_what_was_recorded(self, rate: int, heard: int, tmp_path: Path) -> None:
        soundfile.write(tmp_path / "a.wav", noise(0.5, 0, rate), rate)
        (tmp_path / "manifest.csv").write_text("path,speaker\na.wav,ann\n")
        changes = {"cmvn": "none", "vad_db": 30.0}  # a recipe's choices leave the rate to the corpus
        config = SpeechDataModule(mfcc=changes).config(load_corpus(tmp_path))
        assert (config.sample_rate, config.cmvn, config.vad_db) == (heard, "none", 30.0)

    def test_a_wrong_choice_of_the_front_end_is_refused(self, good: Callable[[], Path]) -> None:
        with pytest.raises(CorpusError, match=r"data.mfcc.*cmnv"):
            SpeechDataModule(str(good()), mfcc={"cmnv": "none"}).setup()


def test_what_was_heard_is_remembered(good: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load_corpus(good())
    assert usable(corpus, MfccConfig()) is corpus
    monkeypatch.setattr("ppspeech.data.sound_check.read_with_rate", lambda _: pytest.fail("listened again"))
    assert usable(corpus, MfccConfig()) is corpus


class TestTrainedLabels:
    @pytest.fixture
    def rare(self, good: Callable[[], Path]) -> Path:
        """One word that one person says, once, and one recording without a word."""
        folder = good()
        soundfile.write(folder / "d-maybe-0.wav", noise(0.5, 50), RATE)
        soundfile.write(folder / "d--0.wav", noise(0.5, 51), RATE)
        return good()

    def parts(self, folder: Path, **options: object) -> SpeechDataModule:
        """A data module of word models: what a trainer tells it."""
        module = SpeechDataModule(str(folder), test=["d"], **options)  # type: ignore[arg-type]
        recipe = type("Recipe", (), {"label": "word"})
        module.trainer = type("Trainer", (), {"lightning_module": recipe, "global_rank": 0, "world_size": 1})()
        module.setup()
        return module

    def test_a_word_nobody_says_in_training_is_refused(self, rare: Path) -> None:
        with pytest.raises(
            CorpusError, match=r"1 recordings have no word, and no training recording is left of word maybe"
        ):
            self.parts(rare)

    def test_or_left_out(self, rare: Path) -> None:
        with pytest.warns(SpeechWarning, match="left out: 1 recordings have no word"):
            module = self.parts(rare, skip_bad=True)
        assert module.vocabulary["word"] == ("no", "yes")
        assert {name: len(part) for name, part in module.parts.items()} == {"train": 18, "test": 6}

    def test_a_single_training_recording_is_said(self, rare: Path) -> None:
        soundfile.write(rare / "a-maybe-0.wav", noise(0.5, 52), RATE)
        (rare / "d--0.wav").unlink()
        rows = (rare / "manifest.csv").read_text().replace("d--0.wav,d,\n", "a-maybe-0.wav,a,maybe\n")
        (rare / "manifest.csv").write_text(rows)
        with pytest.warns(SpeechWarning, match="a single training recording of word maybe"):
            assert len(self.parts(rare).parts["train"]) == 19


class TestWhatIsHeldOut:
    def test_nothing(self, good: Callable[[], Path]) -> None:
        module = SpeechDataModule(str(good()), test=0)
        module.setup()
        assert {name: len(part) for name, part in module.parts.items()} == {"train": 24}
        with pytest.raises(CorpusError, match="nothing was held out to test on"):
            module.test_dataloader()

    def test_validation_alone(self, good: Callable[[], Path]) -> None:
        for split in ("speaker", "take"):
            module = SpeechDataModule(str(good()), split=split, test=0, validation=0.25)  # type: ignore[arg-type]
            module.setup()
            assert set(module.parts) == {"train", "validation"}

    def test_takes_are_numbered_where_the_manifest_does_not(self, good: Callable[[], Path]) -> None:
        assert [u.take for u in load_corpus(good())][:6] == [0, 1, 2] * 2
        module = SpeechDataModule(str(good()), split="take", test=0.34)
        module.setup()
        assert {u.path.name[-5] for u in module.parts["test"].corpus} == {"2"}

    def test_one_speaker_is_told_the_way_out(self, good: Callable[[], Path]) -> None:
        folder = good()
        for path in folder.glob("[bcd]-*"):
            path.unlink()
        with pytest.raises(CorpusError, match=r"all 1 speakers.*hold out repetitions .split: take."):
            SpeechDataModule(str(good())).setup()
        module = SpeechDataModule(str(good()), split="take")
        module.setup()
        assert {name: len(part) for name, part in module.parts.items()} == {"train": 4, "test": 2}
        with pytest.raises(CorpusError, match="fill the column `subset`"):
            SpeechDataModule(str(good()), split="official").setup()


def test_batches_come_from_what_is_left(good: Callable[[], Path]) -> None:
    module = SpeechDataModule(str(good()), test=0.25, batch_size=18)
    module.setup()
    assert torch.isfinite(next(iter(module.train_dataloader()))["features"]).all()
