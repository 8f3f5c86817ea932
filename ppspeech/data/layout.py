"""What a corpus is on disk: a folder, the sound files it must hold, and the CSV file that describes them."""

import csv
import errno
import os
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tokenize import TokenError

from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder

NUMPY_DAMAGE = (
    ValueError,
    OSError,
    EOFError,
    SyntaxError,
    TokenError,
    TypeError,
    RecursionError,
    MemoryError,
    UserWarning,
)
"""What NumPy raises for a file that is not whole, or whose header someone else wrote."""


@contextmanager
def no_repairs() -> Iterator[None]:
    """NumPy mends headers that other programs wrote, and warns: here such a file is damaged, a UserWarning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


GENDERS = {"f": "f", "female": "f", "m": "m", "male": "m"}


@dataclass(frozen=True)
class Published:
    """A corpus as its authors publish it: where, the folder that it unpacks to, and what that holds."""

    address: str
    folder: str
    holds: str

    def __str__(self) -> str:
        return f"get it from {self.address}; its folder {self.folder} holds {self.holds}"


def corpus_folder(name: str, folder: Path | str | None, published: Published | None = None) -> Path:
    """The folder of a corpus, which must exist: `folder`, else in the data folder the one called `name` or as it was
    published. Raises CorpusError that says where to get it.
    """
    where = f": {published}" if published else ": give the folder that holds it"
    if folder is not None:
        if not Path(folder).is_dir():
            raise CorpusError(f"no folder {folder} for corpus {name!r}{where}")
        return Path(folder)
    try:
        data = data_folder()
    except CorpusError as nowhere:
        raise CorpusError(f"{nowhere}; {name!r}{where}" if published else str(nowhere)) from None
    names = (name, published.folder) if published else (name,)
    for each in names:
        if (data / each).is_dir():
            return data / each
    raise CorpusError(f"no folder {' or '.join(names)} in {data} for corpus {name!r}{where}")


def require_files(corpus: str, folder: Path, names: Collection[str], total: int | None = None) -> None:
    """Check that `folder` holds every file of `names`, and that none is empty; no file is opened.

    `names` are paths inside `folder`, with `/`; `total` is how many files the corpus has, where that is known. Raises
    CorpusError with how many are absent or empty and the first few of their names.
    """
    if total is not None and len(names) != total:
        raise CorpusError(
            f"the metadata of corpus {corpus!r} in {folder} describes {len(names)} different files where the "
            f"corpus has {total}; copy it again"
        )
    by_parent: dict[str, set[str]] = defaultdict(set)
    for name in names:
        parent, _, file = name.rpartition("/")
        by_parent[parent].add(file)
    # One listing a subfolder is many times faster than one question a file.
    sizes: dict[str, int] = {}
    for parent, files in by_parent.items():
        if parent:
            inner_path(parent, f"corpus {corpus!r}")
        if not (folder / parent).is_dir():
            continue
        with os.scandir(folder / parent) as entries:
            for entry in entries:
                if entry.name in files and entry.is_file():
                    sizes[f"{parent}/{entry.name}" if parent else entry.name] = entry.stat().st_size
    _refuse(corpus, folder, "missing", [name for name in names if name not in sizes], len(names))
    _refuse(corpus, folder, "empty", [name for name in names if sizes[name] == 0], len(names))


def _refuse(corpus: str, folder: Path, fault: str, names: list[str], total: int) -> None:
    if names:
        raise CorpusError(
            f"corpus {corpus!r} in {folder} is incomplete: {len(names)} of {total} files {fault} "
            f"({first_few(names)}); copy it again"
        )


def first_few(names: Iterable[str], most: int = 3) -> str:
    """Names for an error message.

    >>> first_few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def read_rows(path: Path, columns: Collection[str], rows: int | None = None) -> list[dict[str, str]]:
    """Read a CSV file with a header line; every value comes back without surrounding white space.

    The file is UTF-8 and has `columns`, perhaps others too, and `rows` rows where that is known. Raises CorpusError
    naming the file and, where there is one, the line that is wrong.
    """
    try:
        # The signature is what spreadsheets write in front of UTF-8.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            header = [name.strip() for name in reader.fieldnames or ()]
            _check_header(path, header, columns)
            reader.fieldnames = header
            read = []
            for row in reader:
                if None in row or None in row.values():
                    raise CorpusError(
                        f"{path}, line {reader.line_num}: the header has {len(header)} columns and this row "
                        f"{'more' if None in row else 'fewer'}; quote values that hold a comma"
                    )
                read.append({name: value.strip() for name, value in row.items()})
    except FileNotFoundError:
        raise CorpusError(f"{path} is missing: a corpus is described by this file") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8 (byte {error.start}): save it again as UTF-8") from error
    except (csv.Error, OSError) as error:
        raise CorpusError(f"{path} cannot be read as CSV: {error}") from error
    if not read:
        raise CorpusError(f"{path} has no row below its header")
    if rows is not None and len(read) != rows:
        raise CorpusError(f"{path} lists {len(read)} rows where the corpus has {rows}; copy it again")
    return read


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with a header line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


@contextmanager
def whole_folder(folder: Path, *, closed: bool = False, first_stays: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `folder`; on success it becomes `folder`, on any failure it is removed.

    If somebody else has made `folder` in the meantime, theirs stays: a CorpusError, unless `first_stays` says that both
    are alike. `closed`: to other users.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as private:
        unfinished = Path(private) / folder.name  # a folder of its own, for the usual permissions
        unfinished.mkdir(mode=0o700 if closed else 0o777)
        yield unfinished
        try:
            unfinished.rename(folder)  # replaces an empty folder, refuses any other
        except OSError as refused:
            if refused.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            if not first_stays:
                raise CorpusError(f"{folder} is there already, made meanwhile: choose another folder") from None


def _check_header(path: Path, header: list[str], columns: Collection[str]) -> None:
    missing = [name for name in columns if name not in header]
    if missing:
        raise CorpusError(
            f"{path} has no column {', '.join(map(repr, missing))}; its header is {','.join(header) or 'empty'!r}"
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise CorpusError(f"{path} has column {', '.join(map(repr, twice))} more than once")


def inner_path(text: str, where: str) -> str:
    """A path from a CSV file as a plain path inside the corpus folder, with `/` and without `.`.

    `where` is the file and line, for the error. Raises CorpusError if it is empty, absolute or climbs with `..`: a
    manifest from elsewhere must not make ppspeech open files outside its folder. A link in the folder may lead out.
    """
    path = PurePosixPath(text)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in text:
        raise CorpusError(
            f"{where}: a path must be inside the corpus folder, without '..', got {text!r}; recordings that lie "
            "elsewhere can be linked into it (ln -s)"
        )
    return path.as_posix()


def gender_letter(text: str, where: str) -> str | None:
    """`f` or `m` from the spellings corpora use, None where nothing is said; `where` is for the error."""
    if not text:
        return None
    try:
        return GENDERS[text.lower()]
    except KeyError:
        raise CorpusError(f"{where}: gender must be one of {', '.join(GENDERS)} or empty, got {text!r}") from None
