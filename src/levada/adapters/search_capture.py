"""What is Levada itself asked?

A search and a look at one page as `AskedQuery`, so that its own store is sharded by what is asked of it. `site:` is
an equality on `site`, of which a page has several values: its host and every one above it. Writing the log never
stands in the way of an answer: what cannot be written is counted.
"""

from __future__ import annotations

from pathlib import Path

from levada.adapters.asked_file import AskedWriter, RotatingFile
from levada.errors import BadQuery, LevadaError
from levada.pages.query import Language, Since, Site, Term, parse_page_of_hits
from levada.searching import Query
from levada.sharding.asked import AllOf, AnyOf, AskedQuery, Condition, Filter, NoneOf
from levada.sharding.asked_values import ValueRule

__all__ = ["PAGES", "SearchCapture", "asked_of_page", "asked_of_search"]

PAGES = "levada.pages"


def asked_of_search(query: Query) -> AskedQuery:
    """`BadQuery` if it cannot be understood."""
    ask = parse_page_of_hits(query)
    must: list[Filter] = [_either(group) for group in ask.must]
    if ask.must_not:
        must.append(NoneOf(tuple(_condition(term) for term in ask.must_not)))
    wanted = AllOf(tuple(must)) if len(must) > 1 else must[0]
    return AskedQuery(PAGES, "find", at=query.now, source="search", filter=wanted, limit=query.offset + query.limit)


def asked_of_page(url: str, at: float | None = None) -> AskedQuery:
    """One page by its address: its document, its versions, why it is visited when."""
    return AskedQuery(PAGES, "find", at=at, source="search", filter=Condition("url", "eq", (url,)), limit=1)


def _either(group: tuple[Term, ...]) -> Filter:
    found = tuple(_condition(term) for term in group)
    return AnyOf(found) if len(found) > 1 else found[0]


def _condition(term: Term) -> Condition:
    if isinstance(term, Site):
        return Condition("site", "eq", (term.host,))
    if isinstance(term, Language):
        return Condition("language", "eq", (term.code,))
    if isinstance(term, Since):
        return Condition("changed_at", "range", (term.at, None))
    return Condition("text", "text", (" ".join(term.folded),))


class SearchCapture:
    """A log that is appended to; several processes may write to one."""

    def __init__(
        self, path: Path, rule: ValueRule | None = None, *, sample: float = 1.0, rotate: int | None = None
    ) -> None:
        try:
            self._file = RotatingFile(path, rotate)
        except OSError as error:
            raise LevadaError(f"cannot write the captured queries to {path}: {error.strerror}") from None
        self._writer = AskedWriter(self._file, rule or ValueRule(), sample)
        self.lost = 0

    def search(self, query: Query) -> None:
        """One that cannot be understood is no query; its answer says so."""
        try:
            asked = asked_of_search(query)
        except BadQuery:
            return
        self._write(asked)

    def page(self, url: str, at: float | None = None) -> None:
        self._write(asked_of_page(url, at))

    def close(self) -> None:
        self._file.close()

    def _write(self, asked: AskedQuery) -> None:
        try:
            self._writer.write(asked)
        except OSError:
            self.lost += 1
