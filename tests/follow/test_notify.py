"""Plug-in notifiers: each change at least once and in order, from their own position, whatever another does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event

import pytest

from levada.core import plugins
from levada.core.errors import PluginError
from levada.core.protocols import Notifier, Subscriptions
from levada.core.records import ChangeEvent
from levada.core.subscriptions import WEBHOOK, Subscription
from levada.follow.feed import Feed
from levada.follow.notify.runner import NotificationRunner
from levada.follow.notify.sender import WebhookSender
from levada.store.memory import MemoryStore
from levada.store.subscriptions import MemorySubscriptions, SqliteSubscriptions
from levada.testing.store.visits import first, links
from tests.follow.test_webhooks import GOOD, Hurried, Targets, facts, filled, told, when


@pytest.fixture(autouse=True)
def no_failures_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_failures", {})


class Notes:
    def __init__(self, act: Callable[[Sequence[ChangeEvent]], object] = lambda changes: None) -> None:
        self.told: list[tuple[int, int]] = []
        self._act = act

    def notify(self, changes: Sequence[ChangeEvent]) -> None:
        self._act(changes)
        self.told += [(change.shard, change.seq) for change in changes]


def more(store: MemoryStore, pages: int, site: str = "b") -> None:
    store.add(links(site, pages), [], 0.0)
    for lease in store.lease(0.0, pages, 60.0):
        store.commit([first(lease, 1.0, "text")])


def notified(
    notifiers: Mapping[str, Notifier],
    stores: Sequence[MemoryStore],
    until: Callable[[], bool],
    book: Subscriptions | None = None,
    *,
    meanwhile: Callable[[], None] = lambda: None,
    seconds: float = 10.0,
) -> Targets:
    """Serve until this holds; `meanwhile` happens once all have their positions."""
    hooks = book or MemorySubscriptions()
    targets, clock = Targets.__new__(Targets), Hurried()

    def load(name: str) -> Notifier:
        if name not in notifiers:
            raise PluginError(f'no plug-in "{name}"')
        return notifiers[name]

    async def story() -> None:
        targets.__init__()  # type: ignore[misc]
        serving = NotificationRunner(
            lambda: hooks,
            lambda: Feed(stores),
            clock,
            facts,
            lambda _: (),
            {WEBHOOK: WebhookSender(lambda: targets, clock)},
            chosen=lambda: ("missing", "webhook", *notifiers),
            load=load,
            seconds=seconds,
        )
        task = asyncio.create_task(serving.run())
        try:
            async with asyncio.timeout(20):
                await when(lambda: {hook.notifier for hook in hooks.subscriptions()} >= set(notifiers))
                meanwhile()
                await when(until)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())
    return targets


def test_a_notifier_is_told_of_each_change_of_each_shard_once_from_when_it_was_chosen() -> None:
    one, other, notes = filled(3), MemoryStore(), Notes()

    def meanwhile() -> None:
        more(one, 250)
        more(other, 2)

    notified({"notes": notes}, [one, other], lambda: len(notes.told) >= 252, meanwhile=meanwhile)
    assert [seq for shard, seq in notes.told if shard == 0] == list(range(4, 254))
    assert [seq for shard, seq in notes.told if shard == 1] == [1, 2]


def test_a_position_is_kept_where_webhooks_are_and_read_on_from(tmp_path: Path) -> None:
    store = filled(2)
    first_run, second_run = Notes(), Notes()
    for notes in (first_run, second_run):
        book = SqliteSubscriptions(tmp_path / "hooks.db")
        wanted = 3 if notes is first_run else 2
        site = "b" if notes is first_run else "c"
        if notes is second_run:
            more(store, wanted, site)  # while no server runs
        notified(
            {"notes": notes},
            [store],
            lambda notes=notes, wanted=wanted, book=book: (  # type: ignore[misc]
                len(notes.told) >= wanted and book.subscriptions()[0].told >= len(first_run.told) + len(second_run.told)
            ),
            book,
            meanwhile=(lambda: more(store, 3)) if notes is first_run else lambda: None,
        )
        book.close()
    assert [seq for _, seq in first_run.told + second_run.told] == [3, 4, 5, 6, 7]


def test_one_that_raises_is_told_again_and_delays_no_webhook(caplog: pytest.LogCaptureFixture) -> None:
    store, left = filled(0), [KeyError("down"), SystemExit(3)]

    def fail_twice(changes: Sequence[ChangeEvent]) -> None:
        if left:
            raise left.pop(0)

    notes, book = Notes(fail_twice), MemorySubscriptions()
    book.add(Subscription("hook", GOOD, "s", after=(0,)))
    targets = notified(
        {"notes": notes},
        [store],
        lambda: len(notes.told) == 2 and all(hook.told == 2 for hook in book.subscriptions()),
        book,
        meanwhile=lambda: more(store, 2),
    )
    assert notes.told == [(0, 1), (0, 2)]
    assert told(targets, GOOD) == ["0-1", "0-2"]
    assert plugins.failures()["notify.notifiers:notes"] == 2
    assert sum("notify.notifiers:notes failed" in record.message for record in caplog.records) == 1


def test_one_that_hangs_is_turned_off_keeps_its_position_and_delays_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, never, book = filled(0), Event(), MemorySubscriptions()
    hanging, good = Notes(lambda changes: never.wait()), Notes()
    notified(
        {"hangs": hanging, "good": good},
        [store],
        lambda: len(good.told) == 3 and "notify.notifiers:hangs" in plugins.failures(),
        book,
        meanwhile=lambda: more(store, 3),
        seconds=0.05,
    )
    assert plugins.failures()["notify.notifiers:hangs"] == 1
    assert [hook.told for hook in book.subscriptions()] == [3, 0]
    said = [record.message for record in caplog.records if "hangs" in record.message]
    assert [line.endswith("it is turned off for this run") for line in said] == [True]
    never.set()


def test_one_that_is_async_would_do_nothing_and_is_not_taken_for_told() -> None:
    class Async:
        async def notify(self, changes: Sequence[ChangeEvent]) -> None:
            raise AssertionError("nobody awaits it")

    notifier: Notifier = Async()  # type: ignore[assignment]
    store, book = filled(0), MemorySubscriptions()
    notified(
        {"async": notifier},
        [store],
        lambda: book.subscriptions()[0].failures >= 2,
        book,
        meanwhile=lambda: more(store, 1),
    )
    assert book.subscriptions()[0].told == 0
    assert book.subscriptions()[0].trouble == "TypeError: notify must not be async"


def test_one_that_cannot_be_loaded_is_said_once_and_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    store, notes = filled(0), Notes()
    notified({"notes": notes}, [store], lambda: len(notes.told) == 1, meanwhile=lambda: more(store, 1))
    said = [record.message for record in caplog.records if "missing" in record.message]
    assert len(said) == 1
    assert 'no plug-in "missing"' in said[0]
