"""The query log: writing captured queries, rotating files, and the capture of Levada's own queries.

`QueryLogWriter` writes to any output; it samples queries and hides values as its rule says. A capture that runs for
weeks writes a `RotatingFile`: `queries.jsonl`, and the files before it as `queries.jsonl.1`, `.2` and so on.

Levada records its own searches and page lookups as `QueryEntry`, so that its own store can be sharded by them.
`site:` is an equality on `site`, of which a page has several values: its host and every one above it. Writing the
log never delays an answer: what cannot be written is counted.
"""

from __future__ import annotations

import math
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from levada.core.errors import BadQuery, LevadaError
from levada.core.search_records import Query
from levada.search.properties import RangeOf, WordsOf
from levada.search.query import parse_page_of_hits
from levada.search.terms import Ask, Language, Pages, Since, SiteFilter, Term, Until, UrlWords
from levada.sharding.queries import (
    LONGEST_LINE,
    AllOf,
    AnyOf,
    Condition,
    Filter,
    NoneOf,
    QueryEntry,
    ValueRule,
    Values,
    all_of,
    query_line,
)

_DROP = ValueRule(Values.DROP)


class _Output(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Written(msgspec.Struct):
    """Counts of what was written to the log, and what was not."""

    queries: int = 0
    sampled_out: int = 0
    bytes: int = 0


class QueryLogWriter:
    """One line per query, all of it or nothing; a random `sample` of them."""

    def __init__(self, out: _Output, rule: ValueRule, sample: float = 1.0, seed: int | None = None) -> None:
        self._out = out
        self._rule = rule
        self._sample = sample
        self._chance = random.Random(seed)  # noqa: S311  no secret hangs on which queries are drawn
        self.written = Written()

    def write(self, query: QueryEntry) -> None:
        if self._sample < 1.0 and self._chance.random() >= self._sample:
            self.written.sampled_out += 1
            return
        line = query_line(self._rule.apply(query))
        if len(line) > LONGEST_LINE:  # readers skip longer lines
            line = query_line(_DROP.apply(query))
        self._out.write(line)
        self.written.queries += 1
        self.written.bytes += len(line)


class RotatingFile:
    """A file that is appended to, and started anew before it exceeds `rotate` bytes; the last `keep` files are
    kept."""

    def __init__(self, path: Path, rotate: int | None = None, keep: int = 10) -> None:
        self._path = path
        self._rotate = rotate
        self._keep = max(1, keep)
        self._file = self._open()

    def write(self, line: bytes) -> None:
        """Write a line; an `OSError` leaves nothing of it."""
        if self._rotate is not None and self._size and self._size + len(line) > self._rotate:
            self._rename_files()
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            self._take_back(written)
            raise
        self._size += len(line)

    def close(self) -> None:
        os.close(self._file)

    def _take_back(self, written: int) -> None:
        """Remove half a line again, unless another process has written after it."""
        with suppress(OSError):
            end = os.lseek(self._file, 0, os.SEEK_CUR)
            if written and os.fstat(self._file).st_size == end:
                os.ftruncate(self._file, end - written)

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(file).st_size
        return file

    def _rename_files(self) -> None:
        """Increase all numbers by one; the oldest file goes."""
        self._place(self._keep).unlink(missing_ok=True)
        for number in range(self._keep - 1, -1, -1):
            with suppress(FileNotFoundError):
                self._place(number).rename(self._place(number + 1))
        old, self._file = self._file, self._open()
        os.close(old)

    def _place(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


PAGES = "levada.pages"


def query_of_search(query: Query) -> QueryEntry:
    """The entry of a search; `BadQuery` if it cannot be understood."""
    found = _filter(parse_page_of_hits(query))
    limit = query.offset + query.limit
    return QueryEntry(PAGES, "find", at=query.now, source="search", filter=found, limit=limit)


def _filter(ask: Ask) -> Filter | None:
    must: list[Filter] = [_either(group) for group in ask.must]
    if ask.must_not:
        must.append(NoneOf(tuple(_condition(term) for term in ask.must_not)))
    return all_of(must)


def query_of_page(url: str, at: float | None = None) -> QueryEntry:
    """The entry of a lookup by URL: a document, its versions, or the explanation of its next visit."""
    return QueryEntry(PAGES, "find", at=at, source="search", filter=Condition("url", "eq", (url,)), limit=1)


def _either(group: tuple[Term, ...]) -> Filter:
    found = tuple(_condition(term) for term in group)
    return AnyOf(found) if len(found) > 1 else found[0]


def _condition(term: Term) -> Filter:
    if isinstance(term, Ask):
        return _filter(term) or AllOf(())
    if isinstance(term, SiteFilter):
        return Condition("site", "eq", (term.host,))
    if isinstance(term, Language):
        return Condition("language", "eq", (term.code,))
    if isinstance(term, Since):
        return Condition("changed_at", "range", (term.at, None))
    if isinstance(term, Until):
        return Condition("changed_at", "range", (None, term.at))
    if isinstance(term, UrlWords):
        return Condition("url", "text", (" ".join(term.folded),))
    if isinstance(term, RangeOf):
        ends = (each if math.isfinite(each) else None for each in (term.low, term.high))
        return Condition(f"data.{term.property}", "range", tuple(ends))
    assert not isinstance(term, Pages)  # nobody can type it
    field = f"data.{term.property}" if isinstance(term, WordsOf) else term.field or "text"
    return Condition(field, "text", (" ".join(term.folded),))


class SearchCapture:
    """A log of Levada's own queries; several processes may append to one."""

    def __init__(
        self, path: Path, rule: ValueRule | None = None, *, sample: float = 1.0, rotate: int | None = None
    ) -> None:
        try:
            self._file = RotatingFile(path, rotate)
        except OSError as error:
            raise LevadaError(f"cannot write the captured queries to {path}: {error.strerror}") from None
        self._writer = QueryLogWriter(self._file, rule or ValueRule(), sample)
        self.lost = 0

    def search(self, query: Query) -> None:
        """Record a search. One that cannot be understood is not a query; its answer says so."""
        try:
            entry = query_of_search(query)
        except BadQuery:
            return
        self._write(entry)

    def page(self, url: str, at: float | None = None) -> None:
        self._write(query_of_page(url, at))

    def close(self) -> None:
        self._file.close()

    def _write(self, entry: QueryEntry) -> None:
        try:
            self._writer.write(entry)
        except OSError:
            self.lost += 1
