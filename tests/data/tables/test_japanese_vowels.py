from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.tables.japanese_vowels import load_japanese_vowels
from ppspeech.errors import CorpusError


def test_sequences_equal_a_slow_loop(data: Path) -> None:
    vowels = load_japanese_vowels()
    archive = dict(np.load(data / "japanese_vowels.npz"))
    assert vowels.frames.shape == (640, 29, 12)
    start = 0
    for n, length in enumerate(archive["lengths"].tolist()):
        expected = torch.zeros(29, 12)
        expected[:length] = torch.from_numpy(archive["frames"][start : start + length])
        assert torch.equal(vowels.frames[n], expected)
        start += length
    assert vowels.speaker.tolist() == [number - 1 for number in archive["speaker"].tolist()]
    assert (int(vowels.lengths.min()), int(vowels.lengths.max())) == (7, 29)


def test_official_split(data: Path) -> None:
    train, test = load_japanese_vowels().train_test()
    assert (len(train), len(test)) == (270, 370)
    assert torch.bincount(train.speaker).tolist() == [30] * 9
    assert int(train.lengths.sum() + test.lengths.sum()) == 9_961


def test_damaged_file_is_refused(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "japanese_vowels.npz"
    path.write_bytes((data / path.name).read_bytes()[:2000])
    with pytest.raises(CorpusError, match=r"japanese_vowels.npz is damaged"):
        load_japanese_vowels(tmp_path)
    arrays = dict(np.load(data / path.name))
    np.savez(path, **(arrays | {"lengths": arrays["lengths"] + 1}))
    with pytest.raises(CorpusError, match="lengths do not fit the 9961 frames"):
        load_japanese_vowels(tmp_path)
    np.savez(path, **(arrays | {"speaker": arrays["speaker"] % 9}))
    with pytest.raises(CorpusError, match="speakers or split"):
        load_japanese_vowels(tmp_path)
    np.savez(path, **(arrays | {"frames": arrays["frames"][1:]}))
    with pytest.raises(CorpusError, match="frames must have shape"):
        load_japanese_vowels(tmp_path)
