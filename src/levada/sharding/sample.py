"""What do the documents look like, field by field?

A sample holds, for each field that matters, the values of its documents in the order in which they were inserted:
each different value once, and for each document which one it has. Sub-documents are dotted fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from levada.sharding.values import MISSING, dig, encoded

__all__ = ["Column", "Sample", "kind_of", "names_in"]

_MOST_LEVELS = 8


def kind_of(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list | tuple):
        return "array"
    return "document" if isinstance(value, Mapping) else "bytes" if isinstance(value, bytes) else "text"


class Column:
    """One field of all documents: `codes[i]` is the place among `values` of the value of document i."""

    __slots__ = ("_by_encoding", "_by_value", "codes", "encodings", "values")

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.values: list[Any] = []
        self.encodings: list[bytes] = []
        self._by_value: dict[tuple[type, Any], int] = {}
        self._by_encoding: dict[bytes, int] = {}

    def append(self, value: Any) -> None:
        if isinstance(value, list | dict):
            self.codes.append(self._code(value))
            return
        known = (value.__class__, value)  # 1, 1.0 and True are equal, and not the same
        code = self._by_value.get(known)
        if code is None:
            code = self._by_value[known] = self._code(value)
        self.codes.append(code)

    def _code(self, value: Any) -> int:
        data = encoded(value)
        code = self._by_encoding.setdefault(data, len(self.values))
        if code == len(self.values):
            self.values.append(value)
            self.encodings.append(data)
        return code

    def code_of(self, value: Any) -> int | None:
        """The place of this value, if a document has it."""
        return self._by_encoding.get(encoded(value))

    def every(self, step: int) -> Column:
        """The values of one document in `step`."""
        fewer = Column()
        fewer.values, fewer.encodings = self.values, self.encodings
        fewer._by_encoding = self._by_encoding
        fewer.codes = self.codes[::step]
        return fewer

    def counts(self) -> Counter[int]:
        return Counter(self.codes)

    def kinds(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, count in self.counts().items():
            found[kind_of(self.values[code])] += count
        return found


class Sample:
    """Documents in the order of their inserts; `fields` of them are kept, and the id."""

    def __init__(self, documents: Iterable[Mapping[str, Any]], fields: Sequence[str], id_field: str = "") -> None:
        names = dict.fromkeys((*fields, *([id_field] if id_field else [])))
        self.columns: dict[str, Column] = {name: Column() for name in names}
        self.count = 0
        takers = [(name, column.append) for name, column in self.columns.items()]
        for document in documents:
            self.count += 1
            for name, take in takers:
                take(document[name] if name in document else dig(document, name))
        self.id_field = id_field if id_field and self._identifies(id_field) else ""

    def _identifies(self, field: str) -> bool:
        column = self.columns[field]
        return self.count > 0 and any(value is not MISSING for value in column.values)

    def thinned(self, most: int) -> Sample:
        """At most so many of the documents, evenly from the whole, in their order."""
        step = -(-self.count // most)
        if step <= 1:
            return self
        fewer = Sample((), ())
        for name, column in self.columns.items():
            fewer.columns[name] = column.every(step)
        fewer.count = len(range(0, self.count, step))
        fewer.id_field = self.id_field
        return fewer

    def document(self, number: int, fields: Iterable[str] | None = None) -> dict[str, Any]:
        """What is kept of one document."""
        found = {}
        for name in fields if fields is not None else self.columns:
            column = self.columns[name]
            value = column.values[column.codes[number]]
            if value is not MISSING:
                found[name] = value
        return found


def names_in(document: Mapping[str, Any], before: str = "", level: int = 0) -> Iterable[str]:
    """The dotted names of a document's fields."""
    for name, value in document.items():
        if isinstance(value, Mapping) and value and level < _MOST_LEVELS:
            yield from names_in(value, f"{before}{name}.", level + 1)
        else:
            yield before + name
