"""Content digests, term numbers, the draw of the page sample, and the spread of pages over time.

Content comes from outside, so its digest is collision resistant (BLAKE2b). Sixteen bytes are enough to compare
pages. Eight are enough for a term: an attacker can find two words of his own that collide and then share a count,
but no word that collides with a given one. The draw of the sample has no attacker; it is arithmetic that a database
can compute.
"""

from __future__ import annotations

from hashlib import blake2b


def content_digest(data: bytes) -> bytes:
    """A digest of sixteen bytes."""
    return blake2b(data, digest_size=16).digest()


def drawn(page_id: int, one_in: int) -> bool:
    """Whether this page is in the sample of one page in `one_in`, a power of two.

    The sample of one in `2 * one_in` is a subset. In SQL:
    `((((page_id & 16777215) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) = 0`.
    """
    return ((((page_id & 0xFFFFFF) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) == 0


def spread(page_id: int) -> float:
    """A share from 0 to below 1 that is this page's own, as even as chance over all pages."""
    return (page_id * 0x9E3779B97F4A7C15 % 2**64) / 2**64


def tombstone(key: str, name: str) -> str:
    """The keyed hash of a URL or site that was forgotten, in hex. Without the key nobody can try out names."""
    data = name.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16, key=bytes.fromhex(key), person=b"levada forgotten").hexdigest()


def term_number(term: str) -> int:
    """The number of a term, from -2^63 to 2^63 - 1; 0 only for the empty term."""
    if not term:
        return 0
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, person=b"levada term").digest()
    return int.from_bytes(digest, "little", signed=True) or 1
