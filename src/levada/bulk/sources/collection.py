"""The pages of a Levada collection as one table.

A task is a range of URLs over all shards, so that a page that moves between shards is read once. It is read in
slices, so that no writer waits for the reader. Two slices may show two moments; compare a summary's version with
the shard's where that matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from levada.bulk.entries import PlainRows
from levada.bulk.protocols import RowBatch
from levada.bulk.splitting import Cut, Key, KeyRange, NullKeys, Span, TableFacts
from levada.core.errors import UsageError
from levada.core.folder import DataFolder
from levada.core.hashing import content_digest
from levada.store.opening import shard_places
from levada.store.summaries import PageSummary

if TYPE_CHECKING:
    from levada.bulk.tasks import LoadPlan
    from levada.store.sql.reading import PageSummaries

SCHEME = "levada://"
TABLE, KEY, VALUE, WATERMARK = "pages", "url", "card", "met_at"
_WHOLE = "levada.db"  # the name of the only shard, where a collection is one file

LAST = "\U0010ffff"  # no URL begins with it
_NEXT = "\x01"  # no URL holds it
_AT_ONCE = 500
_SUMMARY_BYTES = 256  # average size of a summary beyond which its task counts as too big


class LevadaSource:
    """The page summaries of all shards. `layout` says which shards hold what: if it changed, all pages are read
    again."""

    def __init__(self, summaries: Sequence[PageSummaries], layout: str = "") -> None:
        self._page_summaries, self._layout = summaries, layout
        self._since: float | None = None

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since_in(since, self._layout)
        return ""

    def facts(self) -> TableFacts:
        """The newest time is read first: a visit during the count belongs to the next load."""
        newest = max((page_summaries.newest() for page_summaries in self._page_summaries), default=0.0)
        return TableFacts(
            sum(page_summaries.count("", LAST) for page_summaries in self._page_summaries),
            "text",
            indexed=True,
            unique=True,
            key_nullable=False,
            newest=f"{newest!r} {self._layout}",
        )

    def sample(self, span: Span, size: int) -> list[Key]:
        low, high = _bounds(span)
        one_in = max(1, sum(page_summaries.count(low, high) for page_summaries in self._page_summaries) // size)
        return sorted(chain.from_iterable(each.urls(low, high, one_in) for each in self._page_summaries))

    def duplicate(self) -> Key | None:
        return None

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return 0
        found: dict[str, PageSummary] = {}
        room = (limit or 0) * _SUMMARY_BYTES
        for url, summary in self._rows(*_bounds(span)):
            if url not in found:
                found[url] = summary
                room -= len(url) + len(summary.title)
                if limit is not None and (len(found) > limit or room < 0):
                    return None
        return PlainRows(list(found), list(found.values()), ("text", "any"))

    def close(self) -> None:
        for page_summaries in self._page_summaries:
            page_summaries.close()

    def _rows(self, low: str, high: str) -> Iterator[tuple[str, PageSummary]]:
        for page_summaries in self._page_summaries:
            start = low
            while slice_ := page_summaries.summaries(start, high, _AT_ONCE, self._since):
                yield from slice_
                start = after_url(slice_[-1][0])


def since_in(watermark: str | None, layout: str) -> float | None:
    """From when on pages must be read again; None for all of them."""
    at, _, before = (watermark or "").partition(" ")
    return float(at) if at and before == layout else None


def after_url(url: str) -> str:
    """The first position after this URL."""
    return url + _NEXT


def _bounds(span: Span) -> tuple[str, str]:
    if not isinstance(span, KeyRange):
        raise UsageError("the pages of a collection are split by ranges of URLs: omit --split")
    return _place(span.low, ""), _place(span.high, LAST)


def _place(cut: Cut | None, end: str) -> str:
    if cut is None:
        return end
    return after_url(str(cut.key)) if cut.after else str(cut.key)


def open_summaries(url: str, plan: LoadPlan) -> LevadaSource:
    """The source that `levada:///PATH` names. It has one table with a key, a value and a watermark."""
    folder = DataFolder(Path(url.removeprefix(SCHEME)))
    folder.must_exist()
    named = (plan.table, plan.key, plan.value, plan.watermark or WATERMARK)
    if named != (TABLE, KEY, VALUE, WATERMARK):
        raise UsageError(f"a collection is read as --table {TABLE} --key {KEY} --value {VALUE}: see levada warm")
    with ExitStack() as opened:
        summaries = [
            opened.enter_context(closing(open_page_summaries(folder, name))) for name in page_summary_names(folder)
        ]
        opened.pop_all()  # the source closes them
    return LevadaSource(summaries, layout_of(folder))


def layout_of(folder: DataFolder) -> str:
    try:
        return content_digest(folder.placement.read_bytes()).hex()
    except OSError:
        return ""


def page_summary_names(folder: DataFolder) -> list[str]:
    """The names of a collection's shards in its page summaries."""
    return [place.folder for place in shard_places(folder)] or [_WHOLE]


def open_page_summaries(folder: DataFolder, name: str) -> PageSummaries:
    from levada.store import sqlite

    place = next((each for each in shard_places(folder) if each.folder == name), None)
    if place is not None and place.server:
        from levada.store import postgresql

        return postgresql.open_summaries(place.server, place.schema, name)
    shard = DataFolder(folder.path / place.folder) if place is not None else folder
    return sqlite.open_summaries(shard.database, name)
