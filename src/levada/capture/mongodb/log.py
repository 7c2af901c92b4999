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
from levada.capture.mongodb.bson import decode
from levada.capture.mongodb.commands import command_name, is_query, queries_of
from levada.capture.mongodb.frames import Unreadable
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


class _Entry(msgspec.Struct):
    """What both kinds of records have in common."""

    source: str
    kind: str
    namespace: str
    command: dict[str, Any]
    at: float | None
    seconds: float | None
    inserted: int = 0


def queries_in_log(file: BinaryIO, reading: MongoLogReading) -> Iterator[QueryEntry]:
    """The queries of a file that can be read from its beginning again."""
    for document in _dumped(file, reading) if _is_dump(file) else json_documents(file, reading.json, _typed):
        reading.entries += 1
        entry = _entry(document)
        if entry is None:
            reading.silent += 1
            continue
        yield from _queries(entry, reading)


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


def _entry(document: dict[str, Any]) -> _Entry | None:
    attributes = document.get("attr")
    if isinstance(attributes, dict):
        if document.get("c") not in ("COMMAND", "WRITE", "QUERY"):
            return None
        return _of_parts("mongo-log", attributes, attributes.get("type"), document.get("t"), "durationMillis")
    return _of_parts("profile", document, document.get("op"), document.get("ts"), "millis")


def _of_parts(source: str, parts: dict[str, Any], kind: Any, at: Any, millis: str) -> _Entry | None:
    namespace, command = parts.get("ns"), parts.get("command")
    if not isinstance(command, dict):
        command = _before_3_6(parts, str(kind))
    if not isinstance(namespace, str) or not isinstance(command, dict):
        return None
    took, inserted = parts.get(millis), parts.get("ninserted", 0)
    return _Entry(
        source,
        str(kind),
        namespace,
        {**command, "$truncated": True} if "truncated" in parts else command,
        at.timestamp() if isinstance(at, datetime) else None,
        took / 1000 if isinstance(took, (int, float)) else None,
        inserted if isinstance(inserted, int) else 0,
    )


def _before_3_6(parts: dict[str, Any], kind: str) -> Any:
    """The profiler once wrote `query` and `updateobj`."""
    query = parts.get("query")
    if kind == "query" and isinstance(query, dict) and "find" not in query:
        return {"find": str(parts.get("ns", "")).partition(".")[2], "filter": query.get("$query", query)}
    if kind == "update":
        return {"q": query, "u": parts.get("updateobj")}
    return {"q": query} if kind == "remove" else query


def _queries(entry: _Entry, reading: MongoLogReading) -> Iterator[QueryEntry]:
    if "$truncated" in entry.command:
        reading.truncated += 1
        return
    database, _, collection = entry.namespace.partition(".")
    body = entry.command
    if entry.kind in _WRITES and "q" in body:  # one statement of a command
        name, statements = _WRITES[entry.kind]
        body = {name: collection, statements: [body]}
    command = Command(body, database, entry.inserted)
    if not is_query(command_name(command)):
        reading.silent += 1
        return
    try:
        for query in queries_of(command):
            reading.queries += 1
            yield msgspec.structs.replace(query, at=entry.at, source=entry.source, seconds=entry.seconds)
    except Exception:  # one entry that we cannot handle must not cost all that follow
        reading.json.damaged += 1
