"""Change detection: whether and by how much a page differs from its stored version.

The evidence is in the order of the freshness specification. A 304 means unchanged. Then the same bytes do; their
digest (XXH3, the fastest) need not be collision resistant: it is compared only with the last answer of the same
page, so a forger could only hide a change of his own page. Then the main text decides. Its digest is over tidied
lines, so white space alone is no change. A page with only a new title, or a new noindex, has not changed but is
stored again; therefore the digest of a page includes both.

Similarity is estimated from sketches: Broder, On the resemblance and containment of documents (1997). The 128 bytes
per page give a standard error of at most 0.09, and less near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Set
from struct import pack, unpack
from typing import NamedTuple
from zlib import crc32

from xxhash import xxh3_128_digest

from levada.core.hashing import content_digest
from levada.core.records import Outcome, PageRecord, ParsedPage

SKETCH_SIZE = 32
_CANDIDATES = 3 * SKETCH_SIZE // 2


def sketch_of(vocabulary: Set[bytes]) -> bytes:
    """The `SKETCH_SIZE` smallest hashes of distinct words in UTF-8, big-endian and ascending; b"" for no words.

    An attacker who crafts hashes only makes his pages look alike.
    """
    # Hashes are uniform: a bound that about 48 of them are below saves sorting all of them.
    bound = (_CANDIDATES << 32) // max(len(vocabulary), 1)
    smallest = {number for number in map(crc32, vocabulary) if number < bound}
    if len(smallest) < SKETCH_SIZE:
        smallest = set(map(crc32, vocabulary))
    kept = sorted(smallest)[:SKETCH_SIZE]
    return pack(f">{len(kept)}I", *kept)


def similarity(a: bytes, b: bytes) -> float:
    """Estimated Jaccard similarity: 1.0 for equal sketches (two empty ones too), 0.0 if only one is empty."""
    if a == b:
        return 1.0
    if not a or not b:
        return 0.0
    first, second = _read(a), _read(b)
    # The k smallest of the union are among the k smallest of each.
    union = sorted(first | second)[:SKETCH_SIZE]
    return sum(number in first and number in second for number in union) / len(union) if union else 0.0


def are_alike(a: bytes, b: bytes, least: float) -> bool:
    """Whether the similarity is `least` or more. For most pages of a pattern, a cheap bound says no."""
    first, second = _read(a), _read(b)
    larger = max(len(first), len(second))
    # An upper bound: the union has at least as many hashes as the larger sketch.
    return (not larger or len(first & second) / larger >= least) and similarity(a, b) >= least


def _read(packed: bytes) -> frozenset[int]:
    count = len(packed) // 4
    return frozenset(unpack(f">{count}I", packed[: count * 4]))


NOT_MODIFIED = 304
_TEXT = 16  # bytes of the digest that stand for the text
_BY_NOBODY, _BY_ANSWER, _BY_PAGE = b"\0", b"\1", b"\2"  # the byte after them


class Judgement(NamedTuple):
    outcome: Outcome
    similarity: float  # to the stored version: 1 the same words, 0 none in common or nothing stored


def answer_mark(body: bytes) -> bytes:
    """Sixteen bytes that are the same if the body is the same as at the last visit."""
    return xxh3_128_digest(body)


def page_digest(text: bytes, title: str, *, asked: bool, on_page: bool) -> bytes:
    """The digest of the text, who asks for noindex (`asked`: the answer's headers), and a checksum of the title."""
    noindex = _BY_ANSWER if asked else _BY_PAGE if on_page else _BY_NOBODY
    return content_digest(text) + noindex + crc32(title.encode("utf-8", "replace")).to_bytes(4, "big")


def text_part(digest: bytes | None) -> bytes:
    """The digest of the text alone, which two pages may share."""
    return (digest or b"")[:_TEXT]


def is_noindex(digest: bytes | None) -> bool:
    """Whether the stored page is noindex."""
    return (digest or b"")[_TEXT : _TEXT + 1] in (_BY_ANSWER, _BY_PAGE)


def was_noindex(digest: bytes | None) -> bool:
    """Whether the headers of the answer ask for noindex, which the bytes of the page do not show."""
    return (digest or b"")[_TEXT : _TEXT + 1] == _BY_ANSWER


def shows_the_same(one: bytes, other: bytes | None) -> bool:
    """Whether two digests have the same title, text and noindex."""
    return other is not None and _shown(one) == _shown(other)


def _shown(digest: bytes) -> tuple[bytes, bytes, bool]:
    return digest[:_TEXT], digest[_TEXT + 1 :], is_noindex(digest)


def same_bytes(page: PageRecord, status: int, body_digest: bytes | None) -> bool:
    """Whether the answer alone shows that the page is unchanged, so that nothing is parsed."""
    return status == NOT_MODIFIED or (body_digest is not None and body_digest == page.body_digest)


def judge(
    page: PageRecord, status: int, body_digest: bytes | None = None, parsed: ParsedPage | None = None
) -> Judgement:
    """The outcome of an answered visit; `parsed` is needed only if `same_bytes` is False."""
    if same_bytes(page, status, body_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    if parsed is None:
        raise ValueError("a page whose bytes are new must be parsed before it is judged")
    if page.text_digest is None:
        return Judgement(Outcome.FIRST, 0.0)
    if text_part(parsed.text_digest) == text_part(page.text_digest):
        return Judgement(Outcome.UNCHANGED, 1.0)
    return Judgement(Outcome.CHANGED, similarity(page.sketch or b"", parsed.sketch))
