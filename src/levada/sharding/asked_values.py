"""How much of the values that were asked for is kept in the log?

Kept, hashed under a key (equal values can still be told to be equal, and a sample of documents can be hashed
alike), or dropped. Of ranges and beginnings nothing is left of a hash, so they are dropped then. A text longer than
any shard key may be is hashed in any case; as the end of a range it is left open.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from hashlib import blake2b

import msgspec

from levada.sharding.asked import AskedQuery, Condition, Filter, Scalar

__all__ = ["LONGEST_VALUE", "ValueRule", "Values"]

LONGEST_VALUE = 512  # characters; MongoDB's limit of a shard key, in bytes
_SAID_ANYWAY = ("exists",)  # true and false give nothing away
_ORDERED = ("range", "prefix")  # a hash says nothing of the order


class Values(StrEnum):
    KEEP = "keep"
    HASH = "hash"
    DROP = "drop"


class ValueRule:
    """Applies one of the three to queries; `key` makes hashes that nobody without it can try out."""

    def __init__(self, values: Values = Values.KEEP, key: bytes = b"") -> None:
        self._values = values
        self._key = blake2b(key, digest_size=32).digest()

    def apply(self, query: AskedQuery) -> AskedQuery:
        if query.filter is None:
            return query
        return msgspec.structs.replace(query, filter=self._filter(query.filter))

    def hashed(self, value: Scalar) -> str:
        """`#` and sixteen hex digits; 1 and 1.0 are equal, 1 and "1" are not."""
        number = isinstance(value, float) and value.is_integer()
        text = msgspec.json.encode(int(value) if number and value is not None else value)
        return "#" + blake2b(text, digest_size=8, key=self._key).hexdigest()

    def _filter(self, node: Filter) -> Filter:
        if isinstance(node, Condition):
            return self._condition(node)
        return type(node)(tuple(self._filter(each) for each in node.of))

    def _condition(self, condition: Condition) -> Condition:
        if condition.operator in _SAID_ANYWAY or not condition.values:
            return condition
        return msgspec.structs.replace(condition, values=tuple(self._kept(condition)))

    def _kept(self, condition: Condition) -> Iterable[Scalar]:
        ordered = condition.operator in _ORDERED
        if self._values is Values.DROP or (ordered and self._values is Values.HASH):
            return ()
        if self._values is Values.HASH:
            return (None if value is None else self.hashed(value) for value in condition.values)
        return (self._shortened(value, ordered) for value in condition.values)

    def _shortened(self, value: Scalar, ordered: bool) -> Scalar:
        if not isinstance(value, str) or len(value) <= LONGEST_VALUE:
            return value
        return None if ordered else self.hashed(value)
