"""Reading an SQL store: pages, documents, sites, the page sample, statistics and page summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic

from levada.core.errors import StoreDamaged
from levada.core.records import (
    Change,
    ChangeEvent,
    CollectionStats,
    Document,
    PageRecord,
    PageText,
    PlanSelection,
    SiteRecord,
    VersionInfo,
)
from levada.pages.change import text_part
from levada.store.base import StoreLimits, changed_limits
from levada.store.bodies.bodies import Bodies, must_be_whole, whole_rows
from levada.store.rows import (
    CHANGE_KINDS,
    CONTENT,
    Row,
    change_record,
    document_record,
    is_shown_change,
    page_record,
    site_record,
    without_document,
)
from levada.store.rules import DUE_COUNTED, checked_one_in, plain_text, text_key
from levada.store.sql.base import Asked, Database, KnownUrls, WriteT
from levada.store.sql.statements import Statements
from levada.store.summaries import PageSummary, SummaryVersion, summary_of

_SITES_COUNTED = 2_000
_PAGES_AT_ONCE = 500
_SITES_AT_ONCE = 200
_DOCUMENTS_AT_ONCE = 32
_LAST = "\U0010ffff"


class SqlReader(Generic[WriteT]):
    """The read-only queries of a store, on either database."""

    sql: ClassVar[Statements]

    def __init__(self, database: Database[WriteT], limits: StoreLimits, bodies: Bodies | None = None) -> None:
        self._database = database
        self._rows = database.rows
        self._bodies = bodies
        self._limits = limits
        self._known = KnownUrls(limits.known_urls)

    def close(self) -> None:
        self._database.close()
        if self._bodies is not None:
            self._bodies.close()

    def set_limits(self, limits: StoreLimits) -> None:
        self._limits = changed_limits(self._limits, limits)

    @property
    def format(self) -> int:
        """The version of the layout that this store is written in."""
        return self._database.format()

    def page(self, url: str) -> PageRecord | None:
        rows = self._rows(self.sql.page, self.sql.dialect.url_key(url))
        return page_record(rows[0]) if rows else None

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        return originals_among(texts, lambda keys: self._rows(self.sql.originals, (self.sql.dialect.id_list(keys),)))

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        if not sites:
            return {}
        return {
            site: bytes(runs) for site, runs in self._rows(self.sql.near_runs, (self.sql.dialect.name_list(sites),))
        }

    def url_of(self, page_id: int) -> str | None:
        rows = self._rows(self.sql.url_of, (page_id,))
        return rows[0][0] if rows else None

    def urls_like(self, start: str, limit: int) -> list[str]:
        start = plain_text(start)
        bounds = {"low": start, "high": start + _LAST, "limit": max(0, limit)}
        return [url for (url,) in self._rows(self.sql.urls_like, bounds)]

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        return [(id, url) for id, url in self._rows(self.sql.urls_after, (page_id, max(0, limit)))]

    def document(self, url: str, version: int | None = None) -> Document | None:
        asked = (version, *self.sql.dialect.url_key(url))
        rows = self._rows(self.sql.document, asked)
        try:
            whole = self._whole(rows, keep=True)
        except StoreDamaged:
            if (now := self._rows(self.sql.document, asked)) == rows:
                raise
            whole = self._whole(now, keep=True)  # it was forgotten, or replaced, between the row and its body
        return document_record(whole[0]) if whole else None

    def versions(self, url: str) -> list[VersionInfo]:
        return [VersionInfo(*row) for row in self._rows(self.sql.versions, self.sql.dialect.url_key(url))]

    def changes(self, after: int, limit: int) -> list[Change]:
        bounds = {"after": after, "limit": max(0, limit)}
        rows = self._rows(self.sql.changes, bounds)
        shown = [at for at, row in enumerate(rows) if is_shown_change(row)]
        for at, row in zip(shown, whole_rows(self._bodies, [rows[at] for at in shown], CONTENT), strict=True):
            if isinstance(row, str):  # one body that is lost must not keep all later changes from those who follow
                import logging  # here: a follower needs it only for this

                logging.getLogger(__name__).warning("%s is left out of the search index: its body %s", rows[at][3], row)
                rows[at] = without_document(rows[at])
            else:
                rows[at] = row
        return [change_record(row) for row in rows]

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        rows = self._rows(self.sql.change_log, (after, max(0, limit)))
        return [ChangeEvent(seq, at, CHANGE_KINDS[what], *rest) for seq, at, what, *rest in rows]

    def newest_seq(self) -> int:
        ((newest,),) = self._rows(self.sql.newest_seq)
        return int(newest)

    def scan(self) -> Iterator[Document]:
        last = 0
        while rows := self._rows(self.sql.scan, (last, _DOCUMENTS_AT_ONCE)):
            last = rows[-1][0]
            yield from map(document_record, self._whole(rows))

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in, last = checked_one_in(one_in), 0
        while rows := self._rows(self.sql.sample, (last, one_in, _PAGES_AT_ONCE)):
            last = rows[-1][0]
            yield from map(page_record, rows)

    def live_pages(self) -> int:
        rows = self._rows(self.sql.stored)
        return int(rows[0][0]) if rows else 0

    def site(self, site: str) -> SiteRecord | None:
        rows = self._rows(self.sql.site, (plain_text(site),))
        return site_record(rows[0], sorted(self._rows(self.sql.refused_by, (rows[0][0],)))) if rows else None

    def sites(self) -> Iterator[SiteRecord]:
        last = 0
        while rows := self._rows(self.sql.sites, (last, _SITES_AT_ONCE)):
            last = rows[-1][0]
            refused: dict[int, list[Row]] = {row[0]: [] for row in rows}
            for site_id, *refusal in self._rows(self.sql.refused, (self.sql.dialect.id_list(refused),)):
                refused[site_id].append(tuple(refusal))
            yield from [site_record(row, sorted(refused[row[0]])) for row in rows]

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        bounds = {**_bounds(selection), "after": after, "limit": max(0, limit)}
        statement = self.sql.planned_of_site if selection.site else self.sql.planned
        ids = [id for (id,) in self._rows(statement, bounds)]
        return [page_record(row) for row in self._rows(self.sql.pages, (self.sql.dialect.id_list(ids),))] if ids else []

    def count_planned(self, selection: PlanSelection, now: float) -> int:
        statement = self.sql.count_planned_of_site if selection.site else self.sql.count_planned
        ((found,),) = self._rows(statement, {**_bounds(selection), "now": now})
        return int(found)

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return [(due, taken) for due, taken in self._rows(self.sql.waiting, (now, max(0, limit)))]

    def stats(self, now: float) -> CollectionStats:
        """Counters are stored, except `due`, which is counted up to 10,000 in the next 2,000 sites."""
        counts: dict[str, int] = dict(self._rows(self.sql.counters))
        bounds = {"now": now, "sites": _SITES_COUNTED, "due": DUE_COUNTED}
        ((due, leased, expiry, turn, workable, size),) = self._rows(self.sql.stats, bounds)
        states = _under("state.", counts)
        return CollectionStats(
            sites=counts.get("sites", 0),
            known=sum(states.values()),
            unvisited=counts.get("unvisited", 0),
            due=due,
            leased=leased,
            stored=counts.get("stored", 0),
            versions=counts.get("versions", 0),
            next_due=min((at for at in (expiry, turn) if at is not None), default=None),
            workable=bool(workable),
            states=states,
            refused=_under("refused.", counts),
            bytes=size or 0,
        )

    def _whole(self, rows: Sequence[Row], *, keep: bool = False) -> list[Row]:
        """Rows of documents with their frames, wherever these lie."""
        return must_be_whole(whole_rows(self._bodies, rows, CONTENT, keep=keep), [row[1] for row in rows])

    def follow_seq(self, seq: int) -> None:
        self._database.seq_base = max(self._database.seq_base, seq)


class PageSummaries:
    """The summaries of the visited pages of the shard `name`, by URL, from `low` to before `high`."""

    def __init__(self, database: Database[Any], sql: Statements, name: str) -> None:
        self._database = database
        self._sql = sql
        self._name = name

    def count(self, low: str, high: str) -> int:
        """About how many pages there are, with those never visited."""
        ((found,),) = self._database.rows(self._sql.count_range, {"low": low, "high": high})
        return int(found)

    def urls(self, low: str, high: str, one_in: int) -> list[str]:
        """About one URL in `one_in`, in order."""
        bounds = {"low": low, "high": high, "one_in": one_in}
        return [url for (url,) in self._database.rows(self._sql.urls_range, bounds)]

    def summaries(self, low: str, high: str, limit: int, since: float | None) -> list[tuple[str, PageSummary]]:
        """The first `limit` summaries; with `since`, only of pages that may have been visited since then."""
        bounds = {"low": low, "high": high, "limit": limit}
        if since is None:
            rows = self._database.rows(self._sql.summaries, bounds)
        else:
            rows = self._database.rows(self._sql.summaries_since, {**bounds, "since": since})
        return [self._summary(row) for row in rows]

    def newest(self) -> float:
        """When a page was last seen; 0 if never."""
        ((found,),) = self._database.rows(self._sql.newest_met)
        return float(found)

    def summary_version(self, page_id: int) -> SummaryVersion | None:
        """The version of a page's summary now; None if this shard has no visited page with this id."""
        rows = self._database.rows(self._sql.summary_version, (page_id,))
        return SummaryVersion(*rows[0]) if rows else None

    def mark(self) -> int | None:
        """A number that stays the same while nothing is written; None where it costs as much as a version."""
        return self._database.mark()

    def close(self) -> None:
        self._database.close()

    def _summary(self, row: Row) -> tuple[str, PageSummary]:
        *columns, met_at, title, words, fetched_at = row
        page = page_record(tuple(columns))
        return page.url, summary_of(page, title, words, fetched_at, shard=self._name, met_at=met_at)


def _bounds(selection: PlanSelection) -> dict[str, str | float]:
    bounds: dict[str, str | float] = {
        "later": selection.later_than,
        "until": selection.until,
        "failures": 1 if selection.failing else 0,
    }
    if selection.site:
        bounds["site"] = plain_text(selection.site)
    return bounds


def _under(prefix: str, counts: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in counts.items() if n and name.startswith(prefix)}


def originals_among(texts: Sequence[PageText], look_up: Callable[[list[int]], list[Row]]) -> list[str | None]:
    """The page of each text; `look_up` gives the rows of `Statements.originals`."""

    def ask(keys: list[int]) -> Asked:
        rows = look_up(keys)
        return lambda: rows

    return ask_originals(texts, ask)()


def ask_originals(texts: Sequence[PageText], ask: Callable[[list[int]], Asked]) -> Callable[[], list[str | None]]:
    """The same for rows that are asked for now and read later."""
    keys = [text_key(text.site, text.digest) for text in texts]
    wanted = sorted({key for key in keys if key is not None})
    asked = ask(wanted) if wanted else list

    def originals() -> list[str | None]:
        found = {row[0]: row[1:] for row in asked()}
        pages: list[str | None] = []
        for text, key in zip(texts, keys, strict=True):
            site, digest, url = found.get(key, (None, None, None))
            is_same = site == text.site and text_part(digest) == text_part(text.digest)
            pages.append(url if is_same else None)
        return pages

    return originals
