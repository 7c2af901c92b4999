"""Store rules: what every store keeps of a visit, and how a change hint reschedules a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from typing import Any, TypeVar

import msgspec
import zstandard

from levada.core.errors import StoreDamaged
from levada.core.reasons import Reason
from levada.core.records import (
    ChangeHint,
    ChangeKind,
    DiscoveredBy,
    FoundUrl,
    Outcome,
    PageRecord,
    PageState,
    Refusal,
    Signals,
    Visit,
    VisitResult,
)
from levada.pages.change import is_noindex, text_part
from levada.pages.compression import content_size, unpack_content, unpack_text_and_anchors

HISTORY = 10
DUE_COUNTED = 10_000
"""`CollectionStats.due` is exact up to this number."""

TIDIED_EVERY = 256
"""Change log entries that are too old are deleted once in so many changes."""

EXAMPLE_LENGTH = 500
PAGE_BITS = 24
SITE_BITS = 30  # bits for the sites of a shard
TOKEN_BITS = 48  # bits for the leases of a shard
LARGEST_CONTENT = 1 << 28
_ALL_SIGNALS = Signals(0xFF)
_T = TypeVar("_T")


class Validators(msgspec.Struct, frozen=True):
    """What shows whether a page is still the stored one."""

    etag: str | None
    last_modified: str | None
    body_digest: bytes | None
    text_digest: bytes | None


def change_kind(result: VisitResult, was_gone: bool) -> ChangeKind | None:
    """What a visit did to the stored document; None if nothing."""
    stored = result.lease.page.version > 0
    removed = is_removed(result.state)
    if result.version is None and (not stored or not (removed or result.state is PageState.LIVE)):
        return None
    if removed:
        return None if was_gone and result.version is None else ChangeKind.GONE
    if was_gone:
        return ChangeKind.BACK
    if result.version is None or amends(result) or not result.told:
        return None
    return ChangeKind.CHANGED if stored else ChangeKind.NEW


def amends(result: VisitResult) -> bool:
    """Whether the new version replaces the newest one and takes its age: only the title or the searchability
    differ. Otherwise a title with a clock in it would push out all older versions of a page."""
    stored = result.lease.page.version > 0
    return result.version is not None and stored and result.visit.outcome is Outcome.UNCHANGED


def version_after(result: VisitResult) -> int:
    """The number of the newest version after this visit; 0 if there is none."""
    brings_one = result.version is not None and not amends(result)
    return result.lease.page.version + brings_one


def page_number(site_id: int, nth: int) -> int:
    """The id of the nth page of a site. Pages of one site have neighbouring ids, whenever they were found."""
    return site_id << PAGE_BITS | nth


def nth_of(page_id: int) -> int:
    """The number of this page within its site."""
    return page_id & ((1 << PAGE_BITS) - 1)


def first_site(shard: int) -> int:
    """The number before a shard's first site: no two shards give a site, or a page, the same number."""
    return shard << SITE_BITS


def first_token(shard: int) -> int:
    """The number before a shard's first lease."""
    return shard << TOKEN_BITS


def shard_of_page(page_id: int) -> int:
    """The shard that first held this page. The page may have moved since."""
    return page_id >> (PAGE_BITS + SITE_BITS)


def shard_of_token(token: int) -> int:
    """The shard that granted this lease."""
    return token >> TOKEN_BITS


def is_full(pages: int, limit: int) -> bool:
    """Whether a site with so many pages takes no more."""
    return pages >= min(limit, (1 << PAGE_BITS) - 1)


def remember(history: tuple[Visit, ...], visit: Visit) -> tuple[Visit, ...]:
    """The latest ten visits that compared content, with similarity in steps of 1/255."""
    if not _compared(visit):
        return history
    step = round(min(1.0, max(0.0, visit.similarity)) * 255)
    return (*history[1 - HISTORY :], Visit(visit.at, visit.outcome, step / 255, visit.said))


def met_content(result: VisitResult) -> bool:
    """Whether this visit saw the version that is stored after it."""
    return result.version is not None or _compared(result.visit)


def unconfirmed_signals(visit: Visit) -> Signals:
    """The signals that stay unconfirmed after this visit: none if it compared content."""
    return Signals.NOTHING if _compared(visit) else _ALL_SIGNALS


def is_new_hint(hint: ChangeHint, met_at: float, told: Signals) -> bool:
    """Whether the hint is of a change since the page was last seen, from a source that has not signalled it yet."""
    return hint.at > met_at and told | hint.said != told


def brought_forward(planned: float | None, at: float | None) -> float | None:
    """The earlier time. "Never again" stays, and a value that is no point in time changes nothing."""
    if planned is None or at is None or not isfinite(at):
        return planned
    return min(planned, at)


class Rescheduling(msgspec.Struct):
    """The next visit of a page that nobody has leased."""

    id: int
    site_id: int
    visits: int
    told: Signals
    next_visit: float | None
    changed: bool = False
    moved: bool = False

    def expect(self, signals: Signals, at: float | None) -> None:
        told, next_visit = self.told | signals, brought_forward(self.next_visit, at)
        self.moved |= next_visit != self.next_visit
        self.changed |= self.moved or told != self.told
        self.told, self.next_visit = told, next_visit


def changed_plans(
    free: Iterable[tuple[Any, ...]], pages: Sequence[tuple[PageRecord, Signals, float | None]]
) -> list[Rescheduling]:
    """The plans that these hints change, for pages that are still as they were known. `free` are the pages without
    a lease: id, site id, visits, told, next visit."""
    plans = {id: Rescheduling(id, site, visits, Signals(told), at) for id, site, visits, told, at in free}
    for page, signals, at in pages:
        plan = plans.get(page.id)
        if plan is not None and plan.visits == page.visits:
            plan.expect(signals, at)
    return [plan for plan in plans.values() if plan.changed]


def earliest_by_site(plans: Iterable[Rescheduling]) -> list[tuple[float, int]]:
    """The earliest new visit (time, site id) of each site among the plans that moved."""
    earliest: dict[int, float] = {}
    for plan in plans:
        if plan.moved and plan.next_visit is not None:
            earliest[plan.site_id] = min(plan.next_visit, earliest.get(plan.site_id, plan.next_visit))
    return [(at, site) for site, at in earliest.items()]


def checked_one_in(one_in: int) -> int:
    """Check that `one_in` is a share that can be drawn (`levada.core.hashing.drawn`)."""
    if one_in < 1 or one_in & (one_in - 1):
        raise ValueError(f"one_in must be a power of two, not {one_in}")
    return one_in


def is_removed(state: PageState) -> bool:
    """Whether a page in this state is removed from search."""
    return state is PageState.GONE or state is PageState.ELSEWHERE


def validators_after(result: VisitResult) -> Validators | None:
    """What to store, or None to leave it. A new version brings its own; otherwise only known values replace old
    ones."""
    page = result.lease.page
    given = (result.etag, result.last_modified, result.body_digest, result.text_digest)
    stored = (page.etag, page.last_modified, page.body_digest, page.text_digest)
    if result.version is None:
        if given == stored or given == (None, None, None, None):
            return None
        given = (
            result.etag or page.etag,
            result.last_modified or page.last_modified,
            result.body_digest or page.body_digest,
            result.text_digest or page.text_digest,
        )
        if given == stored:
            return None
    etag, last_modified, body, text = given
    return Validators(etag and plain_text(etag), last_modified and plain_text(last_modified), body, text)


def text_key(site: str, text_digest: bytes | None, *, gone: bool = False) -> int | None:
    """The number under which a stored page is found by its text; None if nobody may find it.

    The first 24 bits are of the site, so that the numbers of its pages are neighbours in an index. The rest is of the
    text: two texts may share a number, therefore whoever looks one up compares the digests.
    """
    if gone or not text_digest or is_noindex(text_digest):
        return None
    of_text = blake2b(text_part(text_digest), digest_size=5).digest()
    return int.from_bytes(_of_site(site) + of_text, "big", signed=True)


@lru_cache(maxsize=1024)
def _of_site(site: str) -> bytes:
    return blake2b(site.encode("utf-8", "replace"), digest_size=3).digest()


def holdable(found: FoundUrl) -> bool:
    """Whether this URL can be stored: an unpaired surrogate cannot."""
    return found.url.isascii() or plain_text(found.url) == found.url


def is_start(found: FoundUrl) -> bool:
    """Whether a user names this URL as a start, where it is added and not found on a page."""
    return found.admit and found.how is DiscoveredBy.SEED


def warn_of_lifted(urls: Iterable[str]) -> None:
    """Say that these are crawled again."""
    import logging  # here: processes that only read write no log

    for url in urls:
        logging.getLogger(__name__).warning("%s was forgotten, and is crawled again: it was named as a start", url)


def refused_for(found: FoundUrl, reason: Reason) -> Refusal:
    return Refusal(found.url, found.site, reason)


def example_of(refusal: Refusal) -> str:
    return plain_text(refusal.url[:EXAMPLE_LENGTH])


def plain_text(text: str) -> str:
    """Text that can be encoded as UTF-8: unpaired surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def unpacked(content: bytes) -> tuple[str, bytes]:
    """The text and the body of packed content."""
    text, body = _unpack(content, unpack_content)
    return text.decode("utf-8", "replace"), body


def unpacked_text(content: bytes) -> tuple[str, bytes]:
    """The text of packed content, and the packed texts of its links."""
    text, anchors = _unpack(content, unpack_text_and_anchors)
    return text.decode("utf-8", "replace"), anchors


def _unpack(content: bytes, read: Callable[[bytes], _T]) -> _T:
    """Unpack a frame. A frame that claims to hold more than the largest page is damaged."""
    try:
        size = content_size(content)
        if 0 <= size <= LARGEST_CONTENT:
            return read(content)
    except (zstandard.ZstdError, ValueError) as error:
        raise StoreDamaged(f"a stored page cannot be unpacked ({error}): run levada doctor") from error
    raise StoreDamaged(f"a stored page claims to unpack to {size} bytes: run levada doctor")


def _compared(visit: Visit) -> bool:
    return visit.outcome <= Outcome.CHANGED
