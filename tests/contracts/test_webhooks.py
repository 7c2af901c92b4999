"""The contract of stored webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.core.protocols import Webhooks
from levada.core.records import ChangeSelection, Webhook
from levada.store.hooks import MemoryWebhooks, SqliteWebhooks

ONE = Webhook("a", "https://one.example/told", "secret", ChangeSelection("b.example", "words", 0.5), (3, 4))
TWO = Webhook("b", "https://two.example/", "other")


@pytest.fixture(params=["memory", "sqlite"])
def hooks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Webhooks]:
    book: Webhooks = MemoryWebhooks() if request.param == "memory" else SqliteWebhooks(tmp_path / "hooks.db")
    yield book
    book.close()


def test_what_is_added_is_there_as_it_was(hooks: Webhooks) -> None:
    assert hooks.hooks() == []
    hooks.add(TWO)
    hooks.add(ONE)
    assert hooks.hooks() == [ONE, TWO]


def test_an_update_replaces_and_a_removed_hook_stays_removed(hooks: Webhooks) -> None:
    hooks.add(ONE)
    further = replace(ONE, after=(9, 9), told=7)
    assert hooks.update(further)
    assert hooks.hooks() == [further]
    assert hooks.remove("a")
    assert not hooks.remove("a")
    assert not hooks.update(further)
    assert hooks.hooks() == []
