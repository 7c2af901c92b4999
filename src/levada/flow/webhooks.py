"""Who wants to be told of changes, and how is each told, whatever the others do?

Each hook reads the feed at its own place and is told in its own task: one that hangs or is down delays nobody. It
is tried again, at first after seconds and at last every hour. A place moves only when the target has answered 2xx,
so every change arrives at least once, and once by its id. Requests go through the fetcher and so through the
address guard; each is signed with the hook's secret.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from levada.errors import LevadaError
from levada.flow.feed import Feed
from levada.ports import Clock, Fetcher, Hooks
from levada.records import Happening, Hook, Request

__all__ = ["HookRunner", "backoff", "signature"]

log = logging.getLogger(__name__)

_PER_POST = 100
_LEAST_WAIT, _MOST_WAIT = 2.0, 3600.0
_LOOK = 1.0
_OF_THE_ANSWER = 1024  # bytes that are read: nobody looks at them


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=TIME,v1=HEX`: HMAC-SHA256 of `TIME.BODY`, so that a request that was overheard is of no use later."""
    digest = hmac.new(secret.encode(), b"%d.%b" % (at, body), sha256).hexdigest()
    return f"t={at},v1={digest}"


def backoff(failures: int) -> float:
    """Seconds until the next try."""
    return min(_MOST_WAIT, _LEAST_WAIT * 2.0 ** min(failures - 1, 20)) if failures else 0.0


class HookRunner:
    """Runs beside the server until cancelled."""

    def __init__(
        self,
        book: Callable[[], Hooks],
        feed: Callable[[], Feed | None],
        fetcher: Fetcher,
        clock: Clock,
        facts: Callable[[int, Happening], Any],
    ) -> None:
        self._book = book
        self._feed = feed
        self._fetcher = fetcher
        self._clock = clock
        self._facts = facts
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        trouble = False
        try:
            while True:
                try:
                    self._start_new()
                    trouble = False
                except LevadaError as error:
                    if not trouble:
                        log.warning("webhooks wait: %s", error)
                    trouble = True
                await self._clock.sleep(_LOOK)
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    def _start_new(self) -> None:
        there = {hook.id for hook in self._book().hooks()}
        for id in there - self._busy.keys():
            self._busy[id] = asyncio.create_task(self._follow(id))
        for id in [id for id, task in self._busy.items() if task.done()]:
            del self._busy[id]

    async def _follow(self, id: str) -> None:
        """Until it is removed; a store that does not answer is like a target that does not."""
        troubles = 0
        while True:
            try:
                wait = await self._step(id)
                troubles = 0
            except LevadaError as error:
                if not troubles:
                    log.warning("the webhook %s waits: %s", id, error)
                troubles += 1
                wait = backoff(troubles)
            if wait is None:
                return
            await self._clock.sleep(wait)

    async def _step(self, id: str) -> float | None:
        """Seconds until the next one; None if the hook was removed."""
        hook = next((each for each in self._book().hooks() if each.id == id), None)
        if hook is None:
            return None
        told = await self._tell(hook)
        if told is None:
            return _LOOK
        return backoff(told.failures) if self._book().update(told) else None

    async def _tell(self, hook: Hook) -> Hook | None:
        """The hook as it is afterwards; None if there is nothing to tell."""
        feed = self._feed()
        if feed is None:
            return None
        page = await asyncio.to_thread(feed.read, hook.after, _PER_POST, hook.wanted)
        if not page.changes:
            moved = page.after != hook.after
            return msgspec.structs.replace(hook, after=page.after) if moved else None
        trouble = await self._post(hook, page.changes)
        if trouble:
            return msgspec.structs.replace(hook, failures=hook.failures + 1, trouble=trouble)
        return msgspec.structs.replace(
            hook, after=page.after, failures=0, trouble="", told=hook.told + len(page.changes)
        )

    async def _post(self, hook: Hook, changes: Sequence[tuple[int, Happening]]) -> str:
        body = msgspec.json.encode({"hook": hook.id, "changes": [self._facts(*each) for each in changes]})
        headers = (
            ("Content-Type", "application/json"),
            ("Levada-Signature", signature(hook.secret, int(self._clock.now()), body)),
        )
        answer = await self._fetcher.fetch(Request(hook.url, headers, _OF_THE_ANSWER, body))
        if answer.reason is not None:
            return f"{answer.reason}: {answer.detail}"
        return "" if 200 <= answer.status < 300 else f"answered {answer.status}"
