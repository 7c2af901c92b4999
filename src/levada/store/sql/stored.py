"""What a commit reads of its pages: asked for together with the locks, so that all of it is one round trip."""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.records import PageState, PageText, VisitResult
from levada.store.rows import Row
from levada.store.rules import amends
from levada.store.sql.base import Write
from levada.store.sql.reading import ask_originals
from levada.store.sql.statements import Statements


class Stored:
    """What a commit reads of its pages, asked for with the locks: all answers come in one round trip."""

    def __init__(self, write: Write, sql: Statements, visits: Sequence[VisitResult], *, by_time: bool) -> None:
        self._write = write
        self._sql = sql
        self._visits = visits
        self._by_time = by_time

    def ask(self) -> None:
        ask, sql, listed = self._write.ask, self._sql, self._sql.dialect.id_list
        pages = [result.lease.page for result in self._visits]
        self._tokens = ask(sql.tokens, (listed(page.id for page in pages),))
        # A live page is not gone, which spares most batches the lookup.
        doubtful = [page.id for page in pages if page.version and page.state is not PageState.LIVE]
        self._gone = ask(sql.gone, (listed(doubtful),)) if doubtful else None
        self._originals = [place for place, result in enumerate(self._visits) if result.is_original]
        self._texts = [PageText(pages[place].site, self._visits[place].text_digest or b"") for place in self._originals]
        self._copies = ask_originals(self._texts, lambda keys: ask(sql.originals, (listed(keys),)))
        amended = [page.id for page, result in zip(pages, self._visits, strict=True) if amends(result)]
        self._data = ask(sql.data_of, (listed(amended),)) if amended else None
        dated = [page.id for page, result in zip(pages, self._visits, strict=True) if result.version]
        self._versions = ask(sql.versions_of, (listed(dated),)) if dated and self._by_time else None

    def tokens(self) -> dict[int, int]:
        return dict(self._tokens())

    def gone(self) -> set[int]:
        return {id for (id,) in self._gone()} if self._gone else set()

    def copies(self) -> set[int]:
        """The positions of visits that take their page for the original of a text that another one has by now."""
        urls = [self._visits[place].lease.page.url for place in self._originals]
        found = self._copies()
        return {
            at for at, url, original in zip(self._originals, urls, found, strict=True) if original not in (None, url)
        }

    def data(self) -> dict[int, tuple[bytes | None, float]]:
        """The structured data of current versions that visits amend."""
        if self._data is not None:
            self._amended = {id: (data, at) for id, data, at in self._data()}
            self._data = None
        return self._amended

    def versions(self) -> list[Row]:
        return self._versions() if self._versions else []
