"""What is kept of a visit? The rules that every store shares."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TypeVar

import msgspec
import zstandard

from levada.errors import StoreDamaged
from levada.pages.compression import content_size, unpack_content, unpack_text
from levada.reasons import Reason
from levada.records import Found, Happened, Notice, Outcome, PageState, Refusal, Said, Settled, Visit

__all__ = [
    "DUE_COUNTED",
    "EXAMPLE_LENGTH",
    "PAGE_BITS",
    "TIDIED_EVERY",
    "Validators",
    "amends",
    "brought_forward",
    "checked_one_in",
    "example_of",
    "first_site",
    "first_token",
    "happened",
    "holdable",
    "is_full",
    "is_news",
    "is_removed",
    "met_content",
    "nth_of",
    "page_number",
    "plain_text",
    "refused_for",
    "remember",
    "shard_of_page",
    "shard_of_token",
    "still_told",
    "unpacked",
    "unpacked_text",
    "validators_after",
    "version_after",
]

HISTORY = 10
DUE_COUNTED = 10_000
"""`Standing.due` is exact up to this many."""

TIDIED_EVERY = 256
"""After so many happenings those that are too old are deleted."""

EXAMPLE_LENGTH = 500
PAGE_BITS = 24
SITE_BITS = 30  # sites that a shard can number
TOKEN_BITS = 48  # leases that a shard can hand out
LARGEST_CONTENT = 1 << 28
_ALL_SAID = Said(0xFF)
_T = TypeVar("_T")


class Validators(msgspec.Struct, frozen=True):
    """What tells whether a page is still the one that is stored."""

    etag: str | None
    last_modified: str | None
    body_digest: bytes | None
    text_digest: bytes | None


def happened(settled: Settled, was_gone: bool) -> Happened | None:
    """What a visit did to the stored document; None if nothing."""
    stored = settled.lease.page.version > 0
    removed = is_removed(settled.state)
    if settled.version is None and (not stored or not (removed or settled.state is PageState.LIVE)):
        return None
    if removed:
        return None if was_gone and settled.version is None else Happened.GONE
    if was_gone:
        return Happened.BACK
    if settled.version is None or amends(settled):
        return None
    return Happened.CHANGED if stored else Happened.NEW


def amends(settled: Settled) -> bool:
    """Whether the version takes the place of the newest one, and its age: the text is the same, only its title is
    another, or whether it may be found. A title that ticks would push out all that a page ever said."""
    stored = settled.lease.page.version > 0
    return settled.version is not None and stored and settled.visit.outcome is Outcome.UNCHANGED


def version_after(settled: Settled) -> int:
    """The number of the newest version after this visit; 0: none."""
    brings_one = settled.version is not None and not amends(settled)
    return settled.lease.page.version + brings_one


def page_number(site_id: int, nth: int) -> int:
    """The id of the nth page of a site: pages of one site are neighbours, whenever they were found."""
    return site_id << PAGE_BITS | nth


def nth_of(page_id: int) -> int:
    """Which of its site's pages this is."""
    return page_id & ((1 << PAGE_BITS) - 1)


def first_site(shard: int) -> int:
    """The number before a shard's first site: no two shards give a site, and so a page, the same number."""
    return shard << SITE_BITS


def first_token(shard: int) -> int:
    """The number before a shard's first lease."""
    return shard << TOKEN_BITS


def shard_of_page(page_id: int) -> int:
    """The shard that first held this page; it may have moved since."""
    return page_id >> (PAGE_BITS + SITE_BITS)


def shard_of_token(token: int) -> int:
    """The shard that handed this lease out."""
    return token >> TOKEN_BITS


def is_full(pages: int, limit: int) -> bool:
    """Does a site with so many pages take no more?"""
    return pages >= min(limit, (1 << PAGE_BITS) - 1)


def remember(history: tuple[Visit, ...], visit: Visit) -> tuple[Visit, ...]:
    """The latest ten visits that compared content; similarity is kept in steps of 1/255."""
    if not _compared(visit):
        return history
    step = round(min(1.0, max(0.0, visit.similarity)) * 255)
    return (*history[1 - HISTORY :], Visit(visit.at, visit.outcome, step / 255, visit.said))


def met_content(settled: Settled) -> bool:
    """Did this visit meet the version that is stored after it?"""
    return settled.version is not None or _compared(settled.visit)


def still_told(visit: Visit) -> Said:
    """Which words of a change are still unanswered after this visit: none, if it looked."""
    return Said.NOTHING if _compared(visit) else _ALL_SAID


def is_news(notice: Notice, met_at: float, told: Said) -> bool:
    """Does it tell of a change since the page was met, of which its source has not told yet?"""
    return notice.at > met_at and told | notice.said != told


def brought_forward(planned: float | None, at: float | None) -> float | None:
    """The earlier of the two; "never again" stays so, and what is not a point in time moves nothing."""
    if planned is None or at is None or not isfinite(at):
        return planned
    return min(planned, at)


def checked_one_in(one_in: int) -> int:
    """A share that can be drawn (`levada.hashing.drawn`)."""
    if one_in < 1 or one_in & (one_in - 1):
        raise ValueError(f"one_in must be a power of two, not {one_in}")
    return one_in


def is_removed(state: PageState) -> bool:
    """Is a page in this state to be taken out of search?"""
    return state is PageState.GONE or state is PageState.ELSEWHERE


def validators_after(settled: Settled) -> Validators | None:
    """What to store, or None to leave it: a new version brings its own, otherwise only what is known replaces."""
    page = settled.lease.page
    given = (settled.etag, settled.last_modified, settled.body_digest, settled.text_digest)
    stored = (page.etag, page.last_modified, page.body_digest, page.text_digest)
    if settled.version is None:
        if given == stored or given == (None, None, None, None):
            return None
        given = (
            settled.etag or page.etag,
            settled.last_modified or page.last_modified,
            settled.body_digest or page.body_digest,
            settled.text_digest or page.text_digest,
        )
        if given == stored:
            return None
    etag, last_modified, body, text = given
    return Validators(etag and plain_text(etag), last_modified and plain_text(last_modified), body, text)


def holdable(found: Found) -> bool:
    """Can this address be written down at all? Half a surrogate pair cannot."""
    return found.url.isascii() or plain_text(found.url) == found.url


def refused_for(found: Found, reason: Reason) -> Refusal:
    return Refusal(found.url, found.site, reason)


def example_of(refusal: Refusal) -> str:
    return plain_text(refusal.url[:EXAMPLE_LENGTH])


def plain_text(text: str) -> str:
    """Text that can be written as UTF-8: halves of surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def unpacked(content: bytes) -> tuple[str, bytes]:
    """The text and body that were packed."""
    text, body = _unpack(content, unpack_content)
    return text.decode("utf-8", "replace"), body


def unpacked_text(content: bytes) -> str:
    """The text alone."""
    return _unpack(content, unpack_text).decode("utf-8", "replace")


def _unpack(content: bytes, read: Callable[[bytes], _T]) -> _T:
    """No frame is believed to hold more than the largest page."""
    try:
        size = content_size(content)
        if 0 <= size <= LARGEST_CONTENT:
            return read(content)
    except (zstandard.ZstdError, ValueError) as error:
        raise StoreDamaged(f"a stored page cannot be unpacked ({error}): run levada doctor") from error
    raise StoreDamaged(f"a stored page claims to unpack to {size} bytes: run levada doctor")


def _compared(visit: Visit) -> bool:
    return visit.outcome <= Outcome.CHANGED
