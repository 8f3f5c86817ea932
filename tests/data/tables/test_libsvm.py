import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ppspeech.data.tables.files import read_libsvm
from ppspeech.errors import CorpusError

values = st.floats(-100, 100, width=32).filter(lambda value: value == 0 or abs(value) > 1e-30)


@settings(deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=values), st.booleans())
def test_agrees_with_scikit_learn(features: np.ndarray, comment: bool) -> None:
    labels = np.arange(len(features)) % 3 - 1
    file = io.BytesIO()
    dump_svmlight_file(features, labels, file, zero_based=False, comment="by scikit-learn" if comment else None)
    ours, our_labels = read_libsvm(file.getvalue().decode().splitlines(), features.shape[1], "made")
    file.seek(0)
    theirs, their_labels = load_svmlight_file(file, n_features=features.shape[1], zero_based=False)
    np.testing.assert_array_equal(ours, theirs.toarray().astype(np.float32))
    np.testing.assert_array_equal(our_labels, their_labels)


def test_empty_lines_and_rows_without_entries() -> None:
    features, labels = read_libsvm(["", "# nothing", "-1", "+1 2:3 # why"], 2, "made")
    assert features.tolist() == [[0, 0], [0, 3]]
    assert labels.tolist() == [-1, 1]
    assert read_libsvm([], 4, "made")[0].shape == (0, 4)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("one 1:1", "could not convert"),
        ("nan 1:1", "'nan' is not finite"),
        ("+1 1", "could not convert"),
        ("+1 1:", "could not convert"),
        ("+1 :1", "invalid literal"),
        ("+1 a:1", "invalid literal"),
        ("+1 qid:3 1:1", "invalid literal"),
        ("+1 1.5:1", "invalid literal"),
        ("+1 1:inf", "'inf' is not finite"),
        ("+1 0:1", "index 0 follows 0: indices increase from 1 to 3"),
        ("+1 -1:1", "index -1 follows 0"),
        ("+1 4:1", "index 4 follows 0"),
        ("+1 2:1 2:1", "index 2 follows 2"),
        ("+1 3:1 1:1", "index 1 follows 3"),
        ("+1 1:1:1", "could not convert"),
    ],
)
def test_malformed_lines_are_refused(line: str, complaint: str) -> None:
    with pytest.raises(CorpusError, match=f"made, line 2: not LIBSVM text: .*{complaint}"):
        read_libsvm(["+1 1:1", line], 3, "made")
