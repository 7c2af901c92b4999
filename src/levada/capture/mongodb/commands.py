"""Queries made by MongoDB commands: filters, updates, expressions, pipelines.

Only comparisons of a field with a constant, and `$and`, `$or` of these, can prune; everything else does not. A
filter is walked deeper than the server itself accepts; what lies beyond, or beyond 10,000 conditions, is one
condition `other:too-deep` or `other:too-many`.

In a pipeline, only the stages before the first one that transforms the documents say which documents are read. A
command with several updates or deletes is one query for each of them, as each is sent to the shards of its own
filter; an insert of several documents is one query. Source: the query operators of MongoDB's manual.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from bson.regex import Regex

from levada.capture.mongodb.bson import BsonDocuments, is_end_of_all, scalar
from levada.capture.mongodb.messages import Command
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, Scalar, Sort

_DEEPEST = 120
_MOST = 1_000
_SWAPPED = {"$gt": "$lt", "$gte": "$lte", "$lt": "$gt", "$lte": "$gte", "$eq": "$eq"}


def expression(wanted: Any, depth: int) -> Iterator[Filter]:
    """The filter of an `$expr`."""
    name, operands = _operator(wanted)
    if depth <= _DEEPEST and name in ("$and", "$or") and operands:
        parts = [part for each in operands[:_MOST] for part in expression(each, depth + 1)]
        yield AllOf(tuple(parts)) if name == "$and" else AnyOf(tuple(parts))
    elif depth <= _DEEPEST and (found := _compared(name, operands)):
        yield found
    else:
        yield Condition("", "other:expr")


def _operator(wanted: Any) -> tuple[str, list[Any]]:
    if not isinstance(wanted, dict) or len(wanted) != 1:
        return "", []
    name, operands = next(iter(wanted.items()))
    return name, operands if isinstance(operands, list) else []


def _compared(name: str, operands: list[Any]) -> Condition | None:
    if len(operands) != 2 or name not in _SWAPPED:
        return None
    left, right = operands
    if not _is_field(left):
        left, right, name = right, left, _SWAPPED[name]
    if not _is_field(left) or _is_field(right):
        return None
    constant = _constant(right)
    return None if constant is None else _expression_condition(left[1:], name, constant[0])


def _expression_condition(field: str, name: str, value: Scalar) -> Condition:
    if name == "$eq":
        return Condition(field, "eq", (value,))
    return Condition(field, "range", (value, None) if name in ("$gt", "$gte") else (None, value))


def _is_field(operand: Any) -> bool:
    return isinstance(operand, str) and operand.startswith("$") and not operand.startswith("$$")


def _constant(operand: Any) -> tuple[Scalar] | None:
    """A literal value; expressions and variables are none."""
    if isinstance(operand, dict):
        return (scalar(operand["$literal"]),) if list(operand) == ["$literal"] else None
    if isinstance(operand, list) or (isinstance(operand, str) and operand.startswith("$")):
        return None
    return (scalar(operand),)


MOST_CONDITIONS = 10_000
MOST_VALUES = 2_000  # of one `in`; if there are more, none is kept, as some would reveal all
_BRANCHES: dict[str, type[AllOf | AnyOf | NoneOf]] = {"$and": AllOf, "$or": AnyOf, "$nor": NoneOf}
_COMPARED = {"$eq": "eq", "$gt": "low", "$gte": "low", "$lt": "high", "$lte": "high"}
_BESIDE = frozenset({"$options", "$maxDistance", "$minDistance", "$comment"})  # modify another operator
_PLACE = re.compile(r"\.(?:\d+|\$(?:\[[^\]]*\])?)(?=\.|$)")
_PREFIX = re.compile(r"(?:\^|\\A)((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])+)(.?)", re.DOTALL)


def field_name(name: str) -> str:
    """The name without array positions: `a.0.b`, `a.$.b` and `a.$[x].b` are `a.b`."""
    return _PLACE.sub("", name)


class FilterWalk:
    """Reads one filter at a time, and counts conditions so that an untrusted filter cannot grow without end."""

    def __init__(self) -> None:
        self._left = MOST_CONDITIONS

    def read(self, wanted: Any) -> Filter | None:
        if not isinstance(wanted, Mapping):
            return None
        self._left = MOST_CONDITIONS
        return _all_of(list(self._document(wanted, "", 0)))

    def _document(self, wanted: Mapping[str, Any], prefix: str, depth: int) -> Iterator[Filter]:
        """The conditions of a document; all of them must hold."""
        if depth > _DEEPEST:
            yield Condition(prefix.rstrip("."), "other:too-deep")
            return
        for name, value in wanted.items():
            if self._left <= 0:
                yield Condition(prefix.rstrip("."), "other:too-many")
                return
            self._left -= 1
            if name in _BRANCHES:
                yield from self._branch(name, value, prefix, depth)
            elif name.startswith("$"):
                yield from _special(name, value)
            else:
                yield from self._field(field_name(prefix + name), value, depth)

    def _branch(self, name: str, value: Any, prefix: str, depth: int) -> Iterator[Filter]:
        parts = value if isinstance(value, list) else []
        read = [_all_of(list(self._document(part, prefix, depth + 1))) for part in parts if _is_document(part)]
        if name == "$or" and None in read:
            return  # one alternative matches everything, so all of it does
        found = tuple(part for part in read if part is not None)
        if found:
            yield found[0] if len(found) == 1 and name != "$nor" else _BRANCHES[name](found)

    def _field(self, field: str, value: Any, depth: int) -> Iterator[Filter]:
        if isinstance(value, Regex):
            yield _pattern(field, value.pattern, value.flags)
        elif _is_document(value) and next(iter(value), "").startswith("$") and "$ref" not in value:
            yield from self._operators(field, value, depth)
        else:
            yield Condition(field, "eq", (scalar(value),))

    def _operators(self, field: str, wanted: Mapping[str, Any], depth: int) -> Iterator[Filter]:
        if depth > _DEEPEST:
            yield Condition(field, "other:too-deep")
            return
        yield from _range(field, wanted)
        for name, value in wanted.items():
            self._left -= 1
            if name == "$not":
                inside = tuple(self._field(field, value, depth + 1))
                yield from (NoneOf(inside),) if inside else ()
            elif name == "$elemMatch" and _is_document(value):
                yield from self._element(field, value, depth)
            elif name == "$all" and isinstance(value, list):
                for each in value[:MOST_VALUES]:
                    yield from self._field(field, each, depth + 1)
            elif name not in _BESIDE and _COMPARED.get(name, "eq") == "eq":
                yield _condition(field, name, value, wanted)

    def _element(self, field: str, wanted: Mapping[str, Any], depth: int) -> Iterator[Filter]:
        first = next(iter(wanted), "")
        if first.startswith("$") and first not in _BRANCHES:
            yield from self._operators(field, wanted, depth + 1)
        else:
            yield from self._document(wanted, f"{field}.", depth + 1)


def _all_of(found: list[Filter]) -> Filter | None:
    if len(found) > 1:
        return AllOf(tuple(found))
    return found[0] if found else None


def _is_document(value: Any) -> bool:
    return isinstance(value, Mapping)


def _condition(field: str, name: str, value: Any, wanted: Mapping[str, Any]) -> Condition:
    """The condition of one operator on a field."""
    if name == "$eq":
        return Condition(field, "eq", (scalar(value),))
    if name in ("$in", "$nin") and isinstance(value, list):
        return _one_of(field, name, value)
    if name == "$exists":
        return Condition(field, "exists", (bool(value),))
    if name == "$regex":
        pattern, flags = (value.pattern, value.flags) if isinstance(value, Regex) else (value, 0)
        return _pattern(field, pattern, flags or wanted.get("$options"))
    plain = isinstance(value, (dict, list))
    return Condition(field, f"other:{name[1:]}", () if plain else (scalar(value),))


def _one_of(field: str, name: str, value: list[Any]) -> Condition:
    plain = name == "$in" and not any(isinstance(each, Regex) for each in value)
    operator = "in" if plain else f"other:{name[1:]}"
    kept = value if len(value) <= MOST_VALUES else ()
    return Condition(field, operator, tuple(scalar(each) for each in kept), len(value))


def _range(field: str, wanted: Mapping[str, Any]) -> Iterator[Condition]:
    """`$gt` and `$lt` of one field are one range."""
    ends: dict[str, Scalar] = {}
    for name, value in wanted.items():
        end = _COMPARED.get(name)
        if end in ("low", "high"):
            ends[end] = None if is_end_of_all(value) else scalar(value)
    if ends:
        yield Condition(field, "range", (ends.get("low"), ends.get("high")))


def _pattern(field: str, pattern: Any, flags: Any) -> Condition:
    """A pattern that begins with plain text is a range of the index; all others are not."""
    plain = not flags and isinstance(pattern, str) and _PREFIX.match(pattern)
    if not plain:
        return Condition(field, "regex")
    text = plain[1]
    if plain[2] in tuple("?*{"):  # the last character is optional
        text = re.sub(r"(?:\\)?.\Z", "", text, flags=re.DOTALL)
    if "|" in str(pattern) or not text:
        return Condition(field, "regex")
    return Condition(field, "prefix", (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL),))


def _special(name: str, value: Any) -> Iterator[Filter]:
    """Operators that name no field."""
    if name == "$text":
        yield Condition("", "text")
    elif name == "$expr":
        yield from expression(value, 0)
    elif name != "$comment":
        yield Condition("", f"other:{name[1:]}")


EVERYTHING = "*"
_ADDS = ("$set", "$addFields")
_REPLACES = ("$replaceWith", "$replaceRoot", "$project")


def changed_fields(update: Any) -> tuple[str, ...]:
    """The fields that an update changes, given as operators, a pipeline, or a whole document (`*`: unnamed fields
    go)."""
    if isinstance(update, list):
        found = [name for stage in update[:_MOST] for name in _of_stage(stage)]
    elif isinstance(update, dict):
        found = list(_of_document(update))
    else:
        found = []
    return tuple(dict.fromkeys(found[:_MOST]))


def _of_document(update: dict[str, Any]) -> Iterator[str]:
    if not next(iter(update), "$").startswith("$"):
        yield from (name for name in update if name != "_id")
        yield EVERYTHING
        return
    for operator, fields in update.items():
        if operator == "$setOnInsert" or not isinstance(fields, dict):
            continue  # it does not change an existing document
        yield from map(field_name, fields)
        if operator == "$rename":
            yield from (field_name(name) for name in fields.values() if isinstance(name, str))


def _of_stage(stage: Any) -> Iterator[str]:
    operator, fields = next(iter(stage.items()), ("", None)) if isinstance(stage, dict) else ("", None)
    if operator in _ADDS and isinstance(fields, dict):
        yield from map(field_name, fields)
    elif operator == "$unset":
        names = [fields] if isinstance(fields, str) else fields
        yield from (field_name(name) for name in names or () if isinstance(name, str))
    elif operator in _REPLACES:
        yield EVERYTHING


_PASSES_ON = frozenset({"$match", "$sort", "$geoNear", "$sample", "$hint", "$_internalInhibitOptimization"})
_MOST_STAGES = 1_000  # the server's own limit
_JOINS = {"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll", "$merge": "into", "$out": "coll"}


class PipelineHead(NamedTuple):
    matches: list[dict[str, Any]]
    sort: dict[str, Any]
    limit: int | None
    joined: tuple[str, ...]


def read_pipeline(pipeline: Any) -> PipelineHead:
    stages = [stage for stage in _stages(pipeline) if stage]
    matches: list[dict[str, Any]] = []
    sort: dict[str, Any] = {}
    limit: int | None = None
    for name, value in stages:
        if name == "$match" and isinstance(value, dict):
            matches.append(value)
        elif name == "$geoNear" and isinstance(value, dict) and isinstance(value.get("query"), dict):
            matches.append(value["query"])
        elif name == "$sort" and isinstance(value, dict):
            sort = value
        elif name == "$limit" and isinstance(value, (int, float)):
            limit = int(value)
        if name not in _PASSES_ON:
            break
    return PipelineHead(matches, sort, limit, tuple(dict.fromkeys(_joined(stages))))


def _stages(pipeline: Any) -> Iterator[tuple[str, Any]]:
    for stage in pipeline[:_MOST_STAGES] if isinstance(pipeline, list) else ():
        if isinstance(stage, dict) and stage:
            yield next(iter(stage.items()))


def _joined(stages: list[tuple[str, Any]]) -> Iterator[str]:
    for name, value in stages:
        place = value.get(_JOINS[name]) if name in _JOINS and isinstance(value, dict) else value
        if name in _JOINS and isinstance(place, dict):
            place = place.get("coll")
        if name in _JOINS and isinstance(place, str):
            yield place


_MOST_STATEMENTS = 100_000  # of one command; the server's own limit
_MOST_SORTED = 100


class _CommandReader(msgspec.Struct):
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


def queries_of(command: Command) -> Iterator[QueryEntry]:
    """The queries of a command, none if it is not a query. The caller adds time and place."""
    name = command_name(command)
    collection = command.body.get(name)
    database = command.body.get("$db", command.database)
    if name == "bulkWrite":  # its own value is a number
        yield from _bulk_write(command)
    elif is_query(name) and isinstance(collection, str) and isinstance(database, str):
        reader = _CommandReader(command.body, f"{database}.{collection}", command.counted, FilterWalk())
        yield from _READERS[name.lower()](reader)


def _find(reader: _CommandReader) -> Iterator[QueryEntry]:
    body = reader.body
    yield QueryEntry(
        reader.collection, "find", filter=reader.filter("filter"), sort=_sort(body.get("sort")), limit=_limit(body)
    )


def _aggregate(reader: _CommandReader) -> Iterator[QueryEntry]:
    head = read_pipeline(reader.body.get("pipeline"))
    found = [part for part in map(reader.walk.read, head.matches) if part is not None]
    database = reader.collection.partition(".")[0]
    yield QueryEntry(
        reader.collection,
        "aggregate",
        filter=AllOf(tuple(found)) if len(found) > 1 else next(iter(found), None),
        sort=_sort(head.sort),
        limit=head.limit,
        joined=tuple(f"{database}.{name}" for name in head.joined),
    )


def _count(reader: _CommandReader) -> Iterator[QueryEntry]:
    yield QueryEntry(reader.collection, "count", filter=reader.filter("query"), limit=_limit(reader.body))


def _distinct(reader: _CommandReader) -> Iterator[QueryEntry]:
    yield QueryEntry(reader.collection, "distinct", filter=reader.filter("query"))


def _map_reduce(reader: _CommandReader) -> Iterator[QueryEntry]:
    sort = _sort(reader.body.get("sort"))
    yield QueryEntry(reader.collection, "aggregate", filter=reader.filter("query"), sort=sort)


def _insert(reader: _CommandReader) -> Iterator[QueryEntry]:
    listed = reader.body.get("documents")
    inserted = reader.counted + (len(listed) if isinstance(listed, list) else 0)
    yield QueryEntry(reader.collection, "insert", inserted=inserted)


def _update(reader: _CommandReader) -> Iterator[QueryEntry]:
    for statement in _statements(reader.body.get("updates")):
        yield _updated(reader, statement, "q", "u")


def _delete(reader: _CommandReader) -> Iterator[QueryEntry]:
    for statement in _statements(reader.body.get("deletes")):
        yield QueryEntry(
            reader.collection,
            "delete",
            filter=reader.walk.read(statement.get("q")),
            many=not statement.get("limit"),
        )


def _updated(reader: _CommandReader, statement: dict[str, Any], query: str, update: str) -> QueryEntry:
    return QueryEntry(
        reader.collection,
        "update",
        filter=reader.walk.read(statement.get(query)),
        changes=changed_fields(statement.get(update)),
        many=bool(statement.get("multi")),
        upsert=bool(statement.get("upsert")),
    )


def _find_and_modify(reader: _CommandReader) -> Iterator[QueryEntry]:
    body = reader.body
    yield QueryEntry(
        reader.collection,
        "findandmodify",
        filter=reader.filter("query"),
        sort=_sort(body.get("sort")),
        changes=changed_fields(body.get("update")),
        upsert=bool(body.get("upsert")),
    )


def _bulk_write(command: Command) -> Iterator[QueryEntry]:
    """The command of 8.0 that writes to several collections; each of its statements names one by number."""
    names = [str(each.get("ns", "")) for each in _statements(command.body.get("nsInfo"))]
    walk = FilterWalk()
    for statement in _statements(command.body.get("ops")):
        kind = next(iter(statement), "")
        place = statement.get(kind)
        if not isinstance(place, int) or not 0 <= place < len(names):
            continue
        reader = _CommandReader(statement, names[place], 0, walk)
        if kind == "insert":
            yield QueryEntry(names[place], "insert", inserted=1)
        elif kind == "update":
            yield _updated(reader, statement, "filter", "updateMods")
        elif kind == "delete":
            many = bool(statement.get("multi"))
            yield QueryEntry(names[place], "delete", filter=reader.filter("filter"), many=many)


def _statements(listed: Any) -> Iterator[dict[str, Any]]:
    if isinstance(listed, (list, BsonDocuments)):
        for number, statement in enumerate(listed):
            if number >= _MOST_STATEMENTS:
                return
            if isinstance(statement, dict):
                yield statement


def _sort(wanted: Any) -> tuple[Sort, ...]:
    if not isinstance(wanted, dict):
        return ()
    return tuple(
        Sort(field_name(name), not (isinstance(way, (int, float)) and way < 0))
        for name, way in list(wanted.items())[:_MOST_SORTED]
    )


def _limit(body: dict[str, Any]) -> int | None:
    limit = body.get("limit")
    if not isinstance(limit, (int, float)) or not math.isfinite(limit):
        return None
    return abs(int(limit)) or None


_READERS: dict[str, Callable[[_CommandReader], Iterator[QueryEntry]]] = {
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
