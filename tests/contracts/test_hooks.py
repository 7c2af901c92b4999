"""The law of the `Hooks` port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.adapters.memory_hooks import MemoryHooks
from levada.adapters.sqlite_hooks import SqliteHooks
from levada.ports import Hooks
from levada.records import ChangeFilter, Hook

ONE = Hook("a", "https://one.example/told", "secret", ChangeFilter("b.example", "words", 0.5), (3, 4))
TWO = Hook("b", "https://two.example/", "other")


@pytest.fixture(params=["memory", "sqlite"])
def hooks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hooks]:
    book: Hooks = MemoryHooks() if request.param == "memory" else SqliteHooks(tmp_path / "hooks.db")
    yield book
    book.close()


def test_what_is_added_is_there_as_it_was(hooks: Hooks) -> None:
    assert hooks.hooks() == []
    hooks.add(TWO)
    hooks.add(ONE)
    assert hooks.hooks() == [ONE, TWO]


def test_an_update_replaces_and_a_removed_hook_stays_removed(hooks: Hooks) -> None:
    hooks.add(ONE)
    further = replace(ONE, after=(9, 9), told=7)
    assert hooks.update(further)
    assert hooks.hooks() == [further]
    assert hooks.remove("a")
    assert not hooks.remove("a")
    assert not hooks.update(further)
    assert hooks.hooks() == []
