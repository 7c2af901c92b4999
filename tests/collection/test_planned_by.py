"""A crawl brings forward what its settings want sooner than those by which the visits are planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from levada.collection.starts import planned_by, reschedule
from levada.core.errors import StoreError
from levada.core.folder import DataFolder
from levada.core.records import PlanSelection
from levada.core.settings import Settings
from levada.store.base import Store
from levada.store.opening import open_store, store_limits
from levada.testing.store.visits import first, links

NOW, HOUR, DAY = 1_000_000.0, 3_600.0, 86_400.0
PAGES = 10


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data")
    made.make()
    return made


@pytest.fixture
def store(folder: DataFolder) -> Iterator[Store]:
    """Pages that were visited just now, and are to be visited after a month."""
    settings = Settings()
    with closing(open_store(folder, settings.store, store_limits(settings))) as opened:
        opened.add(links("a", PAGES), [], NOW)
        leases = opened.lease(NOW, PAGES, 60.0)
        opened.commit([first(lease, NOW, lease.page.url, interval=30 * DAY) for lease in leases])
        yield opened


def waits(store: Store) -> list[float]:
    pages = store.planned(PlanSelection(later_than=NOW - 1.0), 0, 100)
    return [(page.next_visit or 0.0) - NOW for page in pages]


def test_what_was_changed_while_no_crawl_ran_is_done_by_the_next_one(folder: DataFolder, store: Store) -> None:
    folder.save_settings(Settings())
    reschedule(folder, store, Settings(), NOW)
    assert min(waits(store)) == 30 * DAY
    folder.change_settings({"revisit.ceiling": HOUR}, "a test")
    reschedule(folder, store, folder.settings(), NOW)
    assert max(waits(store)) < HOUR
    assert planned_by(folder, Settings()).revisit.ceiling == HOUR


def test_a_crawl_that_died_between_keeping_and_rescheduling_is_made_up_for(
    folder: DataFolder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reschedule(folder, store, Settings(), NOW)
    lower = Settings().replace({"revisit.ceiling": HOUR})
    folder.save_settings(lower)

    def die(pages: Sequence[Any]) -> None:
        raise StoreError("here it dies")

    with monkeypatch.context() as dying:
        dying.setattr(store, "bring_forward", die)
        with pytest.raises(StoreError, match="here it dies"):
            reschedule(folder, store, lower, NOW)
    assert planned_by(folder, lower) == Settings()
    reschedule(folder, store, lower, NOW)
    assert max(waits(store)) < HOUR
    assert planned_by(folder, lower) == lower


@pytest.mark.parametrize("content", [None, b"", b'{"revisit": {"never": 1}, "guard": {}}'])
def test_without_a_readable_note_the_kept_settings_count(folder: DataFolder, content: bytes | None) -> None:
    folder.save_settings(Settings().replace({"revisit.ceiling": 7 * DAY}))
    if content is not None:
        folder.planned.write_bytes(content)
    assert planned_by(folder, Settings()).revisit.ceiling == 7 * DAY
