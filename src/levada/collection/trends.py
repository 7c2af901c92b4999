"""Trends of a collection: terms that pages gained lately, and how evenly the count workers were loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from levada.core.balance import CountReport
from levada.core.folder import DataFolder
from levada.core.search_records import Trend, TrendQuery
from levada.follow.counter import latest_change, measure_balance, open_trends
from levada.follow.trends import trend_query, trending
from levada.search.query import host_named, length_of_time
from levada.store.reading import open_collection

_BESIDE = ("key", "partial")
Progress = Callable[[int, int], None]  # changes that are counted, and all of them


class TrendReport(msgspec.Struct, frozen=True):
    """The terms that grew most, the strongest first; the window that was looked at; how the counting went."""

    query: TrendQuery
    trends: list[Trend]
    counting: CountReport


def find_trends(
    path: Path,
    *,
    window: str = "24h",
    site: str = "",
    language: str = "",
    limit: int = 10,
    on_progress: Progress = lambda done, total: None,
) -> TrendReport:
    """Terms that pages gained in the window up to the newest stored version, more often than before.

    Whatever is not counted yet is counted first.
    """
    seconds = length_of_time(window, "window")
    host = host_named(site) if site else None
    folder = DataFolder(path)
    with open_collection(folder) as collection:
        total = collection.store.newest_seq()
    with open_trends(folder, lambda seq: on_progress(seq, total)) as (collection, counts, report):
        step = collection.settings.trends.window
        query = trend_query(latest_change(collection), seconds, step, host, language.lower() or None)
        return TrendReport(query, trending(counts, query, limit), report)


def last_count(path: Path) -> CountReport:
    """How the latest counting went; whatever is not counted yet is counted first."""
    with open_trends(DataFolder(path)) as (_, _, report):
        return report


def compare_groupings(
    path: Path, *, latest: int | None = None, on_progress: Progress = lambda done, total: None
) -> CountReport:
    """The loads of the count workers by the grouping of the settings, and by key and partial key grouping.

    The term stream runs once more, from its beginning, or only that of the `latest` changes.
    """
    folder = DataFolder(path)
    with open_collection(folder) as collection:
        beside = [name for name in _BESIDE if name != collection.settings.trends.grouping]
        store = collection.store
        return measure_balance(collection, beside, lambda seq: on_progress(seq, store.newest_seq()), latest)
