"""Where files go and how they get there: data and cache folders, and writes that are whole or absent."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppspeech.errors import CorpusError


def cache_folder() -> Path:
    """The folder for what can be made again: `PPSPEECH_CACHE`, else `ppspeech` in the user's cache folder."""
    chosen = os.environ.get("PPSPEECH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ppspeech"


def data_folder() -> Path:
    """The folder that holds the real corpora: `PPSPEECH_DATA`, else `../shared/data` beside the project.

    Raises:
        CorpusError: if neither is there.
    """
    chosen = os.environ.get("PPSPEECH_DATA")
    folder = Path(chosen) if chosen else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise CorpusError(
            f"no data folder at {folder}: set PPSPEECH_DATA to the folder that holds the corpora, "
            "or use the built-in voices (corpus 'synthetic'), which need no file"
        )
    return folder


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path`, on any failure it is removed.

    A reader sees the old file, the new file or no file, never part of one, also after Ctrl-C, on a full
    disk, and with several writers of the same path. The temporary name keeps the suffix of `path`, which
    many writers choose their format by.

    Args:
        path: the file to make or replace; missing parent folders are made.
        durable: wait until the bytes are on the disk; False for caches of many small files, which a power
            failure may empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
