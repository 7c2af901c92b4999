"""How do the rows of a task become the entries of a map?

Rows of one key are gathered into one value, in sorted order so that the same rows always give the same bytes.
Without `collect` a second row of a key is an error: which of them should win?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from levada.bulk.digest import rows_digest
from levada.bulk.encoding import encoded_key, encoded_values
from levada.errors import Refused

__all__ = ["DuplicateKey", "PlainEntries", "PlainRows"]


class DuplicateKey(Refused):
    def __init__(self, key: object) -> None:
        super().__init__(
            f"key {str(key)[:80]!r} has several rows: gather them with --collect, or choose a key that is unique"
        )


class PlainEntries:
    """Entries as pairs of bytes."""

    def __init__(self, pairs: list[tuple[bytes, bytes]], key_kind: str) -> None:
        self._pairs = pairs
        self.key_kind = key_kind

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self) -> Sequence[tuple[bytes, bytes]]:
        return self._pairs


class PlainRows:
    """Rows as Python objects, for any type; arrays of integers are several times faster."""

    def __init__(
        self, keys: Sequence[Any], values: Sequence[Any], kinds: tuple[str, str], null_values: int = 0
    ) -> None:
        self._rows = list(zip(keys, values, strict=True))
        self._kinds = kinds
        self.null_values = null_values

    def __len__(self) -> int:
        return len(self._rows)

    def digest(self) -> int:
        return rows_digest(self._rows)

    def entries(self, collect: bool) -> PlainEntries:
        gathered: dict[Any, list[Any]] = {}
        for key, value in self._rows:
            gathered.setdefault(key, []).append(value)
        if not collect and len(gathered) < len(self._rows):
            raise DuplicateKey(next(key for key, values in gathered.items() if len(values) > 1))
        key_kind, value_kind = self._kinds
        pairs = [(encoded_key(key, key_kind), _encoded(values, value_kind)) for key, values in gathered.items()]
        return PlainEntries(pairs, key_kind)


def _encoded(values: list[Any], kind: str) -> bytes:
    if len(values) > 1:
        values.sort(key=lambda value: (str(type(value)), value))
    return encoded_values(values, kind)
