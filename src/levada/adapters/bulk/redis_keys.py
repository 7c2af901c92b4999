"""Under which keys does a map lie in Redis?

Everything is below `levada:`, and a map's name has no colon or brace, so that no map reaches into another. In a
cluster keys are placed by a part in braces: entries of one bucket lie together with the gate of that bucket. Keys
of entries are short on purpose: one of 28 bytes costs Redis a quarter less than one of 35.
"""

from __future__ import annotations

__all__ = ["entry_prefix", "gate_key", "map_key", "tag"]


def map_key(name: str) -> bytes:
    """A hash: `pointer` is the published manifest, `g:7` says that generation 7 is there."""
    return b"levada:map:{%b}" % name.encode()


def tag(bucket: int, buckets: int) -> bytes:
    return b"{%03x}" % bucket if buckets > 1 else b""


def gate_key(name: str, generation: int, bucket: int, buckets: int) -> bytes:
    return b"levada:gate:%b:%d:" % (name.encode(), generation) + tag(bucket, buckets)


def entry_prefix(name: str, generation: int) -> bytes:
    """What stands before the tag and the key; a number comes first, so that it is no other kind of key."""
    return b"levada:%d:%b:" % (generation, name.encode())
