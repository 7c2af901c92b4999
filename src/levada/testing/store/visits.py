"""Links, visit results and an open store, with which the store suites are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from levada.core.records import (
    Document,
    FoundUrl,
    Lease,
    NewVersion,
    Outcome,
    PageRecord,
    PageState,
    Visit,
    VisitResult,
)
from levada.core.structured import Item, Offer, StructuredData, pack_data
from levada.pages.compression import pack_content
from levada.store.base import Store, StoreLimits

OpenStore = Callable[[StoreLimits], Store]


class StoreSuite:
    """Base of the store suites: override `make`, or the fixture `open_store` where a store needs a server."""

    def make(self, folder: Path, limits: StoreLimits) -> Store:
        """A new, empty store with these limits; `folder` exists and is its own."""
        raise NotImplementedError

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        opened: list[Store] = []

        def open_with(limits: StoreLimits) -> Store:
            folder = tmp_path / f"store-{len(opened)}"
            folder.mkdir()
            opened.append(self.make(folder, limits))
            return opened[-1]

        yield open_with
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Store:
        return open_store(StoreLimits())


def links(site: str, count: int, start: int = 0) -> list[FoundUrl]:
    return [FoundUrl(f"http://{site}/{n}", site) for n in range(start, start + count)]


def new_version(text: str, *, similarity: float = 0.0, searchable: bool = True) -> NewVersion:
    return NewVersion(
        title=text.title(),
        language="en",
        charset="utf-8",
        status=200,
        headers=(("content-type", "text/html"), ("server", "x")),
        content_zstd=pack_content(text.encode(), f"<p>{text}</p>".encode(), 1),
        sketch=text.encode()[:8],
        words=len(text.split()),
        distinct_words=len(set(text.split())),
        similarity=similarity,
        searchable=searchable,
        data=described(text),
    )


def described(name: str, *prices: str) -> bytes:
    """Packed data: a product of this name at these prices."""
    return pack_data(StructuredData((Item(("Product",), {"name": (name,)}),), tuple(map(Offer, prices))))


def _result(lease: Lease, visit: Visit, state: PageState, interval: float | None, facts: dict[str, Any]) -> VisitResult:
    """The result of a visit, with what else is said of it."""
    next_visit = None if interval is None else visit.at + interval
    return replace(VisitResult(lease, visit, state, interval, next_visit), **facts)


def first(
    lease: Lease, at: float, text: str, found: tuple[FoundUrl, ...] = (), *, interval: float = 60.0, **facts: Any
) -> VisitResult:
    """The first visit: its version, with validators, and the links found."""
    validators = {"etag": f'"{text}"', "last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    made = {"visit": Visit(at, Outcome.FIRST, 0.0), "version": new_version(text), "found": found, **validators}
    return changed(lease, at, text, interval=interval, **made | facts)


def changed(lease: Lease, at: float, text: str, *, interval: float = 60.0, **facts: Any) -> VisitResult:
    """A visit that found a new version."""
    digests = {"body_digest": b"b" + text.encode(), "text_digest": b"t" + text.encode()}
    made = {"version": new_version(text, similarity=0.4), **digests}
    return _result(lease, Visit(at, Outcome.CHANGED, 0.4), PageState.LIVE, interval, made | facts)


def unchanged(lease: Lease, at: float, *, interval: float = 60.0, **facts: Any) -> VisitResult:
    return _result(lease, Visit(at, Outcome.UNCHANGED), PageState.LIVE, interval, facts)


def gone(lease: Lease, at: float, *, next_visit: float | None = None, **facts: Any) -> VisitResult:
    return _result(lease, Visit(at, Outcome.GONE), PageState.GONE, None, {"next_visit": next_visit, **facts})


def failed(lease: Lease, at: float, *, again: float = 60.0, **facts: Any) -> VisitResult:
    state = lease.page.state if lease.page.version else PageState.FAILED
    return _result(lease, Visit(at, Outcome.FAILED), state, again, {"failures": lease.page.failures + 1, **facts})


def leased(store: Store, count: int = 1, now: float = 0.0, seconds: float = 60.0) -> list[Lease]:
    """Add this many links of the site "a", and lease them."""
    store.add(links("a", count), [], now)
    return store.lease(now, count, seconds)


def visit(store: Store, now: float, result: Callable[..., VisitResult], *details: Any, **options: Any) -> Lease:
    """Lease one page, and commit this result of its visit; returns the lease."""
    (lease,) = store.lease(now, 1, 30.0)
    assert store.commit([result(lease, now, *details, **options)]) == [True]
    return lease


def visited(store: Store, url: str, site: str, text: str, now: float) -> Lease:
    """Add one URL and store its first version; returns the lease of the visit."""
    store.add([FoundUrl(url, site)], [], now)
    lease = visit(store, now, first, text)
    assert lease.page.url == url
    return lease


def urls_of(leases: Iterable[Lease]) -> list[str]:
    return [lease.page.url for lease in leases]


def page_of(store: Store, url: str) -> PageRecord:
    """The page of this URL, which the store must know."""
    page = store.page(url)
    assert page is not None
    return page


def document_of(store: Store, url: str, version: int | None = None) -> Document:
    """The document of this URL, which the store must have."""
    document = store.document(url, version)
    assert document is not None
    return document
