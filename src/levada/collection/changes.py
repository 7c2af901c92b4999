"""Changes of a collection: read on from a marker, or the newest first.

A marker is text such as `12` or `12.7.40`, one step per shard, and stays valid for ever. Each change has its own;
reading on from it gives exactly what came after.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.collection.change_facts import change_id
from levada.core.errors import UsageError
from levada.core.protocols import Documents
from levada.core.records import ChangeEvent, ChangeSelection
from levada.follow.feed import Feed, FeedPage, Place, filter_of, place_of
from levada.search.query import since_moment

_LOOKED_BACK = 20_000  # entries of the log
_LOOKED_BACK_FOR_WORDS = 2_000  # of a page of changes with words: the text of each page is read
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


class OlderChanges(msgspec.Struct, frozen=True):
    """Some changes, the newest first, and where to read further back; "" if nothing is older."""

    changes: list[FeedChange]
    older: str


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
        page = self.log.read_back(self.log.newest(), limit, wanted, look=_LOOKED_BACK)
        return _newest_first(page)

    def older(
        self, before: str, limit: int, wanted: ChangeSelection = _ANY, since: float | None = None
    ) -> OlderChanges:
        """At most `limit` changes up to this marker, the newest first; "" is the end.

        There may be fewer and `older` not be "": then so much of the log was looked at that it is time for an answer.
        """
        place = place_of(before) if before else self.log.newest()
        look = _LOOKED_BACK_FOR_WORDS if wanted.words else _LOOKED_BACK
        page = self.log.read_back(place, limit, wanted, since=since, look=look)
        return OlderChanges(_newest_first(page), _written(page.after) if page.more else "")


def change_filter(site: str = "", words: str = "", least: float = 0.0, kinds: str = "") -> ChangeSelection:
    """Changes of a host and those below it, with all these words, of at least this share of the page's words, and
    of these kinds (`new,gone`)."""
    return filter_of(site, words, least, kinds)


def moment_since(typed: str, now: float) -> float:
    """The time that `7d`, `24h` or `2026-01-31` means."""
    try:
        return since_moment(typed, now)
    except UsageError:
        raise UsageError(f"since is a time such as 90m, 24h, 7d or 2026-01-31, not {typed[:50]!r}") from None


def _newest_first(page: FeedPage) -> list[FeedChange]:
    """By time, also where a clock was put back between two changes."""
    ordered = sorted(page.changes, key=lambda each: each[1].at, reverse=True)
    return [_change(shard, event) for shard, event in ordered]


def _change(shard: int, event: ChangeEvent, marker: str = "") -> FeedChange:
    known = msgspec.structs.replace(event, shard=shard)
    return FeedChange(change_id(known), known, marker)


def _written(place: Place) -> str:
    return ".".join(map(str, place))
