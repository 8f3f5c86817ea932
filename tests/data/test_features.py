"""The feature cache: computed once, keyed by content and config, safe when interrupted or shared."""

import builtins
import io
import os
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import Mfcc, MfccConfig, write_audio
from ppspeech.data import Corpus, FeatureStore, LengthBuckets, Utterance, UtteranceDataset, Vocabulary, file_index
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
    first = store.load(clips)
    for clip, features in zip(clips, first, strict=True):
        torch.testing.assert_close(features, Mfcc(CONFIG)(clip.waveform(16_000)).features[0], atol=1e-4, rtol=0)
    monkeypatch.setattr(Mfcc, "forward", lambda *_: pytest.fail("computed again"))
    again = FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_only_their_owner_can_read_features(clips: list[Utterance], tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "features"
    folder.mkdir(mode=0o755, parents=True)  # as it was left by versions that did not close it
    before = os.umask(0o022)
    try:
        FeatureStore(CONFIG, folder).load(clips)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert len(written) == len(clips) + 1
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}


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
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == len(clips)


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
    files = list((tmp_path / "cache").rglob("*.npy"))
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


def test_a_file_is_hashed_again_only_when_it_changed(
    clips: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []
    real = file_index._digest
    monkeypatch.setattr(file_index, "_digest", lambda path: (hashed.append(path), real(path))[1])
    before = FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    assert sorted(hashed) == [clip.path for clip in clips]
    hashed.clear()
    FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    FeatureStore(replace(CONFIG, lifter=0), tmp_path / "cache").load(clips)
    assert not hashed
    status = clips[2].path.stat()
    samples = clips[2].path.read_bytes()
    clips[2].path.write_bytes(samples[:-2000] + samples[-4000:-2000])
    os.utime(clips[2].path, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, and the old time put back
    again = FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    assert hashed == [clips[2].path]
    assert [torch.equal(a, b) for a, b in zip(before, again, strict=True)] == [True, True, False, True, True]


def test_any_file_name_will_do(clips: list[Utterance], tmp_path: Path) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    odd = Utterance(clips[0].path.rename(tmp_path / "annabelle's año\n.wav"), speaker="x")
    assert len(store[odd]) == store.expected_frames([odd])[0]
    assert b"annabelle" not in (tmp_path / "cache" / "files.sqlite").read_bytes()  # file names may be people's


@pytest.mark.parametrize("fault", ["rubbish", "folder"])
def test_without_an_index_files_are_read(clips: list[Utterance], tmp_path: Path, fault: str) -> None:
    good = FeatureStore(CONFIG, tmp_path / "cache").load(clips)
    index = tmp_path / "cache" / "files.sqlite"
    index.unlink()
    if fault == "folder":
        index.mkdir()
    else:
        index.write_bytes(b"rubbish" * 1000)
    store = FeatureStore(CONFIG, tmp_path / "cache")
    assert all(torch.equal(a, b) for a, b in zip(good, store.load(clips), strict=True))
    assert store.expected_frames(clips) == [len(features) for features in good]


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050])
def test_headers_tell_the_frames(clips: list[Utterance], tmp_path: Path, rate: int) -> None:
    store = FeatureStore(MfccConfig(sample_rate=rate), tmp_path / "cache")
    assert store.expected_frames(clips) == [len(features) for features in store.load(clips)]
    clips[1].path.write_bytes(b"no sound")
    with pytest.raises(AudioError, match=r"1\.wav is not a readable sound file"):
        store.expected_frames(clips)


def test_lazy_features_are_those_of_the_store_and_few_stay_in_memory(clips: list[Utterance], tmp_path: Path) -> None:
    store = FeatureStore(CONFIG, tmp_path / "cache")
    whole = store.load(clips)
    most = sum(features.nbytes for features in whole[3:])
    lazy = store.lazy(clips, memory=most)
    for place in (4, 0, -1, 2, 2, 1, 3):
        assert torch.equal(lazy[place], whole[place])
        assert 0 < sum(features.nbytes for features in lazy._kept.values()) == lazy._bytes <= most
    assert [len(features) for features in lazy] == [len(x) for x in lazy[:]] == lazy.sizes[np.arange(5)].tolist()


class Million(Sequence[Utterance]):
    """Too long to be kept in memory by a test: the same thousand utterances again and again."""

    some = tuple(Utterance(Path("clip.wav"), speaker=f"speaker{i}", word=f"word{i % 10}") for i in range(1000))

    def __len__(self) -> int:
        return 1_000_000

    def __iter__(self) -> Iterator[Utterance]:
        return islice(cycle(self.some), len(self))

    def __getitem__(self, index: int) -> Utterance:  # type: ignore[override]
        return self.some[index % 1000]


def test_a_million_utterances_are_not_opened_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def opened(*given: object, **_: object) -> None:
        raise AssertionError(f"opened {given}")

    def expected(_: FeatureStore, some: Sequence[Utterance]) -> list[int]:
        asked.append(len(some))
        return [100] * len(some)

    for room, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "stat"), (file_index.soundfile, "info")):
        monkeypatch.setattr(room, name, opened)
    monkeypatch.setattr(FeatureStore, "expected_frames", expected)
    tracemalloc.start()
    try:
        corpus = Corpus("million", 16_000, Million())  # type: ignore[arg-type]
        features = FeatureStore(CONFIG, tmp_path / "cache").lazy(corpus.utterances)
        dataset = UtteranceDataset(corpus, features, Vocabulary(corpus))
        buckets = LengthBuckets(dataset.sizes, 64)
        assert not asked
        first = next(iter(buckets))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        monkeypatch.undo()
    assert (len(dataset), len(buckets), len(first)) == (1_000_000, 15_625, 64)
    assert asked == [64 * 20]  # the headers of one pool
    assert peak < 120 * 2**20
