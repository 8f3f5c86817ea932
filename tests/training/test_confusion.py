"""The picture of what was heard for what stays readable, whatever the words are."""

import struct
from pathlib import Path

import pytest
import torch

from ppspeech.training import Confusion


def size(path: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def drawn(names: list[str], path: Path) -> tuple[int, int]:
    confusion = Confusion(names)
    said = torch.arange(len(names)).repeat(3)
    confusion.add(said, (said + (torch.arange(len(said)) % 7 == 0)) % len(names))
    confusion.plot(path)
    return size(path)


@pytest.mark.parametrize("count", [3, 40, 194])
def test_its_size_is_bounded(count: int, tmp_path: Path) -> None:
    width, height = drawn([f"word{i}" for i in range(count)], tmp_path / "a.png")
    assert max(width, height) <= 2_500
    assert min(width, height) >= 400


@pytest.mark.parametrize("name", ["a" * 200, "はい", "$x_1$", "a[red]b", "ö ü"])
def test_any_label_is_drawn_without_a_warning(name: str, tmp_path: Path) -> None:
    assert min(drawn([name, "no", "x" * 90], tmp_path / "a.png")) >= 400
