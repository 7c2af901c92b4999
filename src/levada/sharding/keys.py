"""Which bytes stand for a document's shard key?

Plain parts keep the order of their values, so that a range of them is a range of keys. A hashed part is 64 bits,
keyed with a secret where outsiders pick the values: it has no order, and spreads what would pile up.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from levada.sharding.values import dig, encoded

__all__ = ["HASH_TAG", "KeyPart", "ShardKey"]

HASH_TAG = b"\x70"


class KeyPart(msgspec.Struct, frozen=True):
    field: str
    hashed: bool = False

    def __str__(self) -> str:
        return f"hash({self.field})" if self.hashed else self.field


class ShardKey(msgspec.Struct, frozen=True):
    """`secret`: nothing, or at most 64 bytes that outsiders do not know; the same wherever the key is used."""

    parts: tuple[KeyPart, ...]
    secret: bytes = b""

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a shard key needs at least one field")
        if len({part.field for part in self.parts}) < len(self.parts):
            raise ValueError("a shard key names each field once")

    def __str__(self) -> str:
        return ", ".join(str(part) for part in self.parts)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(part.field for part in self.parts)

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """The key of a document; a field that it does not have comes before all values."""
        return b"".join([self.encode_part(part, dig(values, part.field)) for part in self.parts])

    def encode_part(self, part: KeyPart, value: Any) -> bytes:
        data = encoded(value)
        if not part.hashed:
            return data
        return HASH_TAG + blake2b(data, digest_size=8, key=self.secret, person=b"levada shard").digest()
