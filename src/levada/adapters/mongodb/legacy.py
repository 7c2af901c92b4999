"""What did drivers send before OP_MSG?

Source: the legacy opcodes of the MongoDB wire protocol (OP_QUERY, OP_COMMAND, OP_INSERT, OP_UPDATE, OP_DELETE).
Each is given as the command that says the same today.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

from levada.adapters.mongodb.documents import count_documents, decode, decode_without
from levada.adapters.mongodb.elements import document_end
from levada.adapters.mongodb.frames import Opcode, Unreadable

__all__ = ["legacy_command"]

Legacy: TypeAlias = tuple[str, dict[str, Any], int]
_INT32 = struct.Struct("<i")
_TWO_INT32 = struct.Struct("<ii")
_UPSERT, _MULTI, _ONLY_FIRST = 1, 2, 1
_WRAPPED = ("$query", "query")


def legacy_command(opcode: int, payload: bytes) -> Legacy:
    """Database, command, and the number of documents that it inserts; `struct.error` where it is cut short."""
    readers = {
        Opcode.QUERY: _query,
        Opcode.COMMAND: _command,
        Opcode.INSERT: _insert,
        Opcode.UPDATE: _update,
        Opcode.DELETE: _delete,
    }
    if opcode not in readers:
        raise Unreadable(f"no message has the opcode {opcode}")
    return readers[Opcode(opcode)](payload)


def _query(payload: bytes) -> Legacy:
    name, at = _text(payload, 4)
    limit = _TWO_INT32.unpack_from(payload, at)[1]
    at += _TWO_INT32.size
    end = document_end(payload, at)
    database, _, collection = name.partition(".")
    if collection == "$cmd":
        body, counted = decode_without(payload[at:end], b"documents")
        return database, _unwrapped(body), counted
    asked = decode(payload, at, end)
    command = {"find": collection, "filter": _unwrapped(asked), "limit": abs(limit)}
    order = asked.get("$orderby", asked.get("orderby"))
    if _unwrapped(asked) is not asked and isinstance(order, dict):
        command["sort"] = order
    return database, command, 0


def _unwrapped(asked: dict[str, Any]) -> dict[str, Any]:
    """A query may stand inside one that also says the order, the hint or the read preference."""
    first = next(iter(asked), "")
    inside = asked.get(first)
    wrapped = first in _WRAPPED and isinstance(inside, dict) and (first[0] == "$" or "orderby" in asked)
    return inside if wrapped and isinstance(inside, dict) else asked


def _command(payload: bytes) -> Legacy:
    database, at = _text(payload, 0)
    _, at = _text(payload, at)
    at = document_end(payload, at)  # metadata
    body, counted = decode_without(payload[at : document_end(payload, at)], b"documents")
    return database, body, counted


def _insert(payload: bytes) -> Legacy:
    name, at = _text(payload, 4)
    database, _, collection = name.partition(".")
    return database, {"insert": collection}, count_documents(payload, at, len(payload))


def _update(payload: bytes) -> Legacy:
    name, at = _text(payload, 4)
    flags = _INT32.unpack_from(payload, at)[0]
    middle = document_end(payload, at + 4)
    database, _, collection = name.partition(".")
    update = {
        "q": decode(payload, at + 4, middle),
        "u": decode(payload, middle, document_end(payload, middle)),
        "upsert": bool(flags & _UPSERT),
        "multi": bool(flags & _MULTI),
    }
    return database, {"update": collection, "updates": [update]}, 0


def _delete(payload: bytes) -> Legacy:
    name, at = _text(payload, 4)
    flags = _INT32.unpack_from(payload, at)[0]
    database, _, collection = name.partition(".")
    delete = {"q": decode(payload, at + 4, document_end(payload, at + 4)), "limit": flags & _ONLY_FIRST}
    return database, {"delete": collection, "deletes": [delete]}, 0


def _text(payload: bytes, at: int) -> tuple[str, int]:
    """A name that ends in a zero, and where what follows it begins."""
    end = payload.find(b"\0", at)
    if end < 0:
        raise Unreadable("a name has no end")
    return payload[at:end].decode("utf-8", "replace"), end + 1
