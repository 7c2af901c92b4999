"""Change feed: reads the change log from any position, each change once.

A position is one step per shard, written `12` or `12.7.40`; a reader that has come so far asks for what follows. A
log stays on its shard when pages move to others, so a position is good for ever; shards that are added begin at 0.
The log of a shard that is away is read later, from where its reader was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from levada.core.errors import BadQuery, StoreAway, UsageError
from levada.core.protocols import Documents
from levada.core.records import ChangeEvent, ChangeKind, ChangeSelection, Document, VersionInfo
from levada.pages.folding import words
from levada.search.query import host_named
from levada.search.terms import site_names

T = TypeVar("T")
Place = tuple[int, ...]
_AT_ONCE = 100
_LOOKED_AT = 2_000  # entries of the log for one page of the feed, however few of them are wanted
_LARGEST_STEP = 2**62
_ANY = ChangeSelection()


class FeedPage(msgspec.Struct, frozen=True):
    changes: list[tuple[int, ChangeEvent]]  # the shard, and what happened there
    after: Place  # where to read on
    more: bool  # there is more already


class Feed:
    """The change log of each shard, read page by page."""

    def __init__(self, logs: Sequence[Documents]) -> None:
        self._logs = logs

    def start(self) -> Place:
        return (0,) * len(self._logs)

    def read(self, after: Place, limit: int, wanted: ChangeSelection = _ANY) -> FeedPage:
        """At most `limit` changes, shard by shard, each shard's in their order."""
        steps = [*after, *self.start()][: len(self._logs)]
        found: list[tuple[int, ChangeEvent]] = []
        left = _LOOKED_AT
        for shard, log in enumerate(self._logs):
            while left > 0 and (batch := _some(log, steps[shard], min(left, _AT_ONCE))):
                for change in batch:
                    if len(found) == limit:
                        return FeedPage(found, tuple(steps), True)
                    steps[shard] = change.seq
                    if is_wanted(change, wanted, partial(self._text, change)):
                        found.append((shard, self._titled(change)))
                left -= len(batch)
            if left <= 0:
                break
        return FeedPage(found, tuple(steps), left <= 0)

    def read_back(
        self,
        before: Place,
        limit: int,
        wanted: ChangeSelection = _ANY,
        *,
        since: float | None = None,
        look: int = _LOOKED_AT,
    ) -> FeedPage:
        """At most `limit` changes up to this position, the newest first; reading back goes on from `after`.

        At most `look` entries are looked at, however few of them are wanted, and none from before `since`.
        """
        newest = (_answer(partial(_last_step, log), 0) for log in self._logs)
        steps = map(min, [*before, *self.start()], newest)
        cursors = [_Backwards(log, step) for log, step in zip(self._logs, steps, strict=True)]
        found: list[tuple[int, ChangeEvent]] = []
        for _ in range(look):
            latest = {shard: change for shard, each in enumerate(cursors) if (change := each.newest(since))}
            if not latest or len(found) == limit:
                break
            shard = max(latest, key=lambda each: latest[each].at)
            change = cursors[shard].pop()
            if is_wanted(change, wanted, partial(self._text, change)):
                found.append((shard, self._titled(change)))
        more = any(each.newest(since) is not None for each in cursors)
        return FeedPage(found, tuple(each.step for each in cursors), more)

    def oldest(self) -> Place:
        """The position before the oldest change that is kept."""
        return tuple(first[0].seq - 1 if (first := _some(log, 0, 1)) else 0 for log in self._logs)

    def kept(self, after: Place, least: int = 0) -> tuple[Place, int]:
        """Where to read on from this position, and how many changes at most have left the log since.

        Of a log that was never read from, fewer than `least` steps before its first entry count as none: some steps
        have no entry.
        """
        steps = [*after, *self.start()][: len(self._logs)]
        lost = 0
        for shard, oldest in enumerate(self.oldest()):
            if oldest > steps[shard] + (0 if steps[shard] else least):
                lost += oldest - steps[shard]
                steps[shard] = oldest
        return tuple(steps), lost

    def newest(self) -> Place:
        """The position after the newest change."""
        return tuple(_last_step(log) for log in self._logs)

    def place_at(self, at: float) -> Place:
        """A place before the first change at that time or later; by halving, for a log is in the order of time. The
        log of a shard that is away is read from its beginning."""
        return tuple(_answer(partial(_step_before, log, at), 0) for log in self._logs)

    def _titled(self, change: ChangeEvent) -> ChangeEvent:
        """The change with its title: that of a page that moved to another shard is read there."""
        if change.title or len(self._logs) == 1:
            return change
        nothing: list[VersionInfo] = []
        versions = (_answer(partial(log.versions, change.url), nothing) for log in self._logs)
        known = (each for some in versions for each in some if each.version == change.version)
        return msgspec.structs.replace(change, title=next((each.title for each in known), ""))

    def _text(self, change: ChangeEvent) -> str:
        nothing: Document | None = None
        asked = (
            _answer(partial(log.document, change.url, version), nothing)
            for version in (change.version, None)
            for log in self._logs
        )
        document = next((each for each in asked if each is not None), None)
        return f"{document.title} {document.text}" if document else ""


class _Backwards:
    """A log, read from a step towards its beginning."""

    def __init__(self, log: Documents, step: int) -> None:
        self._log = log
        self._read = self.step = step  # entries up to here are not read yet, or not given yet
        self._found: list[ChangeEvent] = []
        self._oldest = first[0].seq if (first := _some(log, 0, 1)) else step + 1

    def newest(self, since: float | None) -> ChangeEvent | None:
        """The newest entry that was not given yet; None if there is none from `since` on."""
        while not self._found and self._read >= self._oldest:
            start = max(self._read - _AT_ONCE, 0)
            self._found = [each for each in _some(self._log, start, self._read - start) if each.seq <= self._read]
            self._read = start
        if not self._found or (since is not None and self._found[-1].at < since):
            return None
        return self._found[-1]

    def pop(self) -> ChangeEvent:
        change = self._found.pop()
        self.step = change.seq - 1
        return change


def _some(log: Documents, after: int, limit: int) -> list[ChangeEvent]:
    return _answer(partial(log.change_log, after, limit), [])


def _answer(ask: Callable[[], T], otherwise: T) -> T:
    """What a log answers; `otherwise` if its shard is away."""
    try:
        return ask()
    except StoreAway:
        return otherwise


def is_wanted(change: ChangeEvent, wanted: ChangeSelection, text: Callable[[], str]) -> bool:
    """Whether a change is selected; `text` is called only if the selection asks for words."""
    if wanted.site and wanted.site not in site_names(change.site):
        return False
    if wanted.kinds and change.what not in wanted.kinds:
        return False
    if change.what is ChangeKind.CHANGED and 1.0 - change.similarity < wanted.least:
        return False
    return not wanted.words or set(words(wanted.words)) <= set(words(text()))


def filter_of(site: str, typed: str, least: float, kinds: str = "") -> ChangeSelection:
    """A selection from user input; `BadQuery` if it can never match: a site or a kind that is none, words without
    a word. `kinds` are separated by commas."""
    if typed and not words(typed):
        raise BadQuery(f"there is no word in {typed!r}")
    named = tuple(part for each in kinds.split(",") if (part := each.strip()))
    if wrong := next((each for each in named if each not in list(ChangeKind)), None):
        raise BadQuery(f"a change is {', '.join(ChangeKind)}, not {wrong[:50]!r}")
    return ChangeSelection(host_named(site) if site else "", typed, least, tuple(map(ChangeKind, named)))


def place_of(typed: str) -> Place:
    """A position from its written form; `UsageError` if it is not one."""
    parts = typed.split(".") if typed else ["0"]
    if len(parts) <= 1024 and all(part.isdecimal() and len(part) < 20 for part in parts):
        steps = tuple(int(part) for part in parts)
        if max(steps) <= _LARGEST_STEP:
            return steps
    raise UsageError(f"'{typed[:50]}' is no place in the feed: use the 'next' of an earlier answer")


def _last_step(log: Documents) -> int:
    """The last step of a log, by bisection: reading one entry is cheap."""
    high = 1
    while log.change_log(high, 1):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2, key=lambda step: not log.change_log(step, 1))


def _step_before(log: Documents, at: float) -> int:
    last = _last_step(log)

    def is_reached(step: int) -> bool:
        following = log.change_log(step, 1)
        return not following or following[0].at >= at

    return bisect_left(range(last), True, key=is_reached)
