"""Writes are whole or absent; tables are shared by processes, and by nobody else."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from ppspeech.errors import CorpusError, PpspeechError
from ppspeech.storage import SharedTable, atomic_write, cache_folder, data_folder


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


COLUMNS = "name TEXT, count INTEGER, PRIMARY KEY (name)"


def test_a_table_keeps_its_rows_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "t.sqlite"
    table = SharedTable(path, "things", COLUMNS, "things")
    with table.transaction() as database:
        database.execute("INSERT INTO things VALUES ('a', 1)")

    def fail() -> None:
        with table.transaction() as database:
            database.execute("INSERT INTO things VALUES ('b', 2)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    again = SharedTable(path, "things", COLUMNS, "things")
    assert again.rows("SELECT * FROM things WHERE count >= ?", 0) == [("a", 1)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SharedTable(path, "things", COLUMNS, "things", fresh=True).rows("SELECT * FROM things") == []


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database, database:
        database.execute(f"CREATE TABLE IF NOT EXISTS things ({COLUMNS})")
        database.execute("CREATE TABLE IF NOT EXISTS others (name TEXT)")
    SharedTable(tmp_path / "t.sqlite", "things", COLUMNS, "things")
    with pytest.raises(PpspeechError, match="cannot hold others: its table others has other columns"):
        SharedTable(tmp_path / "t.sqlite", "others", COLUMNS, "others")
    (tmp_path / "no.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(PpspeechError, match="cannot hold things"):
        SharedTable(tmp_path / "no.sqlite", "things", COLUMNS, "things")
