"""Which digest stands for these bytes, which number for this term, and which pages stand for all?

Contents come from outsiders, so their digest is collision resistant (BLAKE2b). Sixteen bytes are enough for "do
these pages say the same"; eight for a term: an outsider can make two words of his own meet, which then share a
count, but none that meets a given word. The draw of a sample has no such enemy, and is arithmetic that a database
can do.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["content_digest", "drawn", "term_number"]


def content_digest(data: bytes) -> bytes:
    """Sixteen bytes that stand for `data`."""
    return blake2b(data, digest_size=16).digest()


def drawn(page_id: int, one_in: int) -> bool:
    """Whether this page is in the sample of one page in `one_in`, a power of two.

    The sample of one in twice as many is part of it. In SQL:
    `((((page_id & 16777215) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) = 0`.
    """
    return ((((page_id & 0xFFFFFF) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) == 0


def term_number(term: str) -> int:
    """A number from -2^63 to 2^63 - 1 that stands for the term everywhere; 0 for the empty one only."""
    if not term:
        return 0
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, person=b"levada term").digest()
    return int.from_bytes(digest, "little", signed=True) or 1
