"""Reading NumPy archives that must hold arrays of known types and shapes."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import CorpusError

# An array's kind (`f` float, `i` signed, `u` unsigned, `b` bool, `U` text) and its shape.
Expected = tuple[str, tuple[int, ...]]

# A damaged archive fails wherever its bytes stop making sense: in the directory, in a member's compression, its
# checksum or its header. A plain .npy file is not even a context manager (TypeError).
DAMAGE = (ValueError, OSError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read_arrays(path: Path, expected: Mapping[str, Expected]) -> dict[str, NDArray[Any]]:
    """Read the arrays called `expected` from an `.npz` file. Pickles are never loaded.

    Raises CorpusError naming the file and what is wrong: absent, not an archive, cut short, an array missing or of
    another type or shape, a number that is not finite.
    """
    if not path.is_file():
        raise CorpusError(f"{path} is missing")
    arrays: dict[str, NDArray[Any]] = {}
    try:
        # NumPy leaves a file that it opened by name open when the archive is damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            absent = sorted(set(expected) - set(archive.files))
            if absent:
                raise CorpusError(f"{path} has no array {', '.join(absent)}; copy it again")
            for name in expected:
                array = archive[name]
                if not isinstance(array, np.ndarray):  # bytes without NumPy's header come back as they are
                    raise ValueError(f"{name} is not an array")
                arrays[name] = array
    except CorpusError:
        raise
    except DAMAGE as error:
        raise CorpusError(f"{path} is damaged: {error}; copy it again") from error
    for name, (kind, shape) in expected.items():
        array = arrays[name]
        if array.dtype.kind != kind or array.shape != shape:
            raise CorpusError(
                f"{path}: array {name} must have shape {shape} and type {kind!r}, "
                f"got {array.shape} and {array.dtype.kind!r}"
            )
        if kind == "f" and not np.isfinite(array).all():
            raise CorpusError(f"{path}: array {name} holds a number that is not finite")
    return arrays
