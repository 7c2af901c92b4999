"""Notifiers: each is told of every change, in order and at least once.

Each reads the feed from its own position and is told in its own task: one that hangs or fails delays nobody. It is
tried again, first after seconds, in the end every hour. A position moves only when a notifier has taken its
changes.

The built-in notifier is the webhook, which sends changes to an address. Its requests go through the fetcher and so
through the address guard; each is signed with the hook's secret. Plug-ins are called on threads of their own, and one
that does not return in time is turned off until the server starts again. Its position stays where it was.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from threading import Thread
from typing import cast

import msgspec

from levada.core.errors import LevadaError
from levada.core.plugins import call, load, note_failure, settle
from levada.core.protocols import Clock, Fetcher, Notifier, Webhooks
from levada.core.records import ChangeEvent, Request, Webhook
from levada.follow.feed import Feed

log = logging.getLogger(__name__)

NOTIFIERS, WEBHOOK = "levada.notifiers", "webhook"
_AT_ONCE = 100  # changes in one call
_LEAST_WAIT, _MOST_WAIT = 2.0, 3600.0
_LOOK = 1.0
_SECONDS = 60.0  # of the wall, for one call
_SAID = 200  # characters kept of an error
_KEPT_BYTES = 1024  # of a webhook's answer: nobody looks at them


class NotTold(LevadaError):
    """The target refused, or could not be reached."""


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=TIME,v1=HEX`: HMAC-SHA256 of `TIME.BODY`, so that a request that was overheard is of no use later."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (at, body), sha256).hexdigest()
    return f"t={at},v1={digest}"


class WebhookNotifier:
    """A notifier on the server's own loop, whose fetcher it uses; `NotTold` unless the answer is 2xx."""

    def __init__(
        self, hook: Webhook, fetcher: Fetcher, clock: Clock, facts: Callable[[Sequence[ChangeEvent]], Sequence[object]]
    ) -> None:
        self._hook = hook
        self._fetcher = fetcher
        self._clock = clock
        self._facts = facts

    async def notify(self, changes: Sequence[ChangeEvent]) -> None:
        if not changes:
            return
        hook = self._hook
        facts = await asyncio.to_thread(self._facts, changes)  # it reads and compares texts
        body = msgspec.json.encode({"hook": hook.id, "changes": facts})
        headers = (
            ("Content-Type", "application/json"),
            ("Levada-Signature", signature(hook.secret, int(self._clock.now()), body)),
        )
        answer = await self._fetcher.fetch(Request(hook.url, headers, _KEPT_BYTES, body))
        if answer.reason is not None:
            raise NotTold(f"{answer.reason}: {answer.detail}")
        if not 200 <= answer.status < 300:
            raise NotTold(f"answered {answer.status}")


class NotifierHangs(LevadaError):
    pass


def backoff(failures: int) -> float:
    """Seconds until the next try."""
    return min(_MOST_WAIT, _LEAST_WAIT * 2.0 ** min(failures - 1, 20)) if failures else 0.0


async def on_thread(notifier: Notifier, changes: Sequence[ChangeEvent], seconds: float = _SECONDS) -> None:
    """Call a plug-in on a thread that nobody waits for; `NotifierHangs` if it does not return in time."""
    told: Future[None] = Future()
    told.set_running_or_notify_cancel()  # it can no longer be cancelled, only be left alone
    Thread(target=settle, args=(lambda: call(notifier.notify, changes), told), name="notifier", daemon=True).start()
    done = asyncio.wrap_future(told)
    await asyncio.wait((done,), timeout=seconds)  # `wait_for` may swallow that this task is cancelled
    if not done.done():
        done.cancel()
        raise NotifierHangs(f"no answer within {seconds:g} s")
    done.result()


@dataclass
class Notifications:
    """Runs beside the server until cancelled.

    `book` holds who is told and how far each is, `make_book` makes it if there is none yet. `chosen` names the
    plug-ins that the settings ask for; `load` makes one.
    """

    book: Callable[[], Webhooks]
    feed: Callable[[], Feed | None]
    clock: Clock
    webhook: Callable[[Webhook], WebhookNotifier]
    _: KW_ONLY
    make_book: Callable[[], Webhooks] | None = None
    chosen: Callable[[], Iterable[str]] = tuple
    load: Callable[[str], Notifier] = lambda name: cast(Notifier, load(NOTIFIERS, name))
    seconds: float = _SECONDS

    def __post_init__(self) -> None:
        self._plugins: dict[str, Notifier] = {}
        self._subscribed: set[str] = set()
        self._off: set[str] = set()
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        trouble = False
        try:
            while True:
                try:
                    await asyncio.to_thread(self._subscribe)
                    self._start_new()
                    trouble = False
                except LevadaError as error:
                    if not trouble:
                        log.warning("notifiers wait: %s", error)
                    trouble = True
                await self.clock.sleep(_LOOK)
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    def _subscribe(self) -> None:
        """Give each chosen plug-in a position in the feed: a new one is told of what is yet to come."""
        for name in self.chosen():
            if name in self._plugins or name in self._off or name == WEBHOOK:
                continue
            try:
                self._plugins[name] = self.load(name)
            except LevadaError as error:
                self._off.add(name)
                note_failure(NOTIFIERS, name, error, ended=True)
        for name in self._plugins.keys() - self._subscribed:
            if all(hook.notifier != name for hook in self.book().hooks()):
                feed = self.feed()
                after = () if feed is None else feed.newest()
                (self.make_book or self.book)().add(
                    Webhook(f"notifier-{name}", f"notifier:{name}", "", after=after, notifier=name)
                )
            self._subscribed.add(name)

    def _start_new(self) -> None:
        followed = {hook.id for hook in self.book().hooks() if self._follows(hook)}
        for id in followed - self._busy.keys():
            self._busy[id] = asyncio.create_task(self._follow(id))
        for id in [id for id, task in self._busy.items() if task.done()]:
            del self._busy[id]

    def _follows(self, hook: Webhook) -> bool:
        return hook.notifier == WEBHOOK or (hook.notifier in self._plugins and hook.notifier not in self._off)

    async def _follow(self, id: str) -> None:
        """Until it is removed or turned off; a store that does not answer is like a target that does not."""
        troubles = 0
        while True:
            try:
                wait = await self._step(id)
                troubles = 0
            except LevadaError as error:
                if not troubles:
                    log.warning("the notifier %s waits: %s", id, error)
                troubles += 1
                wait = backoff(troubles)
            if wait is None:
                return
            await self.clock.sleep(wait)

    async def _step(self, id: str) -> float | None:
        """Seconds until the next step; None if the notifier was removed or turned off."""
        hook = next((each for each in self.book().hooks() if each.id == id), None)
        if hook is None or not self._follows(hook):
            return None
        told = await self._tell(hook)
        if told is None:
            return _LOOK
        return backoff(told.failures) if self.book().update(told) else None

    async def _tell(self, hook: Webhook) -> Webhook | None:
        """The hook as it is afterwards; None if there is nothing to tell."""
        feed = self.feed()
        if feed is None:
            return None
        page = await asyncio.to_thread(feed.read, hook.after, _AT_ONCE, hook.wanted)
        if not page.changes:
            moved = page.after != hook.after
            return msgspec.structs.replace(hook, after=page.after) if moved else None
        changes = [msgspec.structs.replace(change, shard=shard) for shard, change in page.changes]
        if trouble := await self._trouble(hook, changes):
            return msgspec.structs.replace(hook, failures=hook.failures + 1, trouble=trouble)
        return msgspec.structs.replace(hook, after=page.after, failures=0, trouble="", told=hook.told + len(changes))

    async def _trouble(self, hook: Webhook, changes: Sequence[ChangeEvent]) -> str:
        """Why these changes could not be told; "": they were."""
        try:
            if hook.notifier == WEBHOOK:
                await self.webhook(hook).notify(changes)
            else:
                await on_thread(self._plugins[hook.notifier], changes, self.seconds)
        except NotTold as error:
            return str(error)
        except Exception as error:
            hangs = isinstance(error, NotifierHangs)
            if hangs:
                self._off.add(hook.notifier)
            note_failure(NOTIFIERS, hook.notifier, error, ended=hangs)
            return f"{type(error).__name__}: {error}"[:_SAID]
        return ""
