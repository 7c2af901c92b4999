"""Writing and reading bodies that lie elsewhere, several at a time.

A frame is written before the transaction that names it begins, so a crash leaves an object that nothing names, never a
name without an object. What is read is compared with the hash and size that the row holds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from levada.core.errors import StoreDamaged, StoreError
from levada.core.records import VisitResult
from levada.store.bodies.places import Place
from levada.store.bodies.references import Reference, reference_to, unpacked_reference

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

S = TypeVar("S")
T = TypeVar("T")

_GRACE = 86_400.0
"""Seconds that an object without a version is kept: longer than a commit, and than a backup that still names it."""


class Bodies:
    """The bodies of a collection. Threads and shards may share an instance.

    `least`: frames of fewer bytes stay in their rows. `parallel`: requests at the same time. `cache_bytes`: memory
    for the frames that were read last.
    """

    grace = _GRACE

    def __init__(self, place: Place, *, least: int = 4096, parallel: int = 16, cache_bytes: int = 64 << 20) -> None:
        self.place = place
        self._least = least
        self._parallel = parallel
        self._cache = _Cache(cache_bytes)
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.place.name

    def close(self) -> None:
        """End the threads; the next use begins new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

    def put_visits(self, visits: Sequence[VisitResult], number_of: Callable[[VisitResult], int]) -> list[VisitResult]:
        """The same visits with references in the place of large frames, which are written now."""
        written = list(visits)
        going: list[tuple[int, Reference]] = []
        for place, visit in enumerate(visits):
            if visit.version is not None and self.is_outside(visit.version.content_zstd):
                lease = visit.lease
                frame = visit.version.content_zstd
                going.append((place, reference_to(frame, lease.page.id, number_of(visit), lease.token)))
        self._write([(each, written[at].version.content_zstd) for at, each in going])  # type: ignore[union-attr]
        for at, each in going:
            version = written[at].version
            assert version is not None
            written[at] = replace(written[at], version=replace(version, content_zstd=each.pack()))
        return written

    def put(self, frames: Sequence[tuple[int, int, bytes]], token: int) -> list[tuple[int, int, bytes]]:
        """Page, version and frame as page, version and reference; small frames stay as they are."""
        going = {
            at: reference_to(frame, page_id, version, token)
            for at, (page_id, version, frame) in enumerate(frames)
            if self.is_outside(frame)
        }
        self._write([(each, frames[at][2]) for at, each in going.items()])
        return [
            (page_id, version, going[at].pack() if at in going else frame)
            for at, (page_id, version, frame) in enumerate(frames)
        ]

    def is_outside(self, content: bytes) -> bool:
        """Whether this frame is large enough to lie elsewhere."""
        return len(content) >= self._least and unpacked_reference(content) is None

    def _write(self, frames: Sequence[tuple[Reference, bytes]]) -> None:
        self.map(lambda each: self.place.put(each[0].key, each[1]), frames)

    def frames(self, references: Iterable[Reference], *, keep: bool = False) -> dict[Reference, bytes | str]:
        """Each frame; or, in words, what is wrong with it. With `keep` they stay in memory for a while: they are of
        pages that somebody looks at, and not of a walk over all."""
        wanted = list(dict.fromkeys(references))
        return dict(zip(wanted, self.map(lambda each: self._read(each, keep), wanted), strict=True))

    def _read(self, reference: Reference, keep: bool) -> bytes | str:
        frame = self._cache.get(reference)
        if frame is None:
            frame = self.place.get(reference.key)
            if frame is None:
                return "is missing"
            if not reference.matches(frame):
                return f"is damaged ({len(frame):,} of {reference.size:,} bytes, or another content)"
            if keep:
                self._cache.put(reference, frame)
        return frame

    def trouble(self, reference: Reference) -> str:
        """What is wrong with an object, by its size alone; "" if nothing is."""
        size = self.place.size(reference.key)
        if size is None:
            return "is missing"
        return "" if size == reference.size else f"is damaged ({size:,} of {reference.size:,} bytes)"

    def delete(self, references: Iterable[Reference]) -> None:
        going = list(references)
        self._cache.drop(going)
        self.place.delete([each.key for each in going])

    def map(self, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """The results in order, several at a time. The first error is raised when nothing is under way any more."""
        if len(items) < 2 or self._parallel < 2:
            return [work(each) for each in items]
        from concurrent.futures import ThreadPoolExecutor  # here: most collections have no bodies elsewhere

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._parallel, thread_name_prefix="bodies")
            futures = [self._pool.submit(work, each) for each in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            for future in futures:
                if not future.cancelled():
                    with suppress(Exception):
                        future.result()


class _Cache:
    """The frames that were read last, up to so many bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[Reference, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, reference: Reference) -> bytes | None:
        with self._lock:
            frame = self._held.get(reference)
            if frame is not None:
                self._held.move_to_end(reference)
            return frame

    def put(self, reference: Reference, frame: bytes) -> None:
        if 4 * len(frame) > self._limit:  # one large picture would push out everything else
            return
        with self._lock:
            if reference not in self._held:
                self._bytes += len(frame)
            self._held[reference] = frame
            while self._bytes > self._limit:
                self._bytes -= len(self._held.popitem(last=False)[1])

    def drop(self, references: Iterable[Reference]) -> None:
        with self._lock:
            for reference in references:
                self._bytes -= len(self._held.pop(reference, b""))


def whole_rows(
    bodies: Bodies | None, rows: Sequence[tuple[Any, ...]], column: int, *, keep: bool = False
) -> list[tuple[Any, ...] | str]:
    """Rows with frames in the place of references in this column; for a frame that cannot be had, why."""
    references = {at: found for at, row in enumerate(rows) if (found := unpacked_reference(row[column])) is not None}
    if not references:
        return list(rows)
    if bodies is None:
        raise StoreError(
            "texts and bodies of this collection lie outside of its database, and no place is named: set store.bodies"
        )
    frames = bodies.frames(references.values(), keep=keep)
    whole: list[tuple[Any, ...] | str] = list(rows)
    for at, reference in references.items():
        frame = frames[reference]
        if isinstance(frame, str):
            whole[at] = f"{frame}: {bodies.name}/{reference.key}"
        else:
            row = rows[at]
            after = column + 1 or len(row)
            whole[at] = (*row[:column], frame, *row[after:])
    return whole


def must_be_whole(rows: Sequence[tuple[Any, ...] | str], urls: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows, if all are whole."""
    for row, url in zip(rows, urls, strict=True):
        if isinstance(row, str):
            raise StoreDamaged(f"the body of {url} {row}. 'levada doctor' lists all such pages: put a copy back, or "
                               "check them again")  # fmt: skip
    return [row for row in rows if not isinstance(row, str)]
