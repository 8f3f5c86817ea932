"""The files that tables come in: NumPy archives of known types and shapes, and LIBSVM text."""

import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.data.layout import NUMPY_DAMAGE, no_repairs
from ppspeech.errors import CorpusError

# An array's kind (`f` float, `i` signed, `u` unsigned, `b` bool, `U` text) and its shape.
Expected = tuple[str, tuple[int, ...]]

# A damaged archive fails wherever its bytes stop making sense: in the directory, in a member's compression, its
# checksum or its header. A plain .npy file is not even a context manager (TypeError).
DAMAGE = (*NUMPY_DAMAGE, RuntimeError, zipfile.BadZipFile, zlib.error)


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
        with no_repairs(), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
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


def read_libsvm(lines: Iterable[str], features: int, source: str) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Read rows of LIBSVM text as dense arrays; empty lines and what follows a `#` are skipped.

    Indices run from 1 to `features`; `source` is the file's name, for the errors. Returns the features,
    `(rows, features)`, 0 where no entry is, and the labels, `(rows,)`. Raises CorpusError naming the line, for a label
    or an entry that is not a finite number, an index out of range, or indices that do not increase.

    >>> x, y = read_libsvm(["+1 1:0.5 3:2", "-1 2:1"], features=3, source="two rows")
    >>> x.tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    labels: list[float] = []
    places: list[int] = []
    values: list[float] = []
    for number, line in enumerate(lines, start=1):
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue
        start, previous = len(labels) * features - 1, 0
        try:
            labels.append(_finite(tokens[0]))
            for token in tokens[1:]:
                index_text, _, value_text = token.partition(":")
                index = int(index_text)
                if not previous < index <= features:
                    raise ValueError(f"index {index} follows {previous}: indices increase from 1 to {features}")
                places.append(start + index)
                values.append(_finite(value_text))
                previous = index
        except ValueError as error:
            raise CorpusError(f"{source}, line {number}: not LIBSVM text: {error}") from error
    dense = np.zeros(len(labels) * features, dtype=np.float32)
    dense[places] = values
    return dense.reshape(len(labels), features), np.array(labels)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not finite")
    return value
