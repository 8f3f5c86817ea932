from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.tables.har import load_har
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError


@pytest.fixture(scope="module")
def features(data: Path) -> Table:
    return load_har()


def test_features_and_official_split(features: Table) -> None:
    assert features.features.shape == (10_299, 561)
    assert features.features.abs().max() <= 1
    train, test = features.train_test()
    assert (len(train), len(test)) == (7_352, 2_947)
    assert train.groups is not None
    assert test.groups is not None
    assert (len(set(train.groups.tolist())), len(set(test.groups.tolist()))) == (21, 9)
    assert not set(train.groups.tolist()) & set(test.groups.tolist())
    assert features.label_names[1] == "walking upstairs"


def test_windows_are_the_same_rows_in_their_units(features: Table) -> None:
    windows = load_har(windows=True)
    assert windows.features.shape == (10_299, 9, 128)
    assert windows.feature_names[0] == "body_acc_x"
    assert torch.equal(windows.labels, features.labels)
    assert torch.equal(windows.extra["recording"], features.extra["recording"])
    # A body at rest feels 1 g, whichever way the telephone lies.
    total = [windows.feature_names.index(f"total_acc_{axis}") for axis in "xyz"]
    lying = windows.features[windows.labels == features.label_names.index("laying")]
    assert lying[:, total].square().sum(1).sqrt().median() == pytest.approx(1, abs=0.05)


def test_splits_by_subject_and_recording_only(features: Table) -> None:
    with pytest.raises(CorpusError, match=r"overlap.*by groups or by recording"):
        features.split_by_row(0.3)
    train, test = features.split_by_group(0.3, by="recording", seed=1)
    assert not set(train.extra["recording"].tolist()) & set(test.extra["recording"].tolist())
    train, test = features.split_by_group([1, 2, 3])
    assert test.groups is not None
    assert set(test.groups.tolist()) == {1, 2, 3}
    with pytest.raises(CorpusError, match="overlap"):
        train.split_by_row(0.3)


def test_damaged_files_are_refused(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "uci_har_features.npz"
    with pytest.raises(CorpusError, match=r"uci_har_features.npz is missing"):
        load_har(tmp_path)
    path.write_bytes((data / "uci_har" / path.name).read_bytes()[:100_000])
    with pytest.raises(CorpusError, match=r"uci_har_features.npz is damaged"):
        load_har(tmp_path)
    arrays = dict(np.load(data / "uci_har" / path.name))
    light = arrays | {"X": np.zeros_like(arrays["X"])}
    np.savez(path, **(light | {"is_test": np.roll(arrays["is_test"], 1)}))
    with pytest.raises(CorpusError, match="a subject is on both sides"):
        load_har(tmp_path)
    np.savez(path, **(light | {"subject": arrays["subject"].clip(2)}))
    with pytest.raises(CorpusError, match="29 subjects and 2947 test rows where 30 and 2947"):
        load_har(tmp_path)
