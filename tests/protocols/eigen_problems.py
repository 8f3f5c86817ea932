"""Second moments with eigenvalues and directions that are known, divided between parties."""

import numpy as np

from ppspeech.arrays import Reals


def spectrum(features: int, ratio: float = 1.1, *, flat: bool = False) -> Reals:
    """Eigenvalues, the first `ratio` times the second; the others equal to it, or falling to a hundredth of it."""
    values = np.ones(features)
    values[0] = ratio
    if not flat:
        values[2:] = np.linspace(0.9, 0.01, features - 2)
    return values


def problem(values: Reals, seed: int, parties: int = 2) -> tuple[list[Reals], Reals]:
    """Frames of each party `(frames, features)`, 3 frames a feature in all, and the directions as rows, first first."""
    rng = np.random.default_rng(seed)
    features = len(values)
    directions = np.linalg.qr(rng.normal(size=(features, features)))[0]
    mixed = np.linalg.qr(rng.normal(size=(3 * features, features)))[0]
    frames = mixed @ (np.sqrt(values)[:, None] * directions.T)
    return np.array_split(frames, parties), directions.T


def turned(found: Reals, true: Reals) -> float:
    """1 - |cos| of the angle between two unit vectors."""
    return 1 - abs(float(found @ true))
