"""What changed since? The log of changes as a feed that is read on from any place, each change once.

A place is one step per shard, written `12` or `12.7.40`: whoever has read up to there asks for what comes after.
A log stays on its shard when pages move to others, so a place is good for ever; shards that are added begin at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from levada.errors import BadQuery, UsageError
from levada.pages.folding import words
from levada.pages.query import host_named, site_names
from levada.ports import Documents
from levada.records import ChangeFilter, Happened, Happening

__all__ = ["Feed", "FeedPage", "Place", "filter_of", "is_wanted", "place_of"]

Place = tuple[int, ...]
_AT_ONCE = 100
_LOOKED_AT = 2_000  # entries of the log for one page of the feed, however few of them are wanted
_LARGEST_STEP = 2**62


_ANY = ChangeFilter()


class FeedPage(msgspec.Struct, frozen=True):
    changes: list[tuple[int, Happening]]  # the shard, and what happened there
    after: Place  # where to read on
    more: bool  # there is more already


class Feed:
    def __init__(self, logs: Sequence[Documents]) -> None:
        self._logs = logs

    def start(self) -> Place:
        return (0,) * len(self._logs)

    def read(self, after: Place, limit: int, wanted: ChangeFilter = _ANY) -> FeedPage:
        """At most `limit` changes, shard by shard, each shard's in their order."""
        steps = [*after, *self.start()][: len(self._logs)]
        found: list[tuple[int, Happening]] = []
        left = _LOOKED_AT
        for shard, log in enumerate(self._logs):
            while left > 0 and (batch := log.happenings(steps[shard], min(left, _AT_ONCE))):
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

    def newest(self) -> Place:
        """Where whoever wants only what is yet to come begins."""
        return tuple(_last_step(log) for log in self._logs)

    def _titled(self, change: Happening) -> Happening:
        """The title of a page that has moved to another shard is there."""
        if change.title or len(self._logs) == 1:
            return change
        known = (each for log in self._logs for each in log.versions(change.url) if each.version == change.version)
        return msgspec.structs.replace(change, title=next((each.title for each in known), ""))

    def _text(self, change: Happening) -> str:
        asked = (log.document(change.url, version) for version in (change.version, None) for log in self._logs)
        document = next((each for each in asked if each is not None), None)
        return f"{document.title} {document.text}" if document else ""


def is_wanted(change: Happening, wanted: ChangeFilter, text: Callable[[], str]) -> bool:
    """The text is read only where words are asked for."""
    if wanted.site and wanted.site not in site_names(change.site):
        return False
    if change.what is Happened.CHANGED and 1.0 - change.similarity < wanted.least:
        return False
    return not wanted.words or set(words(wanted.words)) <= set(words(text()))


def filter_of(site: str, typed: str, least: float) -> ChangeFilter:
    """As somebody gives it; `BadQuery` where the site could never match, or no word is among the words."""
    if typed and not words(typed):
        raise BadQuery(f"there is no word in {typed!r}")
    return ChangeFilter(host_named(site) if site else "", typed, least)


def place_of(typed: str) -> Place:
    """From its written form; `UsageError` if it is none."""
    parts = typed.split(".") if typed else ["0"]
    if len(parts) > 1024 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise UsageError(f"'{typed[:50]}' is no place in the feed: use the 'next' of an earlier answer")
    steps = tuple(int(part) for part in parts)
    if max(steps) > _LARGEST_STEP:
        raise UsageError(f"'{typed[:50]}' is no place in the feed: use the 'next' of an earlier answer")
    return steps


def _last_step(log: Documents) -> int:
    """By halving: the log has no gaps to speak of, and asking for one entry is cheap."""
    low, high = 0, 1
    while log.happenings(high, 1):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log.happenings(middle, 1) else (low, middle)
    return high if log.happenings(low, 1) else low
