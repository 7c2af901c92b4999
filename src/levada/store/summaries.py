"""Page summaries: the facts shown about a page in one record, the same from the store and from a warm map."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from levada.core.records import Outcome, PageRecord

_MET = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)


class SummaryVersion(NamedTuple):
    """Changes with every visit, and whenever the next visit is rescheduled."""

    visits: int
    next_visit: float | None
    met_at: float


class PageSummary(msgspec.Struct, frozen=True, array_like=True):
    """The facts about one page."""

    site: str
    kind: str
    state: str
    reason: str | None
    title: str
    words: int
    version: int  # 0 if nothing is stored
    fetched_at: float | None
    checked_at: float | None  # the last remembered visit that saw this version
    next_visit: float | None
    visits: int
    id: int = 0  # with `shard`, finds its summary version
    shard: str = ""
    met_at: float = 0.0
    leads_to: str | None = None

    @property
    def summary_version(self) -> SummaryVersion:
        return SummaryVersion(self.visits, self.next_visit, self.met_at)


def summary_of(
    page: PageRecord,
    title: str | None,
    words: int | None,
    fetched_at: float | None,
    *,
    shard: str = "",
    met_at: float = 0.0,
) -> PageSummary:
    """Make a summary. `title`, `words` and `fetched_at` are of the newest version, None if there is none."""
    met = next((visit.at for visit in reversed(page.history) if visit.outcome in _MET), None)
    return PageSummary(
        page.site,
        page.kind.value,
        page.state.value,
        page.reason,
        title or "",
        words or 0,
        page.version,
        fetched_at,
        None if fetched_at is None else met,
        page.next_visit,
        page.visits,
        page.id,
        shard,
        met_at,
        page.leads_to,
    )
