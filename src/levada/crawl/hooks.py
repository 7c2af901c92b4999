"""Page hooks: plug-ins that are called after a page is stored.

Each has a thread and a queue of its own, so that none delays the crawl or another hook. One that fails is called
again for the next page. One that does not return in time is turned off for the run. A page that finds the queue
full is left out: a hook must keep up with the crawl. Every failure and every page left out is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from threading import Condition, Thread
from time import monotonic

from levada.core.plugins import call, note_failure
from levada.core.protocols import PageHook
from levada.core.records import StoredPage, VisitResult
from levada.pages.compression import unpack_text

HOOKS = "levada.hooks"
_SECONDS = 10.0  # of the wall, for one call
_MOST_WAITING = 2_000  # pages
_END_SECONDS = 30.0  # of the wall, for what waits when the crawl ends


def stored_page(result: VisitResult) -> StoredPage:
    """What a hook sees of a visit that stored a version."""
    page, version = result.lease.page, result.version
    assert version is not None
    text = unpack_text(version.content_zstd).decode("utf-8", "replace")
    return StoredPage(
        url=page.url,
        site=page.site,
        at=result.visit.at,
        outcome=result.visit.outcome,
        version=page.version + 1,
        status=version.status,
        title=version.title,
        language=version.language,
        text=text,
    )


class PageHooks:
    """All hooks of a crawl. `put` never waits."""

    def __init__(
        self, hooks: Mapping[str, PageHook], *, seconds: float = _SECONDS, most_waiting: int = _MOST_WAITING
    ) -> None:
        self._hooks = [_HookThread(name, hook, seconds, most_waiting) for name, hook in hooks.items()]

    def put(self, visits: Sequence[VisitResult]) -> None:
        """Call the hooks for those visits that stored a version."""
        stored = [result for result in visits if result.version is not None]
        for hook in self._hooks:
            hook.put(stored)

    def close(self, seconds: float = _END_SECONDS) -> None:
        """Let the hooks work off what waits, within some seconds."""
        until = monotonic() + seconds
        for hook in self._hooks:
            hook.close(until)


class _HookThread:
    def __init__(self, name: str, hook: PageHook, seconds: float, most_waiting: int) -> None:
        self._name = name
        self._hook = hook
        self._seconds = seconds
        self._most_waiting = most_waiting
        self._waiting: deque[VisitResult] = deque()
        self._changed = Condition()
        self._began: float | None = None  # when the call in progress was made
        self._is_off = self._is_closed = False
        Thread(target=self._run, name=f"hook {name}", daemon=True).start()

    def put(self, visits: Sequence[VisitResult]) -> None:
        with self._changed:
            self._check_time()
            room = 0 if self._is_off else self._most_waiting - len(self._waiting)
            self._waiting.extend(visits[:room])
            self._changed.notify_all()
            left_out = 0 if self._is_off else max(0, len(visits) - room)
        for _ in range(left_out):
            note_failure(HOOKS, self._name, f"{self._most_waiting:,} pages wait, so that this one is left out")

    def close(self, until: float) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while (self._waiting or self._began is not None) and not self._is_off:
                ends = until if self._began is None else min(until, self._began + self._seconds)
                left = ends - monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            self._check_time()
            left_out = 0 if self._is_off else len(self._waiting)
            self._is_off = True
            self._waiting.clear()
        for _ in range(left_out):
            note_failure(HOOKS, self._name, "the crawl ended before this page's turn came")

    def _check_time(self) -> None:
        if self._began is not None and monotonic() - self._began >= self._seconds and not self._is_off:
            self._is_off = True
            self._waiting.clear()
            note_failure(HOOKS, self._name, f"no answer within {self._seconds:g} s", ended=True)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._began = None
                self._changed.notify_all()
                while not self._waiting:
                    if self._is_closed or self._is_off:
                        return
                    self._changed.wait()
                result = self._waiting.popleft()
                self._began = monotonic()
            try:
                call(self._hook.after_page, stored_page(result))
            except BaseException as error:  # SystemExit too: it ends no thread of ours
                note_failure(HOOKS, self._name, error)
