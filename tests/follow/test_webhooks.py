"""Every webhook gets every change, and one that hangs delays no other."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

import pytest

from levada.core.clock import SystemClock
from levada.core.errors import StoreLocked
from levada.core.records import ChangeEvent, ChangeFacts, ChangeSelection, Request, Response
from levada.core.subscriptions import WEBHOOK, Subscription
from levada.follow.feed import Feed
from levada.follow.notify.runner import NotificationRunner, backoff
from levada.follow.notify.sender import WebhookSender, signature
from levada.store.memory import MemoryStore
from levada.store.subscriptions import MemorySubscriptions
from levada.testing.store.visits import first, links

GOOD, HANGS, FAILS = "https://good.example/", "https://hangs.example/", "https://fails.example/"


class Targets:
    """Those who are told: one answers, one never does, one fails twice."""

    def __init__(self) -> None:
        self.told: dict[str, list[Request]] = {}
        self.enough = asyncio.Event()
        self.failures = 2

    async def fetch(self, request: Request) -> Response:
        self.told.setdefault(request.url, []).append(request)
        if request.url == HANGS:
            await asyncio.Event().wait()
        if request.url == FAILS and self.failures:
            self.failures -= 1
            return Response(request.url, 503)
        if request.url == FAILS:
            self.enough.set()
        return Response(request.url, 204)

    async def close(self) -> None:
        """Nothing is held that needs closing."""


class Hurried(SystemClock):
    """Time passes by sleeping: at once, or after the moment that the processes beside this one are given."""

    def __init__(self, moment: float = 0.0) -> None:
        self.slept = 0.0
        self._moment = moment

    def now(self) -> float:
        return super().now() + self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        await asyncio.sleep(self._moment)


def filled(pages: int) -> MemoryStore:
    store = MemoryStore()
    store.add(links("a", pages), [], 0.0)
    for lease in store.lease(0.0, pages, 60.0):
        store.commit([first(lease, 1.0, "text")])
    return store


def facts(changes: Sequence[ChangeEvent]) -> list[ChangeFacts]:
    return [
        ChangeFacts(f"{each.shard}-{each.seq}", "", each.what.value, each.url, each.site, each.title, each.version, 0.5)
        for each in changes
    ]


def told(targets: Targets, url: str) -> list[str]:
    return [each["id"] for request in targets.told.get(url, ()) for each in json.loads(request.body or b"")["changes"]]


def run(
    hooks: list[Subscription],
    store: MemoryStore,
    until: Callable[[Targets, MemorySubscriptions], Awaitable[None]],
    book: MemorySubscriptions | None = None,
) -> Targets:
    book = book or MemorySubscriptions()

    async def story() -> Targets:
        targets = Targets()
        for hook in hooks:
            book.add(hook)
        clock = Hurried()
        task = asyncio.create_task(
            NotificationRunner(
                lambda: book,
                lambda: Feed([store]),
                clock,
                facts,
                lambda _: (),
                {WEBHOOK: WebhookSender(lambda: targets, clock)},
            ).run()
        )
        try:
            await asyncio.wait_for(until(targets, book), 20.0)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return targets

    return asyncio.run(story())


async def when(holds: Callable[[], bool]) -> None:
    """Let the others run until this holds; whoever waits for it has a deadline."""
    for _ in range(10_000_000):
        if holds():
            return
        await asyncio.sleep(0)


def test_one_that_hangs_delays_nobody_and_one_that_fails_is_told_again() -> None:
    async def until(targets: Targets, book: MemorySubscriptions) -> None:
        await targets.enough.wait()
        await when(lambda: all(hook.told == 250 for hook in book.subscriptions() if hook.url != HANGS))

    hooks = [
        Subscription("a", GOOD, "s", after=(0,)),
        Subscription("b", HANGS, "s", after=(0,)),
        Subscription("c", FAILS, "s", after=(0,)),
    ]
    targets = run(hooks, filled(250), until)
    everything = [f"0-{seq}" for seq in range(1, 251)]
    assert told(targets, GOOD) == everything
    assert told(targets, FAILS)[:200] == everything[:100] * 2  # twice refused, so told again
    assert list(dict.fromkeys(told(targets, FAILS))) == everything
    assert len(targets.told[HANGS]) == 1


class LockedSubscriptions(MemorySubscriptions):
    """Somebody else holds the file for a while."""

    def __init__(self, locked: str) -> None:
        super().__init__()
        self.locked = locked
        self.refusals = 0

    def subscriptions(self) -> list[Subscription]:
        self._refuse("subscriptions")
        return super().subscriptions()

    def get(self, id: str) -> Subscription | None:
        self._refuse("get")
        return super().get(id)

    def _refuse(self, operation: str) -> None:
        if operation == self.locked:
            self.refusals += 1
            raise StoreLocked("somebody else writes")


@pytest.mark.parametrize(
    ("locked", "says"),
    [("subscriptions", "notifications wait: somebody"), ("get", "the notification a waits: somebody")],
)
def test_a_store_that_is_locked_for_a_while_ends_no_webhook_and_is_said_once(
    locked: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    book = LockedSubscriptions(locked)

    async def until(targets: Targets, _: MemorySubscriptions) -> None:
        await when(lambda: book.refusals >= 5)
        book.locked = ""
        await when(lambda: book.subscriptions()[0].told == 3)

    targets = run([Subscription("a", GOOD, "s", after=(0,))], filled(3), until, book)
    assert set(told(targets, GOOD)) == {"0-1", "0-2", "0-3"}
    assert [says in record.message for record in caplog.records] == [True]


def test_requests_are_signed_over_time_and_body() -> None:
    async def until(targets: Targets, book: MemorySubscriptions) -> None:
        await when(lambda: bool(targets.told))

    (request,) = run([Subscription("a", GOOD, "key", after=(0,))], filled(1), until).told[GOOD]
    signed = dict(request.headers)["Levada-Signature"]
    at, digest = (part.partition("=")[2] for part in signed.split(","))
    expected = hmac.new(b"key", f"{at}.".encode() + (request.body or b""), sha256).hexdigest()
    assert digest == expected
    assert signed == signature("key", int(at), request.body or b"")


def test_what_a_hook_does_not_want_moves_its_place_without_a_request() -> None:
    async def until(targets: Targets, book: MemorySubscriptions) -> None:
        await when(lambda: book.subscriptions()[0].after == (3,))

    assert run([Subscription("a", GOOD, "s", ChangeSelection(site="b"), (0,))], filled(3), until).told == {}


def test_a_hook_that_is_removed_is_told_no_more() -> None:
    async def until(targets: Targets, book: MemorySubscriptions) -> None:
        await targets.enough.wait()
        book.remove("c")
        for _ in range(20):
            await asyncio.sleep(0)
        assert book.subscriptions() == []

    run([Subscription("c", FAILS, "s", after=(0,))], filled(1), until)


def test_the_wait_grows_up_to_an_hour() -> None:
    waits = [backoff(failures) for failures in range(60)]
    assert waits[:4] == [0.0, 2.0, 4.0, 8.0]
    assert waits == sorted(waits)
    assert waits[-1] == 3600.0
