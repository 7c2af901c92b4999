from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.collection import build


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that no test changes."""
    return build(tmp_path_factory.mktemp("collection") / "levada-data")
