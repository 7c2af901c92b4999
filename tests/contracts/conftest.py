"""Every adapter of a port, for the one suite that all must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from levada.adapters.limits import StoreLimits
from levada.adapters.memory import MemoryStore
from levada.adapters.sqlite import SqliteStore
from tests.visits import Store

OpenStore = Callable[[StoreLimits], Store]


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Store] = []

    def open_with(limits: StoreLimits) -> Store:
        if request.param == "memory":
            opened.append(MemoryStore(limits=limits))
        else:
            opened.append(SqliteStore(tmp_path / f"{len(opened)}.db", limits=limits))
        return opened[-1]

    yield open_with
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store(StoreLimits())
