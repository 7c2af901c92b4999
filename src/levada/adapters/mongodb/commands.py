"""Which queries does a command of MongoDB make?

A command with several updates or deletes is one query for each of them, as each is sent to the shards of its own
filter; an insert of several documents is one query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from levada.adapters.mongodb.changes import changed_fields
from levada.adapters.mongodb.documents import Documents
from levada.adapters.mongodb.filters import FilterWalk, field_name
from levada.adapters.mongodb.messages import Command
from levada.adapters.mongodb.pipelines import read_pipeline
from levada.sharding.asked import AllOf, AskedQuery, Filter, Sort

__all__ = ["asked_of", "command_name", "is_query"]

_MOST_STATEMENTS = 100_000  # of one command; the server's own limit
_MOST_SORTED = 100


class _Asking(msgspec.Struct):
    """A command, and where its queries go."""

    body: dict[str, Any]
    collection: str
    counted: int
    walk: FilterWalk

    def filter(self, name: str) -> Filter | None:
        return self.walk.read(self.body.get(name))


def command_name(command: Command) -> str:
    return next(iter(command.body), "")


def is_query(name: str) -> bool:
    return name.lower() in _READERS or name == "bulkWrite"


def asked_of(command: Command) -> Iterator[AskedQuery]:
    """The queries of a command, none if it is no query; when and where it was met is the caller's to say."""
    name = command_name(command)
    collection = command.body.get(name)
    database = command.body.get("$db", command.database)
    if name == "bulkWrite":  # its own value is a number
        yield from _bulk_write(command)
    elif is_query(name) and isinstance(collection, str) and isinstance(database, str):
        asking = _Asking(command.body, f"{database}.{collection}", command.counted, FilterWalk())
        yield from _READERS[name.lower()](asking)


def _find(asking: _Asking) -> Iterator[AskedQuery]:
    body = asking.body
    yield AskedQuery(
        asking.collection, "find", filter=asking.filter("filter"), sort=_sort(body.get("sort")), limit=_limit(body)
    )


def _aggregate(asking: _Asking) -> Iterator[AskedQuery]:
    head = read_pipeline(asking.body.get("pipeline"))
    found = [part for part in map(asking.walk.read, head.matches) if part is not None]
    database = asking.collection.partition(".")[0]
    yield AskedQuery(
        asking.collection,
        "aggregate",
        filter=AllOf(tuple(found)) if len(found) > 1 else next(iter(found), None),
        sort=_sort(head.sort),
        limit=head.limit,
        joined=tuple(f"{database}.{name}" for name in head.joined),
    )


def _count(asking: _Asking) -> Iterator[AskedQuery]:
    yield AskedQuery(asking.collection, "count", filter=asking.filter("query"), limit=_limit(asking.body))


def _distinct(asking: _Asking) -> Iterator[AskedQuery]:
    yield AskedQuery(asking.collection, "distinct", filter=asking.filter("query"))


def _map_reduce(asking: _Asking) -> Iterator[AskedQuery]:
    sort = _sort(asking.body.get("sort"))
    yield AskedQuery(asking.collection, "aggregate", filter=asking.filter("query"), sort=sort)


def _insert(asking: _Asking) -> Iterator[AskedQuery]:
    listed = asking.body.get("documents")
    inserted = asking.counted + (len(listed) if isinstance(listed, list) else 0)
    yield AskedQuery(asking.collection, "insert", inserted=inserted)


def _update(asking: _Asking) -> Iterator[AskedQuery]:
    for statement in _statements(asking.body.get("updates")):
        yield _updated(asking, statement, "q", "u")


def _delete(asking: _Asking) -> Iterator[AskedQuery]:
    for statement in _statements(asking.body.get("deletes")):
        yield AskedQuery(
            asking.collection,
            "delete",
            filter=asking.walk.read(statement.get("q")),
            many=not statement.get("limit"),
        )


def _updated(asking: _Asking, statement: dict[str, Any], query: str, update: str) -> AskedQuery:
    return AskedQuery(
        asking.collection,
        "update",
        filter=asking.walk.read(statement.get(query)),
        changes=changed_fields(statement.get(update)),
        many=bool(statement.get("multi")),
        upsert=bool(statement.get("upsert")),
    )


def _find_and_modify(asking: _Asking) -> Iterator[AskedQuery]:
    body = asking.body
    yield AskedQuery(
        asking.collection,
        "findandmodify",
        filter=asking.filter("query"),
        sort=_sort(body.get("sort")),
        changes=changed_fields(body.get("update")),
        upsert=bool(body.get("upsert")),
    )


def _bulk_write(command: Command) -> Iterator[AskedQuery]:
    """The command of 8.0 that writes to several collections; each of its statements names one by number."""
    names = [str(each.get("ns", "")) for each in _statements(command.body.get("nsInfo"))]
    walk = FilterWalk()
    for statement in _statements(command.body.get("ops")):
        kind = next(iter(statement), "")
        place = statement.get(kind)
        if not isinstance(place, int) or not 0 <= place < len(names):
            continue
        asking = _Asking(statement, names[place], 0, walk)
        if kind == "insert":
            yield AskedQuery(names[place], "insert", inserted=1)
        elif kind == "update":
            yield _updated(asking, statement, "filter", "updateMods")
        elif kind == "delete":
            many = bool(statement.get("multi"))
            yield AskedQuery(names[place], "delete", filter=asking.filter("filter"), many=many)


def _statements(listed: Any) -> Iterator[dict[str, Any]]:
    if isinstance(listed, (list, Documents)):
        for number, statement in enumerate(listed):
            if number >= _MOST_STATEMENTS:
                return
            if isinstance(statement, dict):
                yield statement


def _sort(asked: Any) -> tuple[Sort, ...]:
    if not isinstance(asked, dict):
        return ()
    return tuple(Sort(field_name(name), _ascending(way)) for name, way in list(asked.items())[:_MOST_SORTED])


def _ascending(way: Any) -> bool:
    return not (isinstance(way, (int, float)) and way < 0)


def _limit(body: dict[str, Any]) -> int | None:
    limit = body.get("limit")
    if not isinstance(limit, (int, float)) or not math.isfinite(limit):
        return None
    return abs(int(limit)) or None


_READERS: dict[str, Callable[[_Asking], Iterator[AskedQuery]]] = {
    "find": _find,
    "aggregate": _aggregate,
    "count": _count,
    "distinct": _distinct,
    "mapreduce": _map_reduce,
    "insert": _insert,
    "update": _update,
    "delete": _delete,
    "findandmodify": _find_and_modify,
}
