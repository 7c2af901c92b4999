"""Folders of shards, and the collection they belong to."""

from __future__ import annotations

from pathlib import Path

from levada.core.folder import DataFolder
from levada.store.opening import collection_folder


def test_another_file_named_like_a_plan_in_the_folder_around_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "placement.json").write_text('{"key": "advised"}')
    data = DataFolder(tmp_path / "levada-data")
    data.make()
    assert collection_folder(data) is data
