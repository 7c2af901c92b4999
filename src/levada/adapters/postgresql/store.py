"""Where does a whole crawl live that several machines share? Every port of a store over one PostgreSQL schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.adapters.faults import NoFaults
from levada.adapters.limits import StoreLimits
from levada.adapters.moving import MovedPage
from levada.adapters.postgresql.census import PostgresqlCensus
from levada.adapters.postgresql.connecting import Address
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.documents import PostgresqlDocuments
from levada.adapters.postgresql.frontier import PostgresqlFrontier
from levada.adapters.postgresql.laws import check
from levada.adapters.postgresql.moving import PostgresqlMovers
from levada.adapters.postgresql.notices import PostgresqlNotices
from levada.adapters.postgresql.outbox import PostgresqlOutbox
from levada.adapters.postgresql.sites import PostgresqlSites
from levada.ports import Faults
from levada.records import (
    Change,
    Document,
    Forwarded,
    Found,
    Happening,
    Lease,
    Notice,
    PageRecord,
    Refusal,
    Said,
    Settled,
    SiteRecord,
    Standing,
    VersionInfo,
)

__all__ = ["PostgresqlStore"]


class PostgresqlStore:
    """One schema of one database. Each write is one transaction: whole, or an error and nothing.

    Threads may share an instance (they take turns); processes, on any machine, open their own and work at once.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "levada",
        limits: StoreLimits | None = None,
        faults: Faults | None = None,
        read_only: bool = False,
    ) -> None:
        self.address = Address(dsn, schema)
        self.place, self.schema = self.address.place, schema
        self._limits = limits or StoreLimits()
        self._database = Database(self.address, self._limits, faults or NoFaults(), read_only=read_only)
        self._frontier = PostgresqlFrontier(self._database, self._limits)
        self._sites = PostgresqlSites(self._database)
        self._documents = PostgresqlDocuments(self._database)
        self._census = PostgresqlCensus(self._database)
        self._notices = PostgresqlNotices(self._database)
        self._outbox = PostgresqlOutbox(self._database)
        self._movers = PostgresqlMovers(self._database)

    @classmethod
    def open_reader(cls, dsn: str, *, schema: str = "levada", limits: StoreLimits | None = None) -> PostgresqlStore:
        """A store that answers questions and refuses to write, beside a writer or alone."""
        return cls(dsn, schema=schema, limits=limits, read_only=True)

    def close(self) -> None:
        self._database.close()

    @property
    def format(self) -> int:
        """The number of the layout that this store is written in."""
        return self._database.format()

    def check(self) -> None:
        """Read everything once; `StoreDamaged` if the schema is not sound."""
        check(self._database)

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        return self._frontier.add(found, refused, now)

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        return self._frontier.lease(now, limit, seconds, due)

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        return self._frontier.settle(visits)

    def release(self, leases: Sequence[Lease]) -> None:
        self._frontier.release(leases)

    def forget_leases(self) -> None:
        """For whoever knows that it is the only one: pages leased by processes that died are free at once."""
        self._frontier.forget_leases()

    def page(self, url: str) -> PageRecord | None:
        return self._frontier.page(url)

    def url_of(self, page_id: int) -> str | None:
        """The address of the page with this number."""
        return self._frontier.url_of(page_id)

    def urls_like(self, start: str, limit: int) -> list[str]:
        """The first addresses, in their order, that begin with `start`: a front page names those of its site."""
        return self._frontier.urls_like(start, limit)

    def standing(self, now: float) -> Standing:
        return self._frontier.standing(now)

    def site(self, site: str) -> SiteRecord | None:
        return self._sites.site(site)

    def save(self, record: SiteRecord) -> None:
        self._sites.save(record)

    def sites(self) -> Iterator[SiteRecord]:
        return self._sites.sites()

    def document(self, url: str, version: int | None = None) -> Document | None:
        return self._documents.document(url, version)

    def versions(self, url: str) -> list[VersionInfo]:
        return self._documents.versions(url)

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._documents.changes(after, limit)

    def newest_seq(self) -> int:
        """The step of the newest change; 0 if nothing was ever stored."""
        return self._documents.newest_seq()

    def happenings(self, after: int, limit: int) -> list[Happening]:
        return self._documents.happenings(after, limit)

    def scan(self) -> Iterator[Document]:
        return self._documents.scan()

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        return self._census.sample(one_in)

    def live_pages(self) -> int:
        return self._census.live_pages()

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        return self._notices.outdated(notices)

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        self._notices.bring_forward(pages)

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return self._frontier.waiting(now, limit)

    def follow_seq(self, seq: int) -> None:
        self._database.seq_base = max(self._database.seq_base, seq)

    def undelivered(self, limit: int) -> list[Forwarded]:
        return self._outbox.undelivered(limit)

    def delivered(self, ids: Sequence[int]) -> None:
        self._outbox.delivered(ids)

    def receive(self, links: Sequence[Forwarded]) -> int:
        return self._frontier.receive(links)

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        return self._movers.fence(urls)

    def take_in(self, pages: Sequence[MovedPage]) -> None:
        self._movers.take_in(pages)

    def let_go(self, page_ids: Sequence[int]) -> None:
        self._movers.let_go(page_ids)

    def open_up(self, page_ids: Sequence[int]) -> None:
        self._movers.open_up(page_ids)

    def fenced(self) -> list[tuple[int, str]]:
        return self._movers.fenced()

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        return self._movers.urls_after(page_id, limit)
