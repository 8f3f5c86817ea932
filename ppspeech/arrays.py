"""The array types that rooms share."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.floating]
"""Real numbers of any precision."""
Residues: TypeAlias = NDArray[np.uint64]
"""Elements of a ring Z_{2^k}, k <= 64."""
Whole: TypeAlias = NDArray[np.int64]
"""Whole numbers with a sign."""
Bits: TypeAlias = NDArray[np.uint8]
"""Bits, one a byte."""
Bytes: TypeAlias = NDArray[np.uint8]
"""Bytes."""
