"""A chart is written whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from levada.core.errors import StoreFull, UsageError
from levada.lab.pictures import save_picture


def full(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["a.svg", "a.png", "A.SVG"])
def test_the_same_figure_is_the_same_bytes(name: str, tmp_path: Path) -> None:
    save_picture(Figure(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    save_picture(Figure(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_on_a_full_disk_the_picture_that_was_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.svg").write_text("the old one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match="no space left"):
        save_picture(Figure(), tmp_path / "a.svg")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.svg", "the old one")]


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        save_picture(Figure(), tmp_path / "a.svg")
