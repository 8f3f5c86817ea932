"""The feature cache: computed once, keyed by content and config, safe when interrupted or shared."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import Mfcc, MfccConfig, write_audio
from ppspeech.data import FeatureStore, Utterance
from ppspeech.errors import AudioError
from tests.audio.test_mfcc import voice

CONFIG = MfccConfig()


@pytest.fixture
def clips(tmp_path: Path) -> list[Utterance]:
    clips = [Utterance(tmp_path / f"{i}.wav", speaker=f"s{i % 2}") for i in range(5)]
    for i, clip in enumerate(clips):
        write_audio(clip.path, voice(5_000 + 700 * i, seed=i).clamp(-1, 1), 16_000)
    return clips


def test_equals_the_module_and_is_computed_once(
    clips: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    first = store.load(clips, batch_size=2)
    for clip, features in zip(clips, first, strict=True):
        torch.testing.assert_close(features, Mfcc(CONFIG)(clip.waveform(16_000)).features[0], atol=1e-4, rtol=0)
    monkeypatch.setattr(Mfcc, "forward", lambda *_: pytest.fail("computed again"))
    again = FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_key_follows_config_and_content(clips: list[Utterance], tmp_path: Path) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    other = FeatureStore(replace(CONFIG, lifter=0), tmp_path / "cache")
    before = store.path(clips[0])
    assert before != other.path(clips[0])
    moved = Utterance(clips[0].path.rename(tmp_path / "moved.wav"), speaker="x")
    assert store.path(moved) == before
    write_audio(moved.path, voice(6_000, seed=99).clamp(-1, 1), 16_000)
    assert store.path(moved) != before


def test_a_damaged_entry_is_made_again(clips: list[Utterance], tmp_path: Path) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    good = store[clips[0]]
    for damage in (b"", b"rubbish", store.path(clips[0]).read_bytes()[:-10]):
        store.path(clips[0]).write_bytes(damage)
        assert torch.equal(store[clips[0]], good)
        assert np.load(store.path(clips[0])).shape == good.shape


def test_many_workers_fill_one_store(clips: list[Utterance], tmp_path: Path) -> None:
    def fill(_: int) -> list[torch.Tensor]:
        return FeatureStore(CONFIG, tmp_path / "cache").load(clips)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(fill, range(4)))
    assert all(torch.equal(a, b) for result in results for a, b in zip(result, results[0], strict=True))
    files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert len(files) == len(clips)


def test_an_interrupted_run_goes_on(clips: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    real, calls = np.save, []

    def fails_at_the_third(*args: object, **kwargs: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "save", fails_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        store.load(clips)
    files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert len(files) == 2
    assert not [p for p in files if p.name.startswith(".")]
    assert len(store.load(clips)) == 5


def test_the_bad_file_of_a_batch_is_named(clips: list[Utterance], tmp_path: Path) -> None:
    write_audio(clips[3].path, torch.zeros(16_000), 16_000)
    with pytest.raises(AudioError, match=r"3\.wav: utterance 0 is silent"):
        FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    clips[3].path.unlink()
    with pytest.raises(AudioError, match=r"cannot read .*3\.wav"):
        FeatureStore(CONFIG, tmp_path / "cache").load(clips)
