"""What was asked of a store, whichever engine it was asked of?

One `AskedQuery` is one line of a log of queries. Its filter is a tree of `AllOf`, `AnyOf`, `NoneOf` and
`Condition`, so that whoever wants to know which shards a query touches can reckon it exactly: a condition narrows,
`AllOf` cuts, `AnyOf` unites, `NoneOf` narrows nothing.

Operators of a condition, and what its `values` are:

    eq           one value
    in           several; `size` says how many there were, also where the values were dropped
    range        two, lowest and highest, None where that side is open; whether the ends belong to it is not kept
    prefix       one: the text that the field begins with
    exists       true or false
    regex, text  none that narrows
    other:NAME   whatever else the engine calls NAME; values as they were given, if they were scalars

`values` is empty where they were dropped (`--values drop`) or are not known (a parameter of a prepared statement).
Values are JSON scalars: an ObjectId is its hex digits, a moment is ISO 8601 in UTC, a sub-document its JSON text.
A hashed value is `#` and 16 hex digits: equal values have equal hashes under one key, and nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

__all__ = [
    "OPERATIONS",
    "OPERATORS",
    "AllOf",
    "AnyOf",
    "AskedQuery",
    "Condition",
    "Filter",
    "NoneOf",
    "Scalar",
    "Sort",
    "conditions",
]

Scalar: TypeAlias = str | int | float | bool | None
OPERATORS = frozenset({"eq", "in", "range", "prefix", "exists", "regex", "text"})
OPERATIONS = ("find", "aggregate", "count", "distinct", "insert", "update", "delete", "findandmodify")


class Condition(msgspec.Struct, frozen=True, tag_field="node", tag="is", omit_defaults=True):
    """What one field must be; `field` is dotted, places in arrays are left out (`a.0.b` is `a.b`)."""

    field: str
    operator: str
    values: tuple[Scalar, ...] = ()
    size: int = 1  # of an `in`: how many values were asked for


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


class AskedQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """One query of one collection. A statement that joins tables is one for each of them."""

    collection: str  # database.collection, schema.table
    op: str  # one of OPERATIONS, or what the engine calls it
    at: float | None = None  # when it was asked
    source: str = ""  # where it was met: mongo, pcap, profile, mongo-log, postgres, postgres-log, search
    filter: Filter | None = None  # None: all documents
    sort: tuple[Sort, ...] = ()
    limit: int | None = None
    changes: tuple[str, ...] = ()  # fields that a write sets; "*": the whole document is replaced
    inserted: int = 0  # documents
    many: bool = False  # an update or delete of all that match, not of the first
    upsert: bool = False
    joined: tuple[str, ...] = ()  # other collections of the same statement
    seconds: float | None = None  # that it took, where the engine says so
    times: int = 1  # how often it was asked


def conditions(asked: Filter | None) -> Iterator[Condition]:
    """Every condition of a filter, wherever it stands; the tree is walked without recursion."""
    waiting = [] if asked is None else [asked]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Condition):
            yield node
        else:
            waiting.extend(reversed(node.of))
