"""The LIBSVM text format: `label index:value index:value ...`, one row a line."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import CorpusError


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
