"""How are Levada's own shards read as one table? Each page that was visited is a row: its address and its card.

A task is a range of addresses over all shards, so that a page on its way from one to another is met once. It is
read slice by slice: nobody who writes meanwhile waits for the reader. Two slices may be of two moments; whoever
needs to know compares a card's stamp with the shard's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.adapters.page_cards import CardShelf, PageCard
from levada.bulk.collecting import PlainRows
from levada.bulk.ports import RowBatch
from levada.bulk.spans import Cut, Key, KeyRange, NullKeys, Span
from levada.bulk.splitting import TableFacts
from levada.errors import UsageError

__all__ = ["LAST", "LevadaSource", "after_url", "since_in"]

LAST = "\U0010ffff"  # no address begins with it
_NEXT = "\x01"  # no address holds it
_AT_ONCE = 500
_CARD_BYTES = 256  # that a card may take on average before its task counts as too big


class LevadaSource:
    """`layout` says which shards hold what: pages that moved since the last time are all read again."""

    def __init__(self, shelves: Sequence[CardShelf], layout: str = "") -> None:
        self._shelves, self._layout = shelves, layout
        self._since: float | None = None

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since_in(since, self._layout)
        return ""

    def facts(self) -> TableFacts:
        """The newest first: a visit that comes while we count belongs to the next time."""
        newest = max((shelf.newest() for shelf in self._shelves), default=0.0)
        return TableFacts(
            sum(shelf.count("", LAST) for shelf in self._shelves),
            "text",
            indexed=True,
            unique=True,
            key_nullable=False,
            newest=f"{newest!r} {self._layout}",
        )

    def sample(self, span: Span, size: int) -> list[Key]:
        low, high = _bounds(span)
        one_in = max(1, sum(shelf.count(low, high) for shelf in self._shelves) // size)
        found: list[Key] = []
        for shelf in self._shelves:
            found += shelf.urls(low, high, one_in)
        return sorted(found)

    def duplicate(self) -> Key | None:
        return None

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return 0
        found: dict[str, PageCard] = {}
        room = (limit or 0) * _CARD_BYTES
        for url, card in self._rows(*_bounds(span)):
            if url not in found:
                found[url] = card
                room -= len(url) + len(card.title)
                if limit is not None and (len(found) > limit or room < 0):
                    return None
        return PlainRows(list(found), list(found.values()), ("text", "any"))

    def close(self) -> None:
        for shelf in self._shelves:
            shelf.close()

    def _rows(self, low: str, high: str) -> Iterator[tuple[str, PageCard]]:
        for shelf in self._shelves:
            start = low
            while slice_ := shelf.cards(start, high, _AT_ONCE, self._since):
                yield from slice_
                start = after_url(slice_[-1][0])


def since_in(watermark: str | None, layout: str) -> float | None:
    """From when on pages must be read again; None: all of them."""
    at, _, before = (watermark or "").partition(" ")
    return float(at) if at and before == layout else None


def after_url(url: str) -> str:
    """The first place behind it."""
    return url + _NEXT


def _bounds(span: Span) -> tuple[str, str]:
    if not isinstance(span, KeyRange):
        raise UsageError("the pages of a collection are split by ranges of addresses: leave --split away")
    return _place(span.low, ""), _place(span.high, LAST)


def _place(cut: Cut | None, end: str) -> str:
    if cut is None:
        return end
    return after_url(str(cut.key)) if cut.after else str(cut.key)
