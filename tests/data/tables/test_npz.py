import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppspeech.data.tables.files import read_arrays
from ppspeech.errors import CorpusError

EXPECTED = {"x": ("f", (20, 3)), "y": ("u", (20,))}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "made.npz"
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    np.savez_compressed(path, x=x, y=np.arange(20, dtype=np.uint8))
    return path


def test_reads_what_is_asked_for(archive: Path) -> None:
    arrays = read_arrays(archive, {"y": ("u", (20,))})
    assert list(arrays) == ["y"]
    assert arrays["y"].tolist() == list(range(20))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        ({"z": ("f", ())}, "has no array z"),
        ({"x": ("f", (20, 4))}, r"x must have shape \(20, 4\) and type 'f', got \(20, 3\) and 'f'"),
        ({"x": ("u", (20, 3))}, "type 'u', got .* and 'f'"),
    ],
)
def test_other_arrays_are_refused(
    archive: Path, expected: dict[str, tuple[str, tuple[int, ...]]], complaint: str
) -> None:
    with pytest.raises(CorpusError, match=complaint) as refusal:
        read_arrays(archive, expected)
    assert str(archive) in str(refusal.value)


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([1.0, np.nan]))
    with pytest.raises(CorpusError, match="x holds a number that is not finite"):
        read_arrays(tmp_path / "a.npz", {"x": ("f", (2,))})


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([object()], dtype=object))
    with pytest.raises(CorpusError, match="damaged: Object arrays cannot be loaded"):
        read_arrays(tmp_path / "a.npz", {"x": ("f", (1,))})


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(CorpusError, match="is missing"):
        read_arrays(path, EXPECTED)
    for content in (b"", b"not an archive"):
        path.write_bytes(content)
        with pytest.raises(CorpusError, match="is damaged"):
            read_arrays(path, EXPECTED)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(CorpusError, match="is damaged"):
        read_arrays(path, EXPECTED)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x.npy", b"no header")
        made.writestr("y.npy", b"")
    with pytest.raises(CorpusError, match=r"a.npz"):
        read_arrays(path, EXPECTED)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_damage_is_a_corpus_error_or_does_not_matter(archive: Path, data: st.DataObject) -> None:
    content = archive.read_bytes()
    whole = read_arrays(archive, EXPECTED)
    damaged = archive.with_name("damaged.npz")
    if data.draw(st.booleans()):
        damaged.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        with pytest.raises(CorpusError, match="damaged"):
            read_arrays(damaged, EXPECTED)
        return
    place = data.draw(st.integers(0, len(content) - 1))
    changed = bytes([content[place] ^ data.draw(st.integers(1, 255))])
    damaged.write_bytes(content[:place] + changed + content[place + 1 :])
    try:
        read = read_arrays(damaged, EXPECTED)
    except CorpusError:
        return
    assert all(np.array_equal(read[name], whole[name]) for name in EXPECTED)
