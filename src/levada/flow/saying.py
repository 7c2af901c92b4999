"""What did others say of a page's changes: its server with this answer, a sitemap or feed of the pages it names?"""

from __future__ import annotations

from levada.records import Notice, PageKind, PageRecord, ParsedPage, Response, Said

__all__ = ["notices_of", "said_of"]

_SPEAKER = {PageKind.SITEMAP: Said.SITEMAP, PageKind.FEED: Said.FEED}
_ON_TIME = 0.9  # of the interval that was planned
_CLOCKS_DIFFER = 3600.0  # seconds: a date further ahead than this is made up


def said_of(page: PageRecord, response: Response, at: float) -> Said:
    """What was said before this answer was looked at, to be held against what it is."""
    said = page.told
    if said and page.interval and page.history and at < page.history[-1].at + _ON_TIME * page.interval:
        said |= Said.EARLY
    if response.status == 304:
        return said | Said.NOT_MODIFIED
    modified = response.header("last-modified")
    if _same_validator(page, response.header("etag"), modified):
        said |= Said.SAME_TAG
    if modified:
        said |= Said.DATED
        if page.last_modified and modified != page.last_modified:
            said |= Said.DATE_MOVED
    return said


def _same_validator(page: PageRecord, etag: str | None, modified: str | None) -> bool:
    """Would the server have answered 304? It goes by the date only where there is no tag (RFC 9110, 13.2.2)."""
    held, sent = (page.etag, etag) if page.etag else (page.last_modified, modified)
    return bool(held) and sent == held


def notices_of(parsed: ParsedPage, now: float) -> tuple[Notice, ...]:
    """The dates that a sitemap or a feed gives for its pages."""
    said = _SPEAKER.get(parsed.kind)
    if said is None:
        return ()
    return tuple(
        Notice(link.url, link.lastmod, said)
        for link in parsed.marked
        if link.lastmod is not None and 0.0 < link.lastmod <= now + _CLOCKS_DIFFER
    )
