"""What the shared SQL store needs from a database: transactions, a dialect, and locked site rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from levada.core.errors import StoreError, StoreFull, StoreTooNew
from levada.store.rows import Row

Parameters = Sequence[Any] | Mapping[str, Any]


class Write(Protocol):
    """A transaction in progress."""

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]: ...
    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> object: ...
    def executemany(self, sql: str, rows: Sequence[Row], /) -> object: ...

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter. Counters are written at the end of the transaction."""

    def take_steps(self, count: int) -> range:
        """Take `count` numbers for changes, as the last step: on a server, others wait for it until the commit."""

    def reach(self, step: str) -> None: ...

    def pipeline(self) -> AbstractContextManager[object]:
        """Sends what is written within it together."""


WriteT = TypeVar("WriteT", bound=Write)
WriteT_co = TypeVar("WriteT_co", bound=Write, covariant=True)


class Database(Protocol[WriteT_co]):
    """One connection with one transaction at a time. Every failure is a `StoreError`."""

    seq_base: int  # changes are numbered from here at least

    @property
    def place(self) -> str: ...
    def write(self, operation: str) -> AbstractContextManager[WriteT_co]: ...
    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]: ...
    def format(self) -> int: ...

    def mark(self) -> int | None:
        """Changes with every commit of another connection; None where finding out costs as much as a query."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Dialect:
    """What the two databases write differently. Statements mark parameters as `?` and `:name`; `written` adapts
    them."""

    written: Callable[[str], str]
    greatest: str
    among: str  # tests whether a column's value is in a list of numbers, one parameter
    ids: str  # a list of numbers as table `listed`, joined in its order with the table named next
    in_order: str  # the clause that keeps that order
    urls: str  # a list of URLs (`url_list`) as table `listed`, joined with their pages `p`
    by_url: str  # the page `p` of one URL (`url_key`)
    url_range: str  # pages `p` with URLs from :low to before :high
    url_order: str
    documents: str  # the tables that hold a page and its document; the next lines say where:
    document: str
    document_id: str
    joined_document: str
    version: str
    gone: str
    no_bytes: str
    leased: str  # tests whether a lease `l` is held and its page does not move
    fenced: str  # tests whether the page moves
    first_of_union: str  # the first :limit rows of {first} and {second}, by their first column
    workable: str  # tests whether a site without backoff has a page to visit at :now
    size: str  # bytes on disk
    insert_page: str  # id, site, url, kind, how, depth, hops, priority, found_at, found_on; `page_row` completes it
    keep_validators: str  # page, etag, last_modified, body_digest, text_digest
    keep_document: str  # the same and version, gone, sketch, seq
    no_longer_new: str  # deletes pages (ids) from `unvisited`
    forget_document: tuple[str, ...]  # deletes what documents hold outside `pages` (ids)
    id_list: Callable[[Iterable[int]], Any]
    url_list: Callable[[Sequence[str]], tuple[Any, ...]]
    url_key: Callable[[str], tuple[Any, ...]]
    page_row: Callable[[Row], Row]


@dataclass(slots=True)
class HeldSite:
    """A site's row as the transaction will write it."""

    id: int
    site: str
    admitted: bool
    pages: int
    rest_until: float
    delay: float | None
    turn_at: float
    taken: int
    due_at: float | None
    numbered: int  # pages that ever had a number here; at least as many as it has now
    changed: bool = False
    is_new: bool = False  # made by this transaction, and not yet used

    def pull(self, at: float) -> None:
        """A page became due: the site's turn comes no later than that, but never before its time."""
        due = self.due_at
        if due is None or due > at:
            turn = max(at, self.turn_at, self.rest_until)
            if due is None or due > turn:
                self.due_at, self.changed = turn, True

    def set_turn(self, earliest: float | None) -> None:
        """Recompute when the site's next page may be leased."""
        due = None if earliest is None else max(earliest, self.turn_at, self.rest_until)
        if due != self.due_at:
            self.due_at, self.changed = due, True

    def admit(self) -> None:
        if not self.admitted:
            self.admitted = self.changed = True


class HeldSites(Generic[WriteT]):
    """The sites that one transaction has locked. Each database locks them in its own way."""

    def __init__(self, write: WriteT) -> None:
        self.by_id: dict[int, HeldSite] = {}
        self.by_name: dict[str, HeldSite] = {}
        self._write = write
        self._new: set[str] = set()

    def take_named(self, names: Collection[str]) -> None:
        """Lock these sites; create those that are missing."""
        raise NotImplementedError

    def lock_named(self, names: Iterable[str]) -> None:
        raise NotImplementedError

    def lock_numbered(self, ids: Iterable[int], *, wait: bool = True) -> list[int]:
        """Lock these sites, and return the ids of those that are locked now."""
        raise NotImplementedError

    def drop(self, site: HeldSite) -> None:
        """Delete a site that has no pages left. Its number is not used again."""
        raise NotImplementedError

    def save(self) -> None:
        """Write the sites that changed."""
        raise NotImplementedError

    def changed(self) -> list[HeldSite]:
        """The changed sites, to be written now."""
        changed = [site for site in self.by_id.values() if site.changed]
        for site in changed:
            site.changed = False
        return changed

    def _take(self, rows: Sequence[Row]) -> list[HeldSite]:
        for row in rows:
            if row[0] not in self.by_id:
                site = HeldSite(*row)
                site.is_new = site.site in self._new
                self.by_id[site.id] = self.by_name[site.site] = site
        return [self.by_id[row[0]] for row in rows]


class KnownUrls:
    """At most `limit` URLs that are certainly stored, to save lookups of repeated links.

    A "no" means only "perhaps not". Add URLs after their commit, never before. Two generations replace an order of
    use: when the younger one is full it becomes the older one, and URLs that nobody named since are forgotten with
    the next change.
    """

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __contains__(self, url: str) -> bool:
        if url in self._young:
            return True
        if url in self._old:
            self._keep(url)
            return True
        return False

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def update(self, urls: Iterable[str]) -> None:
        for url in urls:
            self._keep(url)

    def _keep(self, url: str) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
        if self._half:
            self._young.add(url)


def check_format(place: str, version: int, ours: int, what: str) -> None:
    """Raise if a store has another format than ours. `what` is what the user can name instead: a folder, a
    schema."""
    if version > ours:
        raise StoreTooNew(f"{place} was written by a newer Levada (format {version}, ours is {ours}): update Levada")
    if version < ours:
        raise StoreError(
            f"{place} was written by an older Levada (format {version}, ours is {ours}): "
            f"crawl into another {what}, or use that Levada"
        )


def no_space(place: str) -> StoreFull:
    return StoreFull(f"no space left for {place}: nothing of this batch was written; free some space, then start again")
