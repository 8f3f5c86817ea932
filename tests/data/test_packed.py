"""Packed features: what was heard comes back, bit for bit, in training too; damage is told."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.data import (
    FeatureStore,
    SentenceDataModule,
    SpeechDataModule,
    load_corpus,
    read_packed,
    write_packed,
    write_rows_packed,
)
from ppspeech.errors import CorpusError

OPTIONS = {"words": ("no", "yes"), "speakers": 6, "takes": 2}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "voices"
    corpus = load_corpus("synthetic", **OPTIONS)
    write_packed(folder, corpus, MfccConfig.at_rate(corpus.sample_rate))
    return folder


def test_features_and_labels_come_back(packed: Path) -> None:
    corpus = load_corpus("synthetic", **OPTIONS)
    data = SpeechDataModule(str(packed), test=0)
    data.setup()
    part = data.parts["train"]
    heard = FeatureStore(MfccConfig.at_rate(corpus.sample_rate)).load(corpus.utterances)
    assert len(part) == len(corpus) == 24
    assert data.config(data.corpus) == MfccConfig.at_rate(corpus.sample_rate)
    for place, (item, features, utterance) in enumerate(zip(part, heard, corpus, strict=False)):
        assert torch.equal(item["features"], features)
        assert data.vocabulary["word"][item["word"]] == utterance.word == part.corpus[place].word
        assert data.vocabulary["speaker"][item["speaker"]] == utterance.speaker
        assert (int(item["take"]), int(item["emotion"]) >= 0) == (utterance.take, utterance.emotion is not None)
    assert part.lengths == [len(features) for features in heard]
    assert oct(packed.stat().st_mode & 0o777) == "0o700"


def test_nobody_is_in_two_parts(packed: Path) -> None:
    data = SpeechDataModule(str(packed), test=0.3, validation=0.2, batch_size=3)
    data.setup()
    people = {name: set(part.speakers.tolist()) for name, part in data.parts.items()}
    assert {name: len(who) for name, who in people.items()} == {"train": 3, "test": 2, "validation": 1}
    assert len(set.union(*people.values())) == 6
    batches = list(data.train_dataloader())
    assert sum(len(batch["lengths"]) for batch in batches) == len(data.parts["train"])


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("frames.bin", lambda raw: raw[:-1], "does not hold"),
        ("starts.npy", lambda raw: raw[:-8], "cannot be read"),
        ("labels.npy", lambda raw: raw[:-4] + np.int32(99).tobytes(), None),
        ("labels.npy", lambda raw: raw[:40], "cannot be read"),
        ("labels.npy", lambda raw: raw[:-20] + np.array([0, -1, 0, 0, 0], "<i4").tobytes(), "names speaker -1"),
        ("labels.npy", lambda raw: raw[:-20] + np.array([-2, 0, 0, 0, 0], "<i4").tobytes(), "names word -2"),
        ("labels.npy", lambda raw: raw[:-20] + np.array([2, 0, 0, 0, 0], "<i4").tobytes(), "names word 2, and there"),
        ("packed.json", lambda raw: raw[:-9], "is no packed corpus"),
        ("packed.json", lambda raw: json.dumps(json.loads(raw) | {"utterances": 10**9}).encode(), "labels.npy holds"),
        ("packed.json", lambda raw: json.dumps(json.loads(raw) | {"frames": -1}).encode(), "whole numbers"),
        ("packed.json", lambda raw: json.dumps(json.loads(raw) | {"names": {}}).encode(), "is no packed corpus"),
    ],
)
def test_damage_is_told(packed: Path, tmp_path: Path, file: str, damage, said: str | None) -> None:  # type: ignore[no-untyped-def]
    for path in packed.iterdir():
        (tmp_path / path.name).write_bytes(damage(path.read_bytes()) if path.name == file else path.read_bytes())
    if said is None:  # a take may be any number
        assert read_packed(tmp_path).labels[-1, -1] == 99
        return
    with pytest.raises(CorpusError, match=said):
        _ = read_packed(tmp_path).starts


def test_what_cannot_be_is_refused(packed: Path, tmp_path: Path) -> None:
    corpus = load_corpus("synthetic", **OPTIONS)
    with pytest.raises(CorpusError, match="is there already"):
        write_packed(packed, corpus, MfccConfig.at_rate(8_000))
    for given in ({"rate": 8_000}, {"split": "take"}, {"test": ["ann"]}, {"mfcc": {"deltas": 0}}):
        with pytest.raises(CorpusError, match="holds packed features"):
            SpeechDataModule(str(packed), **given).setup()  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="leave nobody"):
        SpeechDataModule(str(packed), test=1.0).setup()
    with pytest.raises(CorpusError, match="sentences are joined from sound"):
        SentenceDataModule(corpus=str(packed)).setup()
    found = read_packed(packed)
    with pytest.raises(CorpusError, match="nobody says word yes in training"):
        found.check_trained("word", np.flatnonzero(found.labels[:, 0] == 0))
    found.check_trained("word", np.arange(24))


@pytest.mark.parametrize(("shape", "said"), [((0, 3), "not (frames, 3)"), ((2, 4), "not (frames, 3)"), (None, "no")])
def test_a_folder_is_whole_or_not_there(tmp_path: Path, shape: tuple[int, int] | None, said: str) -> None:
    names: dict[str, tuple[str, ...]] = {"word": ("a",), "speaker": ("b",), "emotion": (), "gender": ()}
    labels, out = (0, 0, -1, -1, 0), tmp_path / "deep" / "packed"
    rows = [] if shape is None else [(torch.ones(2, 3), labels), (torch.ones(shape), labels)]
    with pytest.raises(CorpusError, match=re.escape(said)):
        write_rows_packed(out, "none", 16_000, GivenFeatures(given=3), names, rows)
    assert list(out.parent.iterdir()) == []
    found = write_rows_packed(out, "one", 16_000, GivenFeatures(given=3), names, [(torch.ones(2, 3), labels)])
    with pytest.raises(CorpusError, match="1 utterances have no emotion"):
        found.check_trained("emotion", np.arange(1))
    assert [path.name for path in out.parent.iterdir()] == ["packed"]


LABELED: tuple[dict[str, tuple[str, ...]], tuple[int, ...]] = (
    {"word": ("a",), "speaker": ("b",), "emotion": (), "gender": ()},
    (0, 0, -1, -1, 0),
)


def test_of_two_who_pack_into_one_folder_one_is_told(tmp_path: Path) -> None:
    """Whoever is first has it whole; nothing is left of the other."""
    (names, labels), out = LABELED, tmp_path / "packed"

    def rows(frames: int) -> Iterator[tuple[torch.Tensor, tuple[int, ...]]]:
        yield torch.ones(frames, 3), labels
        if frames > 1:
            write_rows_packed(out, "first", 16_000, GivenFeatures(given=3), names, rows(1))

    with pytest.raises(CorpusError, match="is there already"):
        write_rows_packed(out, "second", 16_000, GivenFeatures(given=3), names, rows(2))
    assert read_packed(out).name == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["packed"]


def test_what_is_packed_is_on_the_disk_before_it_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a power failure left with zeros in the place of features would be taken for speech."""
    (names, labels), out, flushed = LABELED, tmp_path / "packed", set[int]()
    wait = os.fsync

    def seen(file: int) -> None:
        assert not out.exists()
        flushed.add(os.fstat(file).st_ino)
        wait(file)

    monkeypatch.setattr(os, "fsync", seen)
    write_rows_packed(out, "one", 16_000, GivenFeatures(given=3), names, [(torch.ones(2, 3), labels)])
    assert {path.stat().st_ino for path in out.iterdir()} == flushed
