"""Which digest stands for these bytes, and which pages stand for all?

Contents come from outsiders, so their digest is collision resistant (BLAKE2b). Sixteen bytes are enough for "is
this the same page as last time". The draw of a sample has no such enemy, and is arithmetic that a database can do.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["content_digest", "drawn"]


def content_digest(data: bytes) -> bytes:
    """Sixteen bytes that stand for `data`."""
    return blake2b(data, digest_size=16).digest()


def drawn(page_id: int, one_in: int) -> bool:
    """Whether this page is in the sample of one page in `one_in`, a power of two.

    The sample of one in twice as many is part of it. In SQL:
    `((((page_id & 16777215) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) = 0`.
    """
    return ((((page_id & 0xFFFFFF) * 40503 + (page_id >> 24) * 30011) >> 4) & (one_in - 1)) == 0
