"""Has this page changed since it was stored, and by how much?

Source: the order of evidence in the freshness specification. A 304 settles it and is compared with nothing; then
the bytes; then the main text decides, whose digest is over tidied lines, so that white space alone is no change.
A page whose title alone is another, or that may be found from now on (or no longer), has not changed, but is stored
anew: so the digest of a page goes on with marks of both.

The mark of the bytes need not withstand anybody (XXH3, the fastest there is): it is compared with that of the same
page's last answer only, so who forges it hides a change of his own page, and could as well answer with the old one.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from xxhash import xxh3_128_digest

from levada.hashing import content_digest
from levada.pages.sketch import similarity
from levada.records import Outcome, PageRecord, ParsedPage

__all__ = [
    "Judgement",
    "answer_mark",
    "asked_for_noindex",
    "is_noindex",
    "judge",
    "page_digest",
    "same_bytes",
    "shows_the_same",
    "text_part",
]

NOT_MODIFIED = 304
_TEXT = 16  # bytes of the digest that stand for the text
_BY_NOBODY, _BY_ANSWER, _BY_PAGE = b"\0", b"\1", b"\2"  # the byte after them


class Judgement(NamedTuple):
    outcome: Outcome
    similarity: float  # to what was stored: 1 the same words, 0 none in common, or nothing stored


def answer_mark(body: bytes) -> bytes:
    """Sixteen bytes that tell whether a page answers as it did the last time."""
    return xxh3_128_digest(body)


def page_digest(text: bytes, title: str, *, asked: bool, on_page: bool) -> bytes:
    """Of the text, then whether the answer `asked`, or the page itself, not to be found; and of the title."""
    noindex = _BY_ANSWER if asked else _BY_PAGE if on_page else _BY_NOBODY
    return content_digest(text) + noindex + crc32(title.encode("utf-8", "replace")).to_bytes(4, "big")


def text_part(digest: bytes | None) -> bytes:
    """What stands for the text alone: two pages may have the same."""
    return (digest or b"")[:_TEXT]


def is_noindex(digest: bytes | None) -> bool:
    """Whether the page that was stored asked not to be found."""
    return (digest or b"")[_TEXT : _TEXT + 1] in (_BY_ANSWER, _BY_PAGE)


def asked_for_noindex(digest: bytes | None) -> bool:
    """Whether its answer did, which is not to be seen from the bytes of the page."""
    return (digest or b"")[_TEXT : _TEXT + 1] == _BY_ANSWER


def shows_the_same(one: bytes, other: bytes | None) -> bool:
    """Whether two digests are of the same title and text, to be found or not."""
    return other is not None and _shown(one) == _shown(other)


def _shown(digest: bytes) -> tuple[bytes, bytes, bool]:
    return digest[:_TEXT], digest[_TEXT + 1 :], is_noindex(digest)


def same_bytes(page: PageRecord, status: int, body_digest: bytes | None) -> bool:
    """Whether the answer itself settles "unchanged", so that there is nothing to parse."""
    return status == NOT_MODIFIED or (body_digest is not None and body_digest == page.body_digest)


def judge(
    page: PageRecord, status: int, body_digest: bytes | None = None, parsed: ParsedPage | None = None
) -> Judgement:
    """What a visit that was answered met; `parsed` is needed only where `same_bytes` does not settle it."""
    if same_bytes(page, status, body_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    if parsed is None:
        raise ValueError("a page whose bytes are new must be parsed before it is judged")
    if page.text_digest is None:
        return Judgement(Outcome.FIRST, 0.0)
    if text_part(parsed.text_digest) == text_part(page.text_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    return Judgement(Outcome.CHANGED, similarity(page.sketch or b"", parsed.sketch))
