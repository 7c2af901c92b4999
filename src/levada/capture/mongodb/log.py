"""Queries in MongoDB's profiler collection and structured log.

The profiler's collection is read as mongoexport writes it (JSON) or as mongodump does (BSON), the log as it is.
Both cut long commands short; those are counted and left out, because half a filter would be taken for another one.
Sources: the manual's chapters on the database profiler and on log messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

import msgspec
from bson import json_util

from levada.capture.json_documents import JsonReading, json_documents
from levada.capture.mongodb.bson import Unreadable, decode
from levada.capture.mongodb.commands import command_name, is_query, queries_of
from levada.capture.mongodb.messages import Command
from levada.sharding.queries import QueryEntry

_OPTIONS = json_util.JSONOptions(tz_aware=True)
_LARGEST_ENTRY = 17 << 20
_WRITES = {"update": ("update", "updates"), "remove": ("delete", "deletes")}


class MongoLogReading(msgspec.Struct):
    """Counts of what was read."""

    json: JsonReading
    entries: int = 0
    queries: int = 0
    silent: int = 0  # entries that are not queries
    truncated: int = 0  # queries that were cut short in the log


def queries_in_log(file: BinaryIO, reading: MongoLogReading) -> Iterator[QueryEntry]:
    """The queries of a file that can be read from its beginning again."""
    for document in _dumped(file, reading) if _is_dump(file) else json_documents(file, reading.json, _typed):
        reading.entries += 1
        yield from _queries(document, reading)


def _is_dump(file: BinaryIO) -> bool:
    """Whether the file is BSON, which begins with a length; the first four letters of a text make an impossible
    one."""
    head = file.read(4)
    file.seek(0)
    return len(head) == 4 and 5 <= int.from_bytes(head, "little", signed=True) <= _LARGEST_ENTRY


def _dumped(file: BinaryIO, reading: MongoLogReading) -> Iterator[dict[str, Any]]:
    """Consecutive BSON documents."""
    while head := file.read(4):
        length = int.from_bytes(head, "little", signed=True)
        if len(head) < 4 or not 5 <= length <= _LARGEST_ENTRY:
            reading.json.damaged += 1
            return  # there is no way to know where the next one begins
        try:
            yield decode(head + file.read(length - 4))
        except Unreadable:
            reading.json.damaged += 1


def _typed(document: dict[str, Any]) -> Any:
    """Extended JSON: {"$oid": ...} is an ObjectId, and so on."""
    try:
        return json_util.object_hook(document, _OPTIONS)
    except Exception as error:  # anything that a type's constructor raises about its value
        raise ValueError("no extended JSON") from error


def _before_3_6(parts: dict[str, Any], kind: str) -> Any:
    """The profiler once wrote `query` and `updateobj`."""
    query = parts.get("query")
    if kind == "query" and isinstance(query, dict) and "find" not in query:
        return {"find": str(parts.get("ns", "")).partition(".")[2], "filter": query.get("$query", query)}
    if kind == "update":
        return {"q": query, "u": parts.get("updateobj")}
    return {"q": query} if kind == "remove" else query


def _queries(document: dict[str, Any], reading: MongoLogReading) -> Iterator[QueryEntry]:
    parts = document.get("attr")
    if isinstance(parts, dict):
        source, kind, at, took = "mongo-log", str(parts.get("type")), document.get("t"), parts.get("durationMillis")
        known = document.get("c") in ("COMMAND", "WRITE", "QUERY")
    else:
        parts, known = document, True
        source, kind, at, took = "profile", str(parts.get("op")), parts.get("ts"), parts.get("millis")
    namespace, body = parts.get("ns"), parts.get("command")
    if not isinstance(body, dict):
        body = _before_3_6(parts, kind)
    if not known or not isinstance(namespace, str) or not isinstance(body, dict):
        reading.silent += 1
        return
    if "truncated" in parts or "$truncated" in body:
        reading.truncated += 1
        return
    database, _, collection = namespace.partition(".")
    if kind in _WRITES and "q" in body:  # one statement of a command
        name, statements = _WRITES[kind]
        body = {name: collection, statements: [body]}
    inserted = parts.get("ninserted")
    command = Command(body, database, inserted if isinstance(inserted, int) else 0)
    if not is_query(command_name(command)):
        reading.silent += 1
        return
    try:
        when = at.timestamp() if isinstance(at, datetime) else None
        seconds = took / 1000 if isinstance(took, (int, float)) else None
        for query in queries_of(command):
            reading.queries += 1
            yield msgspec.structs.replace(query, at=when, source=source, seconds=seconds)
    except Exception:  # one entry that we cannot handle must not cost all that follow
        reading.json.damaged += 1
