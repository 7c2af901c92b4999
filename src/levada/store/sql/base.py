"""What both databases of the SQL store share: transactions, a dialect, and locked site rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from levada.core.errors import StoreError, StoreFull, StoreOutdated, StoreTooNew
from levada.core.protocols import Faults
from levada.store.rows import Row

Parameters = Sequence[Any] | Mapping[str, Any]
Asked = Callable[[], list[Row]]
"""Rows that were asked for; called once."""


class Write:
    """A transaction in progress. Each database adds how it runs a statement."""

    execute: Callable[..., Any]
    executemany: Callable[..., Any]
    _take: ClassVar[str]  # name, base, count: adds to a counter that begins with base, and gives the new value

    def __init__(self, operation: str, faults: Faults, seq_base: int) -> None:
        self._operation = operation
        self._faults = faults
        self._seq_base = seq_base
        self._counted: Counter[str] = Counter()

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        raise NotImplementedError

    def ask(self, sql: str, parameters: Parameters = (), /) -> Asked:
        """Ask now, and get the rows by calling what is returned. On a server, what is asked together costs one round
        trip, and all of it is answered before the first answer is read."""
        rows = self.rows(sql, parameters)
        return lambda: rows

    def write_counts(self) -> None:
        """Write the counters."""
        raise NotImplementedError

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter. Counters are written at the end of the transaction."""
        self._counted[name] += n

    def changed_counts(self) -> list[tuple[str, int]]:
        """What was added to counters since they were last written."""
        changed = sorted((name, n) for name, n in self._counted.items() if n)
        self._counted.clear()
        return changed

    def take(self, name: str, base: int, count: int) -> range:
        """Take the next `count` numbers of a counter, all above `base`."""
        ((last,),) = self.rows(self._take, {"name": name, "base": base, "count": count})
        return range(last - count + 1, last + 1)

    def take_steps(self, count: int) -> range:
        """Take `count` numbers for changes, as the last step: on a server, others wait for it until the commit."""
        if not count:
            return range(0)
        self.write_counts()
        return self.take("seq", self._seq_base, count)

    def number_steps(self, count: int) -> Sequence[int]:
        """Do the same for the statements of `Dialect.step`, without waiting for the numbers."""
        return self.take_steps(count)

    def reach(self, step: str) -> None:
        self._faults.reach(f"{self._operation}.{step}")


WriteT = TypeVar("WriteT", bound=Write)


class Database(Generic[WriteT]):
    """One connection with one transaction at a time. Every failure of the database is a `StoreError`."""

    def __init__(self, place: str, faults: Faults) -> None:
        self.place = place
        self.seq_base = 0  # changes are numbered from here at least
        self._faults = faults
        self._lock = threading.RLock()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        raise NotImplementedError

    def format(self) -> int:
        raise NotImplementedError

    def mark(self) -> int | None:
        """Changes with every commit of another connection; None where finding out costs as much as a query."""
        return None

    def close(self) -> None:
        raise NotImplementedError

    @contextmanager
    def write(self, operation: str) -> Iterator[WriteT]:
        """A transaction: committed if the block ends normally, otherwise rolled back and the failure raised."""
        with self._lock:
            self._usable()
            try:
                self._faults.reach(f"{operation}.begin")
                write = self._begin(operation)
                write.reach("begun")
                yield write
                write.write_counts()
                write.reach("before-commit")
                self._commit()
                write.reach("after-commit")
            except BaseException as error:
                self._roll_back()
                if (translation := self._translated(error)) is None:
                    raise
                raise translation from error

    def _usable(self) -> None:
        """Raise if the database was closed."""
        raise NotImplementedError

    def _begin(self, operation: str) -> WriteT:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def _roll_back(self) -> None:
        raise NotImplementedError

    def _translated(self, error: BaseException) -> StoreError | None:
        """The failure of the database that this error is; None if it is another error."""
        raise NotImplementedError


@dataclass(frozen=True)
class Dialect:
    """What the two databases write differently. Statements mark parameters as `?` and `:name`; `written` adapts
    them."""

    written: Callable[[str], str]
    greatest: str
    among: str  # tests whether a column's value is in a list of numbers, one parameter
    ids: str  # a list of numbers as table `listed`, joined in its order with the table named next
    in_order: str  # the clause that keeps that order
    among_names: str  # tests whether a column's value is in a list of texts (`name_list`)
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
    keep_document: str  # the same and version, gone, sketch, text_key, {step}
    step: str  # a number of `Write.number_steps`
    oldest_kept: str  # the last change that leaves the log, if all numbers up to {} may
    no_longer_new: str  # deletes pages (ids) from `unvisited`
    forget_document: tuple[str, ...]  # deletes what documents hold outside `pages` (ids)
    id_list: Callable[[Iterable[int]], Any]
    name_list: Callable[[Iterable[str]], Any]
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

    def pass_turn(self, turn_at: float, taken: int) -> None:
        """So many pages were leased; the next may be from `turn_at` on."""
        self.turn_at = turn_at
        self.taken += taken
        self.changed = True

    def admit(self) -> None:
        if not self.admitted:
            self.admitted = self.changed = True

    def add_page(self, at: float) -> None:
        """Count a new page, due at `at`."""
        self.pages += 1
        self.numbered += 1
        self.changed = True
        self.pull(at)


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

    def ask_named(self, names: Iterable[str]) -> Callable[[], None]:
        """Lock these sites with the next answer; what is returned takes it."""
        self.lock_named(names)
        return lambda: None

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

    def discard(self, urls: Iterable[str]) -> None:
        """These are no longer stored."""
        for url in urls:
            self._young.discard(url)
            self._old.discard(url)

    def _keep(self, url: str) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
        if self._half:
            self._young.add(url)


UNDER_WAY = 1000
"""Added to the format of a store that is being upgraded to it: an older Levada takes that for a newer format, and
does not open the store."""


def check_format(place: str, version: int, ours: int, oldest: int, what: str, *, older: bool = False) -> None:
    """Raise if a store has another format than ours. `what` is what the user can name instead: a folder, a
    schema. With `older`, a store that can be upgraded is accepted."""
    if version == ours:
        return
    if version > UNDER_WAY:
        version, state = version - UNDER_WAY, "is being upgraded"
    else:
        state = "was written by an older Levada"
    if version > ours:
        raise StoreTooNew(f"{place} was written by a newer Levada (format {version}, ours is {ours}): update Levada")
    if version < oldest:
        raise StoreError(
            f"{place} was written by an older Levada (format {version}, {oldest} to {ours} can be read): "
            f"crawl into another {what}, or use that Levada"
        )
    if not older:
        raise StoreOutdated(f"{place} {state} (format {version}, ours is {ours}): run 'levada upgrade'")


def no_space(place: str) -> StoreFull:
    return StoreFull(f"no space left for {place}: nothing of this batch was written; free some space, then start again")
