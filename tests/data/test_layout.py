from pathlib import Path

import pytest

from ppspeech.data.layout import corpus_folder, gender_letter, inner_path, read_rows, require_files
from ppspeech.errors import CorpusError


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_corpus_folder_defaults_to_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "birds").mkdir()
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path))
    assert corpus_folder("birds", None) == tmp_path / "birds"
    assert corpus_folder("birds", str(tmp_path)) == tmp_path
    with pytest.raises(CorpusError, match="'whales'"):
        corpus_folder("whales", None)


def test_require_files_names_what_is_missing(tmp_path: Path) -> None:
    names = [f"{word}/{n}.wav" for word in ("no", "yes") for n in range(5)]
    (tmp_path / "no").mkdir()
    for n in range(5):
        write(tmp_path / "no" / f"{n}.wav", "sound")
    with pytest.raises(CorpusError, match=r"5 of 10 files missing \(yes/0.wav, yes/1.wav, yes/2.wav and 2 more\)"):
        require_files("tiny", tmp_path, names)
    require_files("tiny", tmp_path, names[:5], total=5)
    with pytest.raises(CorpusError, match="5 different files where the corpus has 6"):
        require_files("tiny", tmp_path, names[:5], total=6)


def test_require_files_refuses_empty_files_folders_and_broken_links(tmp_path: Path) -> None:
    write(tmp_path / "empty.wav", "")
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "link.wav").symlink_to(tmp_path / "nowhere.wav")
    with pytest.raises(CorpusError, match=r"1 of 1 files empty \(empty.wav\)"):
        require_files("tiny", tmp_path, ["empty.wav"])
    with pytest.raises(CorpusError, match=r"2 of 3 files missing \(folder.wav, link.wav\)"):
        require_files("tiny", tmp_path, ["empty.wav", "folder.wav", "link.wav"])


def test_read_rows_strips_and_accepts_a_spreadsheets_signature(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '\ufeffname, age \r\n Zoë ,"3, or 4"\r\n')
    assert read_rows(path, ("name", "age")) == [{"name": "Zoë", "age": "3, or 4"}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no column 'name'"),
        ("age\n3\n", "no column 'name'; its header is 'age'"),
        ("name,name\na,b\n", "'name' more than once"),
        ("name,age\n", "no row"),
        ("name,age\na,1\nb\n", "line 3.*fewer"),
        ("name,age\na,1,2\n", "line 2.*more"),
        ('name,age\na,"1\n', "cannot be read as CSV"),
        ("name,age\nZoë,3\n".encode("latin-1"), "not UTF-8"),
        ("name,age\na,1\n", "lists 1 rows where the corpus has 2"),
    ],
)
def test_read_rows_refuses(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(CorpusError, match=complaint) as refusal:
        read_rows(path, ("name",), rows=2)
    assert str(path) in str(refusal.value)


def test_read_rows_refuses_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="missing"):
        read_rows(tmp_path / "a.csv", ())
    with pytest.raises(CorpusError, match="cannot be read"):
        read_rows(tmp_path, ())


@pytest.mark.parametrize("path", ["", ".", "..", "/etc/passwd", "../a.wav", "a/../../b.wav", "a\0.wav"])
def test_inner_path_refuses_to_leave(path: str) -> None:
    with pytest.raises(CorpusError, match="row 3: a path must be inside"):
        inner_path(path, "row 3")


def test_inner_path_is_plain() -> None:
    assert inner_path("./a//b/./c.wav", "here") == "a/b/c.wav"
    assert inner_path("..a/b..wav", "here") == "..a/b..wav"


def test_gender_letter() -> None:
    assert [gender_letter(text, "here") for text in ("male", "F", "m", "Female", "")] == ["m", "f", "m", "f", None]
    with pytest.raises(CorpusError, match=r"here: gender.*'x'"):
        gender_letter("x", "here")
