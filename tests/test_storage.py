"""Writes are whole or absent."""

from pathlib import Path

import pytest

from ppspeech.errors import CorpusError
from ppspeech.storage import atomic_write, cache_folder, data_folder


def test_success_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "deeper" / "result.txt"
    for text in ("old", "new"):
        with atomic_write(target) as temporary:
            assert temporary.suffix == ".txt"
            temporary.write_text(text)
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_failure_keeps_the_old_file(tmp_path: Path, failure: type[BaseException]) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")

    def interrupted() -> None:
        with atomic_write(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_folders_follow_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path / "absent"))
    with pytest.raises(CorpusError, match="set PPSPEECH_DATA"):
        data_folder()
