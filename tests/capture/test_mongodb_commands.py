"""MongoDB commands are understood, down to their deepest level."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex
from bson.binary import UUID_SUBTYPE

from levada.capture.mongodb.bson import scalar
from levada.capture.mongodb.commands import field_name, queries_of, read_filter
from levada.capture.mongodb.messages import Command
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, Sort

A1 = Condition("a", "eq", (1,))
B2 = Condition("b", "eq", (2,))


@pytest.mark.parametrize(
    ("asked", "understood"),
    [
        ({}, None),
        ({"a": 1}, A1),
        ({"a": 1, "b": 2}, AllOf((A1, B2))),
        ({"$and": [{"a": 1}, {"b": 2}]}, AllOf((A1, B2))),
        ({"$or": [{"a": 1}, {"b": 2}]}, AnyOf((A1, B2))),
        ({"$or": [{"a": 1}, {}]}, None),
        ({"$nor": [{"a": 1}]}, NoneOf((A1,))),
        ({"a": {"$not": {"$eq": 1}}}, NoneOf((A1,))),
        ({"a": {"$in": [1, "x", None]}}, Condition("a", "in", (1, "x", None), 3)),
        ({"a": {"$gt": 1, "$lte": 5}}, Condition("a", "range", (1, 5))),
        ({"a": {"$gte": MinKey(), "$lt": MaxKey()}}, Condition("a", "range", (None, None))),
        ({"a": {"$gt": 1, "$ne": 3}},
         AllOf((Condition("a", "range", (1, None)), Condition("a", "other:ne", (3,))))),
        ({"a": {"$exists": True}}, Condition("a", "exists", (True,))),
        ({"a": {"$nin": [1]}}, Condition("a", "other:nin", (1,))),
        ({"a.0.b": 1, "c.$.d": 2}, AllOf((Condition("a.b", "eq", (1,)), Condition("c.d", "eq", (2,))))),
        ({"a": {"b": 1}}, Condition("a", "eq", ('{"b": 1}',))),
        ({"a": {"$elemMatch": {"b": 1, "c": {"$gt": 2}}}},
         AllOf((Condition("a.b", "eq", (1,)), Condition("a.c", "range", (2, None))))),
        ({"a": {"$elemMatch": {"$gt": 2}}}, Condition("a", "range", (2, None))),
        ({"a": {"$all": [1, 2]}}, AllOf((A1, Condition("a", "eq", (2,))))),
        ({"a": Regex("^Iz")}, Condition("a", "prefix", ("Iz",))),
        ({"a": {"$regex": r"^a\.b*"}}, Condition("a", "prefix", ("a.",))),
        ({"a": {"$regex": "^Iz", "$options": "i"}}, Condition("a", "regex")),
        ({"a": Regex("^a|b")}, Condition("a", "regex")),
        ({"a": Regex("end$")}, Condition("a", "regex")),
        ({"a": {"$near": [1, 2]}}, Condition("a", "other:near")),
        ({"a": {"$brandNew": 7}}, Condition("a", "other:brandNew", (7,))),
        ({"$text": {"$search": "boat"}}, Condition("", "text")),
        ({"$where": "true"}, Condition("", "other:where")),
        ({"$comment": "hi"}, None),
        ({"$expr": {"$eq": ["$a", 1]}}, A1),
        ({"$expr": {"$lt": [5, "$a"]}}, Condition("a", "range", (5, None))),
        ({"$expr": {"$gt": ["$a", "$b"]}}, Condition("", "other:expr")),
        ({"a": 1, "$or": "nonsense", "b": {"$in": 5}}, AllOf((A1, Condition("b", "other:in", (5,))))),
    ],
)  # fmt: skip
def test_a_filter_becomes_conditions(asked: dict[str, Any], understood: Filter | None) -> None:
    assert read_filter(asked) == understood


def test_a_filter_of_any_depth_and_size_ends() -> None:
    deep: dict[str, Any] = {"a": 1}
    for _ in range(500):
        deep = {"$and": [deep]}
    assert read_filter(deep) == Condition("", "other:too-deep")
    wide = read_filter({str(number): 1 for number in range(20_000)})
    assert isinstance(wide, AllOf)
    assert len(wide.of) == 10_001
    many = read_filter({"a": {"$in": list(range(5_000))}})
    assert many == Condition("a", "in", (), 5_000)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (ObjectId("64b7f1f77bcf86cd79943901"), "64b7f1f77bcf86cd79943901"),
        (datetime(2024, 1, 31, 12, tzinfo=UTC), "2024-01-31T12:00:00.000Z"),
        (Int64(5), 5),
        (Decimal128("1.5"), 1.5),
        (Decimal128.from_bid(b"\xff" * 14 + b"\xff\x41"), "ff" * 15 + "41"),
        (float("nan"), "nan"),
        (Binary(bytes(16), UUID_SUBTYPE), "00000000-0000-0000-0000-000000000000"),
        (b"\x01\x02", "0102"),
        ([1, {"a": 2}], '[1, {"a": 2}]'),
    ],
)
def test_a_value_becomes_a_json_scalar(value: Any, kept: Any) -> None:
    assert scalar(value) == kept


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"find": "c", "filter": {"a": 1}, "sort": {"b": -1, "a": 1}, "limit": 5},
         [QueryEntry("d.c", "find", filter=A1, sort=(Sort("b", False), Sort("a")), limit=5)]),
        ({"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$sort": {"b": 1}}, {"$match": {"b": 2}},
                                         {"$lookup": {"from": "e"}}, {"$match": {"x": 9}}]},
         [QueryEntry("d.c", "aggregate", filter=AllOf((A1, B2)), sort=(Sort("b"),), joined=("d.e",))]),
        ({"count": "c", "query": {"a": 1}}, [QueryEntry("d.c", "count", filter=A1)]),
        ({"distinct": "c", "key": "z", "query": {"a": 1}}, [QueryEntry("d.c", "distinct", filter=A1)]),
        ({"update": "c", "updates": [
            {"q": {"a": 1}, "upsert": True,
             "u": {"$set": {"x.0.y": 1}, "$unset": {"z": ""}, "$setOnInsert": {"w": 1}}},
            {"q": {"b": 2}, "u": {"k": 1, "_id": 4}, "multi": True},
            {"q": {}, "u": [{"$set": {"p": 1}}, {"$unset": ["q"]}]}]},
         [QueryEntry("d.c", "update", filter=A1, changes=("x.y", "z"), upsert=True),
          QueryEntry("d.c", "update", filter=B2, changes=("k", "*"), many=True),
          QueryEntry("d.c", "update", changes=("p", "q"))]),
        ({"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1}, {"q": {}, "limit": 0}]},
         [QueryEntry("d.c", "delete", filter=A1), QueryEntry("d.c", "delete", many=True)]),
        ({"findAndModify": "c", "query": {"a": 1}, "update": {"$inc": {"n": 1}}, "upsert": True},
         [QueryEntry("d.c", "findandmodify", filter=A1, changes=("n",), upsert=True)]),
        ({"bulkWrite": 1, "nsInfo": [{"ns": "d.c"}, {"ns": "d.e"}], "ops": [
            {"insert": 0, "document": {"a": 1}},
            {"update": 1, "filter": {"a": 1}, "updateMods": {"$set": {"b": 1}}},
            {"delete": 0, "filter": {"b": 2}, "multi": True}, {"delete": 9, "filter": {}}]},
         [QueryEntry("d.c", "insert", inserted=1), QueryEntry("d.e", "update", filter=A1, changes=("b",)),
          QueryEntry("d.c", "delete", filter=B2, many=True)]),
        ({"aggregate": 1, "pipeline": []}, []),
        ({"getMore": Int64(5), "collection": "c"}, []),
        ({"hello": 1}, []),
        ({"find": "c", "filter": 5, "sort": 7, "limit": "x"}, [QueryEntry("d.c", "find")]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_command_becomes_queries(body: dict[str, Any], asked: list[QueryEntry]) -> None:
    assert list(queries_of(Command({**body, "$db": "d"}))) == asked


def test_places_in_arrays_are_left_out_of_names() -> None:
    assert [field_name(name) for name in ("a.0.b", "a.$[x].b", "a.$", "a.b0")] == ["a.b", "a.b", "a", "a.b0"]
