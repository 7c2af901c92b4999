"""Recorded queries: their filters, which values of them are kept, and their JSON lines.

One `QueryEntry` is one line of a query log. Its filter is a tree of `AllOf`, `AnyOf`, `NoneOf` and `Condition`,
from which the shards that a query touches follow exactly: a condition prunes, `AllOf` intersects, `AnyOf` unites,
`NoneOf` prunes nothing.

Operators of a condition, and what its `values` are:

    eq           one value
    in           several; `size` says how many there were, also where the values were dropped
    range        two, lowest and highest, None where that side is open; whether the ends belong to it is not kept
    prefix       one: the text that the field starts with
    exists       true or false
    regex, text  none that prunes
    other:NAME   anything else the engine calls NAME; values as they were given, if they were scalars

`values` is empty where they were dropped (`--values drop`) or are not known (a parameter of a prepared statement).
Values are JSON scalars: an ObjectId is its hex digits, a time is ISO 8601 in UTC, a sub-document its JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from hashlib import blake2b
from typing import TypeAlias

import msgspec

Scalar: TypeAlias = str | int | float | bool | None
OPERATORS = frozenset({"eq", "in", "range", "prefix", "exists", "regex", "text"})
OPERATIONS = ("find", "aggregate", "count", "distinct", "insert", "update", "delete", "findandmodify")


class Condition(msgspec.Struct, frozen=True, tag_field="node", tag="is", omit_defaults=True):
    """What one field must be. `field` is dotted, without positions in arrays (`a.0.b` is `a.b`)."""

    field: str
    operator: str
    values: tuple[Scalar, ...] = ()
    size: int = 1  # of an `in`: how many values it had


class AllOf(msgspec.Struct, frozen=True, tag_field="node", tag="and"):
    of: tuple[Filter, ...]


class AnyOf(msgspec.Struct, frozen=True, tag_field="node", tag="or"):
    of: tuple[Filter, ...]


class NoneOf(msgspec.Struct, frozen=True, tag_field="node", tag="not"):
    of: tuple[Filter, ...]


Filter: TypeAlias = Condition | AllOf | AnyOf | NoneOf


class Sort(msgspec.Struct, frozen=True, array_like=True):
    field: str
    ascending: bool = True


class QueryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One query of one collection. A statement that joins tables has one entry for each table."""

    collection: str  # database.collection, schema.table
    op: str  # one of OPERATIONS, or what the engine calls it
    at: float | None = None  # epoch seconds
    source: str = ""  # mongo, pcap, profile, mongo-log, postgres, postgres-log, search
    filter: Filter | None = None  # None: all documents
    sort: tuple[Sort, ...] = ()
    limit: int | None = None
    changes: tuple[str, ...] = ()  # fields that a write sets; "*": the whole document is replaced
    inserted: int = 0  # documents
    many: bool = False  # an update or delete of all that match, not of the first
    upsert: bool = False
    joined: tuple[str, ...] = ()  # other collections of the same statement
    seconds: float | None = None  # duration, if the engine records it
    times: int = 1  # how often it ran


def all_of(parts: Iterable[Filter | None]) -> Filter | None:
    """The filter of what all parts find; None finds all documents."""
    found = tuple(part for part in parts if part is not None)
    return AllOf(found) if len(found) > 1 else next(iter(found), None)


def with_conditions(query: Filter, change: Callable[[Condition], Condition]) -> Filter:
    """The filter with every condition changed."""
    if isinstance(query, Condition):
        return change(query)
    return type(query)(tuple(with_conditions(each, change) for each in query.of))


def conditions(query: Filter | None) -> Iterator[Condition]:
    """Every condition of a filter; the tree is walked without recursion."""
    waiting = [] if query is None else [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Condition):
            yield node
        else:
            waiting.extend(reversed(node.of))


BY_VALUE = ("eq", "in")
_WITH_VALUES = (*BY_VALUE, "range", "prefix")
_HASHED = re.compile(r"#[0-9a-f]{16}")


def is_hidden(condition: Condition) -> bool:
    """Whether the log lacks the values of this condition: they were dropped or hashed."""
    if condition.operator not in _WITH_VALUES:
        return False
    return not condition.values or any(isinstance(each, str) and _HASHED.fullmatch(each) for each in condition.values)


LONGEST_VALUE = 512  # characters; MongoDB's limit of a shard key, in bytes
_ALWAYS_KEPT = ("exists",)  # true and false give nothing away
_ORDERED = ("range", "prefix")  # a hash says nothing of the order


class Values(StrEnum):
    """What becomes of the values of a query."""

    KEEP = "keep"
    HASH = "hash"
    DROP = "drop"


class ValueRule:
    """Keeps, hashes or drops the values of queries.

    A hash is `#` and 16 hex digits. Equal values have equal hashes under one `key`, so that a sample of documents
    can be hashed alike; without the key nobody can try values out. A hash has no order, so the values of ranges and
    prefixes are dropped then. A text longer than any shard key is hashed in any case; as the end of a range it is
    left open.
    """

    def __init__(self, values: Values = Values.KEEP, key: bytes = b"") -> None:
        self._values = values
        self._key = blake2b(key, digest_size=32).digest()

    def apply(self, query: QueryEntry) -> QueryEntry:
        if query.filter is None:
            return query
        return msgspec.structs.replace(query, filter=with_conditions(query.filter, self._condition))

    def hashed(self, value: Scalar) -> str:
        """1 and 1.0 have the same hash, 1 and "1" do not."""
        number = isinstance(value, float) and value.is_integer()
        text = msgspec.json.encode(int(value) if number and value is not None else value)
        return "#" + blake2b(text, digest_size=8, key=self._key).hexdigest()

    def _condition(self, condition: Condition) -> Condition:
        if condition.operator in _ALWAYS_KEPT or not condition.values:
            return condition
        ordered = condition.operator in _ORDERED
        drops = self._values is Values.DROP or (ordered and self._values is Values.HASH)
        kept = () if drops else tuple(self._value(value, ordered) for value in condition.values)
        return msgspec.structs.replace(condition, values=kept)

    def _value(self, value: Scalar, ordered: bool) -> Scalar:
        if self._values is Values.HASH:
            return None if value is None else self.hashed(value)
        if not isinstance(value, str) or len(value) <= LONGEST_VALUE:
            return value
        return None if ordered else self.hashed(value)


LONGEST_LINE = 1 << 20
_MOST_NAMES = 10_000  # the rest is counted under ""
_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(QueryEntry)


class LogReading(msgspec.Struct):
    """Counts of a log that is being read; complete at its end."""

    lines: int = 0
    taken: int = 0
    damaged: int = 0  # half lines, other JSON, lines that are too long
    elsewhere: int = 0  # queries of other collections
    unknown: dict[str, int] = {}  # operators that prune nothing, by name
    collections: dict[str, int] = {}  # queries of each

    @property
    def partial(self) -> bool:
        return self.damaged > 0


def query_line(query: QueryEntry) -> bytes:
    """The JSON line of a query, with its line end."""
    return _encode(query) + b"\n"


def read_queries(
    lines: Iterable[bytes], reading: LogReading | None = None, collection: str | None = None
) -> Iterator[QueryEntry]:
    """The queries of a log, or those of one collection.

    A half line, a line that is something else and an unknown operator are counted in `reading`, never fatal.
    """
    counts = reading if reading is not None else LogReading()
    for line in lines:
        if not line.strip():
            continue
        counts.lines += 1
        query = _read_line(line)
        if query is None:
            counts.damaged += 1
            continue
        _count(counts.collections, query.collection, query.times)
        if collection is not None and query.collection != collection:
            counts.elsewhere += 1
            continue
        counts.taken += 1
        for condition in conditions(query.filter):
            if condition.operator not in OPERATORS:
                _count(counts.unknown, condition.operator.removeprefix("other:"), 1)
        yield query


def _read_line(line: bytes) -> QueryEntry | None:
    if len(line) > LONGEST_LINE:
        return None
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _count(counts: dict[str, int], name: str, times: int) -> None:
    known = name if name in counts or len(counts) < _MOST_NAMES else ""
    counts[known] = counts.get(known, 0) + times
