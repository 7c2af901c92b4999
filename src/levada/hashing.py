"""Which digest stands for these bytes?

Contents come from outsiders, so every digest here is collision resistant (BLAKE2b). Sixteen bytes are enough
for "is this the same page as last time"; eight, keyed, for spreading keys that an outsider picks.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["content_digest", "keyed_hash"]


def content_digest(data: bytes) -> bytes:
    """Sixteen bytes that stand for `data`."""
    return blake2b(data, digest_size=16).digest()


def keyed_hash(data: bytes, key: bytes) -> int:
    """A 64-bit number that nobody without `key` can aim at."""
    return int.from_bytes(blake2b(data, digest_size=8, key=key).digest(), "big")
