"""Words for tests of stores: a store of any kind, things found, visits made."""

from __future__ import annotations

from typing import Protocol

from levada.pages.compression import pack_content
from levada.ports import Census, Documents, Frontier, Notices, Sites
from levada.records import Found, Lease, NewVersion, Outcome, PageState, Settled, Visit

__all__ = ["Store", "changed", "failed", "first", "gone", "links", "new_version", "unchanged", "visited"]


class Store(Frontier, Sites, Documents, Census, Notices, Protocol):
    def close(self) -> None: ...
    def forget_leases(self) -> None: ...
    def limit_waits(self, now: float, latest: float) -> int: ...


def links(site: str, count: int, start: int = 0) -> list[Found]:
    return [Found(f"http://{site}/{n}", site) for n in range(start, start + count)]


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
    )


def first(lease: Lease, at: float, text: str, found: tuple[Found, ...] = (), *, interval: float = 60.0) -> Settled:
    return Settled(
        lease,
        Visit(at, Outcome.FIRST, 0.0),
        PageState.LIVE,
        interval,
        at + interval,
        etag=f'"{text}"',
        last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
        body_digest=b"b" + text.encode(),
        text_digest=b"t" + text.encode(),
        version=new_version(text),
        found=found,
    )


def changed(lease: Lease, at: float, text: str, *, interval: float = 60.0) -> Settled:
    return Settled(
        lease,
        Visit(at, Outcome.CHANGED, 0.4),
        PageState.LIVE,
        interval,
        at + interval,
        body_digest=b"b" + text.encode(),
        text_digest=b"t" + text.encode(),
        version=new_version(text, similarity=0.4),
    )


def unchanged(lease: Lease, at: float, *, interval: float = 60.0) -> Settled:
    return Settled(lease, Visit(at, Outcome.UNCHANGED), PageState.LIVE, interval, at + interval)


def gone(lease: Lease, at: float, *, next_visit: float | None = None) -> Settled:
    return Settled(lease, Visit(at, Outcome.GONE), PageState.GONE, None, next_visit)


def failed(lease: Lease, at: float, *, again: float = 60.0) -> Settled:
    failures = lease.page.failures + 1
    state = lease.page.state if lease.page.version else PageState.FAILED
    return Settled(lease, Visit(at, Outcome.FAILED), state, again, at + again, failures=failures)


def visited(store: Store, url: str, site: str, text: str, now: float) -> Lease:
    """Hold one URL and store its first version; the lease that it was done under."""
    store.add([Found(url, site)], [], now)
    (lease,) = [lease for lease in store.lease(now, 1, 60.0) if lease.page.url == url]
    assert store.settle([first(lease, now, text)]) == [True]
    return lease
