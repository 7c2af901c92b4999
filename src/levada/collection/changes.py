"""Changes of a collection: read on from a marker, or the newest first.

A marker is text such as `12` or `12.7.40`, one step per shard, and stays valid for ever. Each change has its own;
reading on from it gives exactly what came after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from levada.collection.change_facts import change_id
from levada.core.protocols import Documents
from levada.core.records import ChangeEvent, ChangeSelection
from levada.follow.feed import Feed, Place, filter_of, place_of

if TYPE_CHECKING:
    pass

_LOOKED_BACK = 200  # steps of each shard's log, at first
_MOST_LOOKED_BACK = 20_000
_AT_ONCE = 1_000
_ANY = ChangeSelection()


class FeedChange(msgspec.Struct, frozen=True):
    """One change of a page."""

    id: str  # never given to another change
    event: ChangeEvent
    marker: str = ""  # reading on from here gives what came after it; "" in lists that are not in reading order


class ChangesPage(msgspec.Struct, frozen=True):
    """Some changes, and where to read on."""

    changes: list[FeedChange]
    next: str
    more: bool  # there is more already


class ChangeFeed:
    """The change log of a collection, shard by shard; every change is read once."""

    def __init__(self, logs: Sequence[Documents]) -> None:
        self.log = Feed(logs)

    def newest(self) -> str:
        """The marker from which only later changes are read."""
        return _written(self.log.newest())

    def read(self, after: str = "", limit: int = 100, wanted: ChangeSelection = _ANY) -> ChangesPage:
        """At most `limit` changes after this marker, in order within each shard; "" is the beginning."""
        place = place_of(after)
        page = self.log.read(place, limit, wanted)
        steps = [*place, *(0,) * len(page.after)][: len(page.after)]
        changes = []
        for number, (shard, event) in enumerate(page.changes, 1):
            steps[shard] = event.seq
            at = page.after if number == len(page.changes) else tuple(steps)
            changes.append(_change(shard, event, _written(at)))
        return ChangesPage(changes, _written(page.after), page.more)

    def latest(self, limit: int, wanted: ChangeSelection = _ANY) -> list[FeedChange]:
        """The newest changes, the newest first."""
        back, found = _LOOKED_BACK, list[tuple[int, ChangeEvent]]()
        newest = self.log.newest()
        while len(found) < limit and back <= _MOST_LOOKED_BACK:
            place = tuple(max(0, step - back) for step in newest)
            found, following, more = [], place, True
            while more:
                page = self.log.read(following, _AT_ONCE, wanted)
                found += page.changes
                following, more = page.after, page.more
            if not any(place):
                break
            back *= 8
        ordered = sorted(found, key=lambda each: each[1].at, reverse=True)[:limit]
        return [_change(shard, event) for shard, event in ordered]


def change_filter(site: str = "", words: str = "", least: float = 0.0, kinds: str = "") -> ChangeSelection:
    """Changes of a host and those below it, with all these words, of at least this share of the page's words, and
    of these kinds (`new,gone`)."""
    return filter_of(site, words, least, kinds)


def _change(shard: int, event: ChangeEvent, marker: str = "") -> FeedChange:
    known = msgspec.structs.replace(event, shard=shard)
    return FeedChange(change_id(known), known, marker)


def _written(place: Place) -> str:
    return ".".join(map(str, place))
