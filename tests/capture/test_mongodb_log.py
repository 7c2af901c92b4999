"""MongoDB's own records are read: the profiler's collection and the structured log."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson import ObjectId, json_util
from hypothesis import given
from hypothesis import strategies as st

from levada.capture.json_documents import JsonReading
from levada.capture.mongodb.log import MongoLogReading, queries_in_log
from levada.sharding.queries import Condition, QueryEntry

AT = datetime(2024, 1, 31, 12, tzinfo=UTC)
A1 = Condition("a", "eq", (1,))
FOUND: dict[str, Any] = {"at": AT.timestamp(), "source": "profile", "seconds": 0.25}
PROFILE: list[dict[str, Any]] = [
    {"op": "query", "ns": "d.c", "command": {"find": "c", "filter": {"a": 1}, "$db": "d"}, "millis": 250, "ts": AT},
    {"op": "update", "ns": "d.c", "command": {"q": {"a": 1}, "u": {"$set": {"b": 1}}, "multi": False},
     "millis": 250, "ts": AT},
    {"op": "remove", "ns": "d.c", "command": {"q": {"a": 1}, "limit": 1}, "millis": 250, "ts": AT},
    {"op": "insert", "ns": "d.c", "command": {"insert": "c", "$db": "d"}, "ninserted": 3, "millis": 250, "ts": AT},
    {"op": "command", "ns": "d.c", "command": {"distinct": "c", "query": {"a": 1}}, "millis": 250, "ts": AT},
    {"op": "query", "ns": "d.c", "query": {"$query": {"a": 1}, "$orderby": {"b": 1}}, "millis": 250, "ts": AT},
    {"op": "update", "ns": "d.c", "query": {"a": 1}, "updateobj": {"$set": {"b": 1}}, "millis": 250, "ts": AT},
]  # fmt: skip
ASKED = [
    QueryEntry("d.c", "find", filter=A1, **FOUND),
    QueryEntry("d.c", "update", filter=A1, changes=("b",), **FOUND),
    QueryEntry("d.c", "delete", filter=A1, **FOUND),
    QueryEntry("d.c", "insert", inserted=3, **FOUND),
    QueryEntry("d.c", "distinct", filter=A1, **FOUND),
    QueryEntry("d.c", "find", filter=A1, **FOUND),
    QueryEntry("d.c", "update", filter=A1, changes=("b",), **FOUND),
]
SILENT: list[dict[str, Any]] = [
    {"op": "getmore", "ns": "d.c", "command": {"getMore": 5, "collection": "c"}, "ts": AT},
    {"op": "command", "ns": "d.$cmd", "command": {"ping": 1}, "ts": AT},
    {"nothing": "known"},
]


def read(data: bytes) -> tuple[list[QueryEntry], MongoLogReading]:
    reading = MongoLogReading(JsonReading())
    return list(queries_in_log(io.BytesIO(data), reading)), reading


def test_an_export_of_the_profiler_is_read_in_every_form() -> None:
    documents = [*PROFILE, *SILENT]
    lines = "\n".join(map(json_util.dumps, documents)).encode()
    forms = [
        lines,
        b"[" + lines.replace(b"\n", b",\n") + b"]",
        json.dumps(json.loads(json_util.dumps(documents)), indent=2).encode(),
        b"".join(map(bson.encode, documents)),
    ]
    large = [{**each, "plan": "x" * 100_000} for each in documents]
    forms.append(b"".join(map(bson.encode, large)))
    for form in forms:
        found, reading = read(form)
        assert found == ASKED
        assert (reading.silent, reading.json.damaged) == (len(SILENT), 0)


def entry(attributes: dict[str, Any], component: str = "COMMAND") -> bytes:
    whole = {"t": {"$date": "2024-01-31T12:00:00.000+00:00"}, "s": "I", "c": component, "id": 51803, "ctx": "conn1",
             "msg": "Slow query", "attr": attributes}  # fmt: skip
    return json.dumps(whole).encode() + b"\n"


def test_the_structured_log_is_read() -> None:
    oid = "64b7f1f77bcf86cd79943901"
    log = entry({"type": "command", "ns": "d.c", "durationMillis": 250,
                 "command": {"find": "c", "filter": {"_id": {"$oid": oid}}, "$db": "d"}})  # fmt: skip
    log += entry({"type": "update", "ns": "d.c", "command": {"q": {"a": 1}, "u": {"$set": {"b": 1}}}}, "WRITE")
    log += entry({"type": "command", "ns": "d.c", "command": {"find": "c"}, "truncated": {"command": {}}})
    log += entry({"remote": "127.0.0.1"}, "NETWORK") + b"2019-01-01T00:00:00 I COMMAND [conn1] an old line\n"
    log += entry({"type": "command", "ns": "d.c", "command": {"find": "c"}})[:60]
    found, reading = read(log)
    assert [(query.op, query.source, query.at, query.seconds) for query in found] == [
        ("find", "mongo-log", AT.timestamp(), 0.25),
        ("update", "mongo-log", AT.timestamp(), None),
    ]
    assert found[0].filter == Condition("_id", "eq", (str(ObjectId(oid)),))
    assert (reading.truncated, reading.silent, reading.json.damaged) == (1, 1, 2)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"{" * 5000, b'{"op":' * 3000, b"[" * 100_000, bson.encode({"op": 1})[:-3], b"\xff\xff\0\0\3",
     b'{"t":{"$date":"never"},"c":"COMMAND","attr":{"ns":5,"command":[]}}', b'{"_id":{"$oid":"xyz"}}'],
    ids=range(9),
)  # fmt: skip
def test_files_that_are_something_else_give_nothing_and_harm_nobody(data: bytes) -> None:
    assert read(data)[0] == []


@given(st.binary(max_size=100), st.integers(0, 2000))
def test_a_damaged_record_harms_no_other(noise: bytes, place: int) -> None:
    good = json_util.dumps(PROFILE[0]).encode() + b"\n"
    noise = noise.replace(b"[", b"").replace(b"\0", b"")
    found, _ = read(good + noise + b"\n" + good)
    assert found[0] == found[-1] == ASKED[0]
    dump = bytearray(bson.encode(PROFILE[0]) * 3)
    dump[place % len(dump)] ^= 0xFF
    read(bytes(dump))
