"""References: what a row holds of a body that lies elsewhere.

A frame (`levada.pages.compression`) of some size lies as an object of its own, under a key that begins with its
SHA-256. The row holds a reference in its place, which no frame begins like. A key also says for which page, version and
lease the object was written. No lease is given out twice, so:

- one object belongs to one version, and goes when that version goes: nothing is shared, and nothing is counted;
- a commit that is repeated writes the same object again;
- an object that no version names today will not be named later, except by the commit that is writing it just now.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

MARK = b"\xffLvB"
"""The first bytes of a reference. A zstd frame begins with others."""

_PACKED = struct.Struct(">4s32sQIQI")
_KEY = re.compile(r"([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{60})-([0-9a-f]{1,16})-([0-9a-f]{1,8})-([0-9a-f]{1,16})")


class Reference(NamedTuple):
    """Where a frame lies, and how to recognise it."""

    digest: bytes
    page_id: int
    version: int
    token: int
    size: int

    @property
    def key(self) -> str:
        digest = self.digest.hex()
        return f"{digest[:2]}/{digest[2:4]}/{digest[4:]}-{self.page_id:x}-{self.version:x}-{self.token:x}"

    def pack(self) -> bytes:
        return _PACKED.pack(MARK, self.digest, self.page_id, self.version, self.token, self.size)

    def matches(self, frame: bytes) -> bool:
        """Whether this is the frame that was written."""
        return len(frame) == self.size and sha256(frame).digest() == self.digest


def reference_to(frame: bytes, page_id: int, version: int, token: int) -> Reference:
    """The reference to a frame of this version, stored under this lease.

    >>> reference = reference_to(b"a frame", page_id=7, version=2, token=9)
    >>> reference.key
    '5b/86/bebdd3fc41eb31dcbac1d6b71e2d4d31a05be5e3aab2eccdb1e4d3ff8a55-7-2-9'
    >>> unpacked_reference(reference.pack()) == reference
    True
    """
    return Reference(sha256(frame).digest(), page_id, version, token, len(frame))


def unpacked_reference(content: Any) -> Reference | None:
    """The reference that stands in the place of a frame; None if this is no reference."""
    if content is None or len(content) != _PACKED.size or content[: len(MARK)] != MARK:
        return None
    return Reference(*_PACKED.unpack(content)[1:])


def references_in(contents: Iterable[Any]) -> list[Reference]:
    return [reference for content in contents if (reference := unpacked_reference(content)) is not None]


class Keyed(NamedTuple):
    """What a key says."""

    digest: bytes
    page_id: int
    version: int


def keyed(key: str) -> Keyed | None:
    """What this key says; None if it is the key of something else."""
    found = _KEY.fullmatch(key)
    if found is None:
        return None
    return Keyed(bytes.fromhex("".join(found.group(1, 2, 3))), int(found[4], 16), int(found[5], 16))
