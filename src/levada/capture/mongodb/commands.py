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
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeAlias

from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex

from levada.capture.mongodb.bson import scalar
from levada.capture.mongodb.messages import Command
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, Scalar, Sort, all_of

_DEEPEST = 120
_MOST = 1_000
_SWAPPED = {"$gt": "$lt", "$gte": "$lte", "$lt": "$gt", "$lte": "$gte", "$eq": "$eq"}


def _expression(wanted: Any, depth: int = 0) -> Filter:
    """The filter of an `$expr`."""
    found: Filter | None = None
    if isinstance(wanted, dict) and len(wanted) == 1 and depth <= _DEEPEST:
        name, operands = next(iter(wanted.items()))
        if isinstance(operands, list) and operands and name in ("$and", "$or"):
            found = _BRANCHES[name](tuple(_expression(each, depth + 1) for each in operands[:_MOST]))
        elif isinstance(operands, list) and len(operands) == 2 and name in _SWAPPED:
            found = _compared(name, *operands)
    return found or Condition("", "other:expr")


def _compared(name: str, left: Any, right: Any) -> Condition | None:
    if not _is_field(left):
        left, right, name = right, left, _SWAPPED[name]
    if not _is_field(left) or _is_field(right):
        return None
    constant = _constant(right)
    if constant is None:
        return None
    end = _COMPARED[name]
    values = constant if end == "eq" else (*constant, None) if end == "low" else (None, *constant)
    return Condition(left[1:], "eq" if end == "eq" else "range", values)


def _is_field(operand: Any) -> bool:
    return isinstance(operand, str) and operand.startswith("$") and not operand.startswith("$$")


def _constant(operand: Any) -> tuple[Scalar] | None:
    """A literal value; None for expressions and variables."""
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


def read_filter(wanted: Any) -> Filter | None:
    return all_of(_FilterWalk().document(wanted, "", 0)) if isinstance(wanted, Mapping) else None


class _FilterWalk:
    """Reads one filter, and counts conditions so that an untrusted filter cannot grow without end."""

    def __init__(self) -> None:
        self._left = MOST_CONDITIONS

    def document(self, wanted: Mapping[str, Any], prefix: str, depth: int) -> Iterator[Filter]:
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
            elif not name.startswith("$"):
                yield from self._field(field_name(prefix + name), value, depth)
            elif name == "$expr":
                yield _expression(value)
            elif name != "$comment":  # an operator that names no field
                yield Condition("", "text" if name == "$text" else f"other:{name[1:]}")

    def _branch(self, name: str, value: Any, prefix: str, depth: int) -> Iterator[Filter]:
        parts = value if isinstance(value, list) else []
        read = [all_of(self.document(part, prefix, depth + 1)) for part in parts if isinstance(part, Mapping)]
        if name == "$or" and None in read:
            return  # one alternative matches everything, so all of it does
        found = tuple(part for part in read if part is not None)
        if found:
            yield found[0] if len(found) == 1 and name != "$nor" else _BRANCHES[name](found)

    def _field(self, field: str, value: Any, depth: int) -> Iterator[Filter]:
        if isinstance(value, Regex):
            yield _pattern(field, value.pattern, value.flags)
        elif isinstance(value, Mapping) and next(iter(value), "").startswith("$") and "$ref" not in value:
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
            elif name == "$elemMatch" and isinstance(value, Mapping):
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
            yield from self.document(wanted, f"{field}.", depth + 1)


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
            # MinKey and MaxKey come before and after every value: a range that ends there is open
            ends[end] = None if isinstance(value, (MinKey, MaxKey)) else scalar(value)
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


EVERYTHING = "*"
_ADDS = ("$set", "$addFields")
_REPLACES = ("$replaceWith", "$replaceRoot", "$project")


def changed_fields(update: Any) -> tuple[str, ...]:
    """The fields that an update changes, given as operators, a pipeline, or a whole document (`*`: unnamed fields
    go)."""
    found: Iterable[str] = ()
    if isinstance(update, list):
        found = chain.from_iterable(map(_of_stage, update[:_MOST]))
    elif isinstance(update, dict):
        found = _of_document(update)
    return tuple(dict.fromkeys(islice(found, _MOST)))


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


def _aggregate(collection: str, command: Command) -> Iterator[QueryEntry]:
    pipeline = command.body.get("pipeline")
    listed = pipeline[:_MOST_STAGES] if isinstance(pipeline, list) else ()
    stages = [next(iter(stage.items())) for stage in listed if isinstance(stage, dict) and stage]
    matches: list[Filter | None] = []
    sort: tuple[Sort, ...] = ()
    limit: int | None = None
    for name, value in stages:
        if name == "$match":
            matches.append(read_filter(value))
        elif name == "$geoNear" and isinstance(value, dict):
            matches.append(read_filter(value.get("query")))
        elif name == "$sort" and isinstance(value, dict):
            sort = _sort(value)
        elif name == "$limit":
            limit = _limit(value)
        if name not in _PASSES_ON:
            break
    database = collection.partition(".")[0]
    joined = tuple(f"{database}.{name}" for name in dict.fromkeys(_joined(stages)))
    yield QueryEntry(collection, "aggregate", filter=all_of(matches), sort=sort, limit=limit, joined=joined)


def _joined(stages: list[tuple[str, Any]]) -> Iterator[str]:
    for name, place in stages:
        if name in _JOINS:
            for step in (_JOINS[name], "coll"):
                place = place.get(step) if isinstance(place, dict) else place
            if isinstance(place, str):
                yield place


_MOST_STATEMENTS = 100_000  # of one command; the server's own limit
_MOST_SORTED = 100


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
        yield from _bulk_write(command.body)
    elif is_query(name) and isinstance(collection, str) and isinstance(database, str):
        yield from _READERS[name.lower()](f"{database}.{collection}", command)


def _statements(listed: Any) -> Iterator[dict[str, Any]]:
    if isinstance(listed, (list, Iterator)):
        yield from (each for each in islice(listed, _MOST_STATEMENTS) if isinstance(each, dict))


def _sort(wanted: Any) -> tuple[Sort, ...]:
    if not isinstance(wanted, dict):
        return ()
    return tuple(
        Sort(field_name(name), not (isinstance(way, (int, float)) and way < 0))
        for name, way in islice(wanted.items(), _MOST_SORTED)
    )


def _limit(wanted: Any) -> int | None:
    if not isinstance(wanted, (int, float)) or not math.isfinite(wanted):
        return None
    return abs(int(wanted)) or None


_PARTS: dict[str, Callable[[Any], Any]] = {
    "filter": read_filter,
    "sort": _sort,
    "limit": _limit,
    "changes": changed_fields,
    "many": bool,
    "upsert": bool,
}


def _entry(collection: str, op: str, body: dict[str, Any], **names: str) -> QueryEntry:
    """The query of a command or a statement; `names` say where it keeps each part of the query."""
    return QueryEntry(collection, op, **{part: _PARTS[part](body.get(name)) for part, name in names.items()})


_Reader: TypeAlias = Callable[[str, Command], Iterator[QueryEntry]]


def _single(op: str, **names: str) -> _Reader:
    """A command that is one query."""

    def read(collection: str, command: Command) -> Iterator[QueryEntry]:
        yield _entry(collection, op, command.body, **names)

    return read


def _insert(collection: str, command: Command) -> Iterator[QueryEntry]:
    listed = command.body.get("documents")
    yield QueryEntry(collection, "insert", inserted=command.counted + (len(listed) if isinstance(listed, list) else 0))


def _update(collection: str, command: Command) -> Iterator[QueryEntry]:
    for statement in _statements(command.body.get("updates")):
        yield _entry(collection, "update", statement, filter="q", changes="u", many="multi", upsert="upsert")


def _delete(collection: str, command: Command) -> Iterator[QueryEntry]:
    for statement in _statements(command.body.get("deletes")):
        filter = read_filter(statement.get("q"))
        yield QueryEntry(collection, "delete", filter=filter, many=not statement.get("limit"))


def _bulk_write(body: dict[str, Any]) -> Iterator[QueryEntry]:
    """The command of 8.0 that writes to several collections; each of its statements names one by number."""
    names = [str(each.get("ns", "")) for each in _statements(body.get("nsInfo"))]
    for statement in _statements(body.get("ops")):
        kind = next(iter(statement), "")
        place = statement.get(kind)
        if not isinstance(place, int) or not 0 <= place < len(names):
            continue
        if kind == "insert":
            yield QueryEntry(names[place], kind, inserted=1)
        elif kind == "update":
            found = {"filter": "filter", "changes": "updateMods", "many": "multi", "upsert": "upsert"}
            yield _entry(names[place], kind, statement, **found)
        elif kind == "delete":
            yield _entry(names[place], kind, statement, filter="filter", many="multi")


_READERS: dict[str, _Reader] = {
    "find": _single("find", filter="filter", sort="sort", limit="limit"),
    "aggregate": _aggregate,
    "count": _single("count", filter="query", limit="limit"),
    "distinct": _single("distinct", filter="query"),
    "mapreduce": _single("aggregate", filter="query", sort="sort"),
    "insert": _insert,
    "update": _update,
    "delete": _delete,
    "findandmodify": _single("findandmodify", filter="query", sort="sort", changes="update", upsert="upsert"),
}
