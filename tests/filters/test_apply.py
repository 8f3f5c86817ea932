"""Filtered features on disk: complete, without what is private, and with a statement that is true."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.audio.frames import Frames
from ppspeech.errors import ModelError
from ppspeech.filters import FeatureNoise, LinearFilter
from ppspeech.filters.apply import Owner, private_file, read_filtered, write_filtered
from ppspeech.privacy.guarantee import Guarantee

PEOPLE = 3


def samples(frames: bool = False) -> tuple[list[Tensor], list[Owner]]:
    """Nine samples of three people, sorted by person as corpora are."""
    generator = torch.Generator().manual_seed(0)
    owners = [Owner(f"word{i % 3}", f"person{i // 3}", f"r{i}") for i in range(9)]
    shapes = [(2 + i, 4) if frames else (4,) for i in range(9)]
    return [torch.randn(*shape, generator=generator) for shape in shapes], owners


def written(folder: Path, frames: bool = False, **more: Any) -> tuple[LinearFilter, list[Tensor], Guarantee]:
    filter = LinearFilter(4, 2)
    inputs, owners = samples(frames)
    kind = "frames" if frames else "vectors"
    guarantee = write_filtered(folder, filter, owners, lambda i: inputs[i], kind=kind, **more)  # type: ignore[arg-type]
    return filter, inputs, guarantee


@pytest.mark.parametrize("frames", [False, True])
def test_what_is_written_is_what_the_filter_gives(tmp_path: Path, frames: bool) -> None:
    filter, inputs, guarantee = written(tmp_path / "out", frames, about={"hides": "person"})
    read = read_filtered(tmp_path / "out")
    found = read.features
    assert isinstance(found, Frames) == frames
    for place in range(9):
        # The recording says which sample it was; the order on disk is another one.
        with (tmp_path / "out.private.csv").open() as file:
            index = int(list(csv.DictReader(file))[place]["recording"][1:])
        got = found.features[place, : found.lengths[place]] if isinstance(found, Frames) else found[place]
        torch.testing.assert_close(got, filter(inputs[index]).detach())
        assert read.private_names[read.private[place]] == f"person{index // 3}"
        assert read.kept_names[read.kept[place]] == f"word{index % 3}"
    assert guarantee.kind == "none"
    assert read.statement["about"] == {"hides": "person"}
    assert "proves nothing" in read.statement["guarantee"]["caveat"]


def test_nothing_in_the_folder_names_a_person(tmp_path: Path) -> None:
    orders = set()
    for trial in range(4):
        folder = tmp_path / f"out{trial}"
        written(folder, frames=True)
        for path in folder.rglob("*"):
            assert "person" not in path.name
            assert path.is_dir() or path.suffix == ".npz" or "person0" not in path.read_text()
        manifest = (folder / "manifest.csv").read_text().splitlines()
        assert manifest[0] == "sample,kept"
        assert sorted(line.split(",")[1] for line in manifest[1:]) == sorted(f"word{i % 3}" for i in range(9))
        assert private_file(folder).stat().st_mode & 0o077 == 0
        orders.add(private_file(folder).read_text())
    assert len(orders) > 1  # 9! orders: four equal ones, or one as in the corpus, would show whose sample is whose


def test_noise_is_stated_for_the_person_with_the_most_samples(tmp_path: Path) -> None:
    noise = FeatureNoise(bound=1.0, epsilon=0.5)
    _, inputs, guarantee = written(tmp_path / "out", frames=True, noise=noise)
    most = sum(len(clip) for clip in inputs[6:])  # the last person has the longest clips
    assert guarantee.epsilon == pytest.approx(0.5 * most)
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert statement["most_samples_of_one_person"] == most
    assert Guarantee.from_json(statement["each_sample"]).epsilon == 0.5
    read = read_filtered(tmp_path / "out").features
    assert isinstance(read, Frames)
    # Clipped to norm 1, then noise of norm Gamma(2, 2 B / epsilon): 8 on average, over 54 frames +- 0.8.
    assert 4 < read.features.norm(dim=-1).sum() / read.lengths.sum() < 12


def test_damage_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    written(folder)
    with pytest.raises(ModelError, match="exists already"):
        written(folder)
    good = {path: path.read_bytes() for path in [*folder.rglob("*.*"), private_file(folder)]}

    def damaged(path: Path, content: bytes, word: str) -> None:
        path.write_bytes(content)
        with pytest.raises(ModelError, match=word):
            read_filtered(folder)
        path.write_bytes(good[path])

    features = folder / "samples" / "000000.npz"
    damaged(features, b"PK rubbish", "holds no filtered samples")
    np.savez(tmp_path / "bad.npz", features=np.full((9, 2), np.nan))
    damaged(features, (tmp_path / "bad.npz").read_bytes(), "finite")
    np.savez(tmp_path / "short.npz", features=np.zeros((8, 2)))
    damaged(features, (tmp_path / "short.npz").read_bytes(), "8 samples where its manifest lists 9")
    damaged(folder / "manifest.csv", b"sample,kept\n", "at least one row")
    damaged(folder / "manifest.csv", b"sample,kept\n1,a\n", "in order, from 0")
    damaged(private_file(folder), b"sample,private,recording\n0,a,b\n", "do not belong together")
    damaged(folder / "privacy.json", b"{}", "no statement")
    private_file(folder).unlink()
    with pytest.raises(ModelError, match="cannot read"):
        read_filtered(folder)


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no sample"):
        write_filtered(tmp_path / "a", LinearFilter(4, 2), [], lambda _: torch.zeros(4), kind="vectors")
    with pytest.raises(ModelError, match="vectors or frames"):
        write_filtered(tmp_path / "a", LinearFilter(4, 2), samples()[1], lambda _: torch.zeros(4), kind="x")  # type: ignore[arg-type]
