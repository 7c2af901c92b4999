"""Notification runner: every subscription is told of every change that it wants, in order, and none is lost.

For each subscription the change log is read from its own position. Changes that are wanted are taken (they wait, with
their text, in the subscriptions' file), composed into messages when the schedule says so, and sent, one message after
the other. A message is recorded before it is sent and sent until the target takes it: first after seconds, in the end
every hour. After a crash between sending and recording that, the same message is repeated under the same id.

Each subscription has a task of its own, so that a target that hangs delays nobody. A plug-in that does not return in
time is turned off until the next start. One runner works on a collection at a time; others wait for its lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import cast

import msgspec

from levada.core.clock import first_of
from levada.core.errors import LevadaError, NotTold, StoreLocked
from levada.core.plugins import load, note_failure
from levada.core.protocols import Clock, Faults, Notifier, Subscriptions
from levada.core.records import ChangeEvent, ChangeFacts, DiffLine
from levada.core.subscriptions import APPRISE, MAIL, WEBHOOK, DescribedChange, Message, Subscription, TakenChanges
from levada.follow.feed import Feed
from levada.follow.notify.conditions import holds
from levada.follow.notify.message import composed
from levada.follow.notify.schedule import release_at
from levada.follow.notify.sender import NotifierHangs, Sender, on_thread
from levada.store.faults import NoFaults

log = logging.getLogger(__name__)

NOTIFIERS = "levada.notifiers"
_AT_ONCE = 100  # changes that are taken together
_MOST_WAITING = 10_000  # changes of a subscription; more stay in the log
_MOST = {WEBHOOK: 100, MAIL: 50, APPRISE: 20}  # changes in a message, unless the schedule says
_LEAST_WAIT, _MOST_WAIT = 2.0, 3600.0
_LOOK = 1.0
_SECONDS = 60.0  # of the wall, for one call of a plug-in
_SAID = 200  # characters kept of an error
_SURELY_TRIMMED = 1_000  # steps before the first of a log of which nothing was read yet


def backoff(failures: int) -> float:
    """Seconds until the next try."""
    return min(_MOST_WAIT, _LEAST_WAIT * 2.0 ** min(failures - 1, 20)) if failures else 0.0


def most_in_message(subscription: Subscription) -> int:
    return subscription.schedule.most or _MOST.get(subscription.notifier, _AT_ONCE)


@dataclass
class NotificationRunner:
    """Runs until cancelled, or sends only what is due (`flush`).

    `book` holds who is told and how far each is, `make_book` makes it if there is none yet. `facts` are what is told
    of changes, `lines` all that came and went with one. `senders` are those of the built-in kinds. `chosen` names the
    plug-ins that the settings ask for; `load` makes one. `lock` raises `StoreLocked` while another runner works.
    """

    book: Callable[[], Subscriptions]
    feed: Callable[[], Feed | None]
    clock: Clock
    facts: Callable[[Sequence[ChangeEvent]], Sequence[ChangeFacts]]
    lines: Callable[[ChangeEvent], Sequence[DiffLine]]
    senders: Mapping[str, Sender]
    _: KW_ONLY
    make_book: Callable[[], Subscriptions] | None = None
    collection: Callable[[], str] = str
    chosen: Callable[[], Iterable[str]] = tuple
    load: Callable[[str], Notifier] = lambda name: cast(Notifier, load(NOTIFIERS, name))
    lock: Callable[[], AbstractContextManager[None]] = nullcontext
    seconds: float = _SECONDS
    faults: Faults = field(default_factory=NoFaults)

    def __post_init__(self) -> None:
        self._plugins: dict[str, Notifier] = {}
        self._subscribed: set[str] = set()
        self._off: set[str] = set()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` end once the messages that are being sent have been sent."""
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with self.lock():
                    await self._run()
                    return
            except StoreLocked:
                await self._sleep(_LOOK)

    async def _run(self) -> None:
        trouble = False
        try:
            while not self._stopping.is_set():
                try:
                    await asyncio.to_thread(self._subscribe)
                    self._start_new()
                    trouble = False
                except LevadaError as error:
                    if not trouble:
                        log.warning("notifications wait: %s", error)
                    trouble = True
                await self._sleep(_LOOK)
            await asyncio.gather(*self._busy.values(), return_exceptions=True)
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)
            self._busy.clear()
            for sender in self.senders.values():
                await sender.close()

    async def flush(self) -> list[str]:
        """Send all that is due now, each target tried until it fails once; returns what could not be sent, and why.

        Nothing if another runner works: it sends what is due.
        """
        try:
            with self.lock():
                await asyncio.to_thread(self._subscribe)
                followed = [each.id for each in self.book().subscriptions() if self._follows(each)]
                troubles = await asyncio.gather(*map(self._flush_one, followed))
                return [trouble for trouble in troubles if trouble]
        except StoreLocked:
            return []
        finally:
            for sender in self.senders.values():
                await sender.close()

    async def _flush_one(self, id: str) -> str:
        while True:
            is_done, _ = await self._step(id, ignore_backoff=True)
            subscription = self.book().get(id)
            if subscription is not None and subscription.failures:
                return f"{id}: {subscription.trouble}"
            if is_done:
                return ""

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
            if all(each.notifier != name for each in self.book().subscriptions()):
                feed = self.feed()
                after = () if feed is None else feed.newest()
                (self.make_book or self.book)().add(
                    Subscription(f"notifier-{name}", f"notifier:{name}", after=after, notifier=name)
                )
            self._subscribed.add(name)

    def _start_new(self) -> None:
        followed = {each.id for each in self.book().subscriptions() if self._follows(each)}
        for id in followed - self._busy.keys():
            self._busy[id] = asyncio.create_task(self._follow(id))
        for id in [id for id, task in self._busy.items() if task.done()]:
            del self._busy[id]

    def _follows(self, subscription: Subscription) -> bool:
        name = subscription.notifier
        is_there = name in self.senders or (name in self._plugins and name not in self._off)
        return is_there and not subscription.paused

    async def _follow(self, id: str) -> None:
        """Until it is removed, paused or turned off; a store that does not answer is like a target that does not."""
        troubles = 0
        while not self._stopping.is_set():
            try:
                _, wait = await self._step(id)
                troubles = 0
            except LevadaError as error:
                if not troubles:
                    log.warning("the notification %s waits: %s", id, error)
                troubles += 1
                wait = backoff(troubles)
            if wait is None:
                return
            if wait:
                await self._sleep(wait)

    async def _step(self, id: str, *, ignore_backoff: bool = False) -> tuple[bool, float | None]:
        """Take, compose and send: whether nothing is left to do now, and the seconds until the next step.

        None for the seconds: the subscription was removed, paused or turned off.
        """
        subscription = await asyncio.to_thread(self.book().get, id)
        if subscription is None or not self._follows(subscription):
            return True, None
        more = await asyncio.to_thread(self._take, subscription)
        await asyncio.to_thread(self._compose, subscription)
        now = self.clock.now()
        if subscription.retry_at > now and not ignore_backoff:
            return True, min(subscription.retry_at - now, _LOOK)
        message = await asyncio.to_thread(self.book().next_message, id)
        if message is None:
            return not more, 0.0 if more else _LOOK
        sending = asyncio.ensure_future(self._send(subscription, message))
        try:
            trouble = await asyncio.shield(sending)
        except asyncio.CancelledError:  # what was sent is recorded first: else it would be repeated
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            raise
        return False, backoff(subscription.failures + 1) if trouble else 0.0

    def _take(self, subscription: Subscription) -> bool:
        """Let the next changes of the log wait that the subscription wants; whether there are more already."""
        feed = self.feed()
        waiting = self.book().waiting(subscription.id)
        if feed is None or (waiting is not None and waiting.count >= _MOST_WAITING):
            return False
        after, lost = feed.kept(subscription.after, _SURELY_TRIMMED)
        if lost:
            log.warning(
                "the notification %s was too late: up to %d changes have left the change log", subscription.id, lost
            )
        page = feed.read(after, _AT_ONCE, subscription.wanted)
        changes = [msgspec.structs.replace(event, shard=shard) for shard, event in page.changes]
        conditions = subscription.conditions
        wanted = [each for each in changes if holds(conditions, each.url, partial(self.lines, each))]
        found = [DescribedChange(each, facts) for each, facts in zip(wanted, self.facts(wanted), strict=True)]
        if found or page.after != subscription.after:
            taken = TakenChanges(subscription.after, page.after, found, self.clock.now(), lost)
            self.book().take(subscription.id, taken)
        return page.more

    def _compose(self, subscription: Subscription) -> None:
        """Make messages of what waits, as far as the schedule allows it now."""
        book, most = self.book(), most_in_message(subscription)
        waiting = book.waiting(subscription.id)
        if waiting is None:
            return
        now = self.clock.now()
        due = release_at(subscription.schedule, waiting.since, waiting.count >= most, now)
        if due <= now:
            compose = partial(composed, subscription, now=now, collection=self.collection())
            while book.compose(subscription.id, most, compose):
                pass

    async def _send(self, subscription: Subscription, message: Message) -> str:
        """Send one message and record what came of it; returns why it was not taken, or ""."""
        self.faults.reach("send.before")
        trouble = await self._trouble(subscription, message)
        self.faults.reach("send.after")
        now = self.clock.now()
        if trouble:
            retry_at = now + backoff(subscription.failures + 1)
            await asyncio.to_thread(self.book().failed, message, trouble, retry_at)
        else:
            await asyncio.to_thread(self.book().sent, message, now)
        return trouble

    async def _trouble(self, subscription: Subscription, message: Message) -> str:
        """Why the target did not take the message; "": it did."""
        name = subscription.notifier
        try:
            if name in self.senders:
                await self.senders[name].send(subscription, message)
            else:
                events = [each.event for each in message.changes]
                await on_thread(self._plugins[name], events, self.seconds)
        except NotTold as error:
            return str(error)
        except LevadaError as error:
            if isinstance(error, NotifierHangs):
                self._off.add(name)
                note_failure(NOTIFIERS, name, error, ended=True)
            return f"{type(error).__name__}: {error}"[:_SAID] if name not in self.senders else str(error)
        except Exception as error:
            if name not in self.senders:
                note_failure(NOTIFIERS, name, error)
            return f"{type(error).__name__}: {error}"[:_SAID]
        return ""

    async def _sleep(self, seconds: float) -> None:
        await first_of(self._stopping, self.clock.sleep(seconds))
