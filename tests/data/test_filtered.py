"""Filtered features on disk: what is none is refused."""

from pathlib import Path

import numpy as np
import pytest

from ppspeech.data.filtered import frames_given, read_given
from ppspeech.errors import CorpusError


def with_header(shape: str) -> bytes:
    """Six numbers under a header that gives their shape so."""
    said = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said.encode() + np.zeros(6, np.float32).tobytes()


def test_features_are_read(tmp_path: Path) -> None:
    path = tmp_path / "0.npy"
    path.write_bytes(with_header("(3, 2)"))
    assert read_given(path, 2).shape == (3, 2)
    assert frames_given(path) == 3


@pytest.mark.parametrize("shape", ["(3L, 2L)", "(3, 2", "(-3, 2)", "(3, 20000)"])
def test_a_header_that_numpy_would_mend_or_refuse_is_damage(tmp_path: Path, shape: str) -> None:
    """Long integers of Python 2 are read after a repair, and a warning: from a stranger's file, neither is wanted."""
    path = tmp_path / "0.npy"
    path.write_bytes(with_header(shape))
    with pytest.raises(CorpusError, match="holds no features"):
        read_given(path, 2)
