"""What the tests of the data room share: copies of a corpus that may be damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

LinkedCopy = Callable[..., Path]


@pytest.fixture
def linked_copy(tmp_path: Path) -> LinkedCopy:
    """A function that copies a corpus folder: tables for real, and links in place of the rest.

    A test may remove the links and change the tables; of the subfolder `opened`, it may remove single files.
    """

    def copy(source: Path, opened: str | None = None) -> Path:
        target = tmp_path / source.name
        target.mkdir()
        for entry in source.iterdir():
            if entry.suffix == ".csv":
                shutil.copyfile(entry, target / entry.name)
            elif entry.name == opened:
                shutil.copytree(entry, target / opened, copy_function=lambda old, new: Path(new).symlink_to(old))
            else:
                (target / entry.name).symlink_to(entry)
        return target

    return copy
