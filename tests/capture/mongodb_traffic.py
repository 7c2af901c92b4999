"""Queries of an application through pymongo, and the query log that they must give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pymongo

from levada.sharding.queries import LogReading, QueryEntry, conditions, read_queries

__all__ = ["ask_many", "logged", "told", "without_origin"]

Asked = tuple[str, int]  # the operation, and the number that marks it (of an insert: how many documents)


def ask_many(port: int, count: int, compressor: str | None = None) -> list[Asked]:
    """Asks a mixture of `count` operations, one after the other; what must be logged, in order."""
    options: dict[str, Any] = {"compressors": compressor} if compressor else {}
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
        "127.0.0.1", port, directConnection=True, maxPoolSize=1, retryWrites=False, **options
    )
    with client:
        items = client.ads.items
        asked: list[Asked] = []
        for number in range(count):
            asked += _KINDS[number % len(_KINDS)](items, number)
    return asked


def _find(items: Any, number: int) -> list[Asked]:
    items.find_one({"n": number, "$or": [{"a": 1}, {"b.c": {"$gt": 5}}]}, sort=[("a", -1)])
    return [("find", number)]


def _find_more(items: Any, number: int) -> list[Asked]:
    assert len(list(items.find({"n": number}, batch_size=1))) == 2
    return [("find", number)]


def _aggregate(items: Any, number: int) -> list[Asked]:
    items.aggregate([{"$match": {"n": number}}, {"$group": {"_id": "$a"}}]).to_list()
    return [("aggregate", number)]


def _count(items: Any, number: int) -> list[Asked]:
    items.database.command("count", "items", query={"n": number})
    return [("count", number)]


def _distinct(items: Any, number: int) -> list[Asked]:
    items.distinct("a", {"n": number})
    return [("distinct", number)]


def _insert(items: Any, number: int) -> list[Asked]:
    items.insert_many([{"n": number, "text": "x" * 100}, {"n": number}])
    return [("insert", 2)]


def _update(items: Any, number: int) -> list[Asked]:
    items.update_one({"n": number}, {"$set": {"a": 1}, "$inc": {"b.c": 1}})
    return [("update", number)]


def _delete(items: Any, number: int) -> list[Asked]:
    items.delete_many({"n": number})
    return [("delete", number)]


def _modify(items: Any, number: int) -> list[Asked]:
    items.find_one_and_update({"n": number}, {"$set": {"a": 2}})
    return [("findandmodify", number)]


def _bulk(items: Any, number: int) -> list[Asked]:
    items.bulk_write([pymongo.UpdateOne({"n": number}, {"$set": {"a": 1}}), pymongo.DeleteOne({"n": number})])
    return [("update", number), ("delete", number)]


_KINDS: tuple[Callable[[Any, int], list[Asked]], ...] = (
    _find, _update, _find, _insert, _find_more, _aggregate, _count, _distinct, _delete, _modify, _find, _bulk,
)  # fmt: skip


def logged(log: Path) -> list[QueryEntry]:
    reading = LogReading()
    with log.open("rb") as lines:
        queries = list(read_queries(lines, reading))
    assert reading.damaged == 0
    return queries


def told(queries: list[QueryEntry]) -> list[Asked]:
    """The same words as `ask_many` uses."""
    return [(query.op, query.inserted or _number(query)) for query in queries]


def _number(query: QueryEntry) -> int:
    return next(int(str(each.values[0])) for each in conditions(query.filter) if each.field == "n")


def without_origin(queries: list[QueryEntry]) -> list[QueryEntry]:
    return [msgspec.structs.replace(query, at=None, source="") for query in queries]
