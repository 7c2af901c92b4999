"""Which command does a message carry?

Source: the MongoDB wire protocol. OP_MSG is what drivers have sent since 3.6; OP_QUERY, OP_COMMAND and the three
legacy writes are what came before, and are read for old applications and old captures.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from levada.adapters.mongodb.compression import unpack
from levada.adapters.mongodb.documents import Documents, count_documents, decode_without
from levada.adapters.mongodb.elements import document_end
from levada.adapters.mongodb.frames import HEADER, LARGEST_MESSAGE, Opcode, Unreadable
from levada.adapters.mongodb.legacy import legacy_command

__all__ = ["Command", "Silent", "read_message"]

_CHECKSUM = 1
_REQUIRED = 0xFFFF  # bits that a reader must know; of these only two exist
_COMPRESSED = struct.Struct("<iiB")
_INSERTED = b"documents"  # the array of an insert; counted, not decoded


class Command(msgspec.Struct):
    """A command as the server would see it; `counted` documents to insert were not decoded."""

    body: dict[str, Any]
    database: str = ""
    counted: int = 0


class Silent(Exception):
    """A message that asks nothing: the next batch, the end of a cursor."""


def read_message(message: bytes, largest: int = LARGEST_MESSAGE) -> Command:
    """The command in a whole message; `Unreadable` or `Silent` where there is none."""
    if len(message) < HEADER.size:
        raise Unreadable("a message is cut short")
    length, _, _, opcode = HEADER.unpack_from(message)
    if length != len(message):
        raise Unreadable("the length of a message is a lie")
    payload = message[HEADER.size :]
    if opcode == Opcode.COMPRESSED:
        opcode, payload = _unpacked(payload, largest)
    return _read(opcode, payload)


def _unpacked(payload: bytes, largest: int) -> tuple[int, bytes]:
    if len(payload) < _COMPRESSED.size:
        raise Unreadable("a compressed message is cut short")
    opcode, claimed, compressor = _COMPRESSED.unpack_from(payload)
    if opcode == Opcode.COMPRESSED:
        raise Unreadable("a compressed message is in a compressed message")
    return opcode, unpack(compressor, payload[_COMPRESSED.size :], claimed, largest)


def _read(opcode: int, payload: bytes) -> Command:
    if opcode in (Opcode.GET_MORE, Opcode.KILL_CURSORS):
        raise Silent
    if opcode == Opcode.MSG:
        return _read_msg(payload)
    try:
        database, body, counted = legacy_command(opcode, payload)
    except struct.error:
        raise Unreadable("a message is cut short") from None
    return Command(body, database, counted)


def _read_msg(payload: bytes) -> Command:
    """Sections: one body (kind 0), and sequences of documents (kind 1) that stand for arrays of it."""
    if len(payload) < 5:
        raise Unreadable("a message is cut short")
    flags = int.from_bytes(payload[:4], "little")
    if flags & _REQUIRED & ~3:
        raise Unreadable("a message has flags that nobody knows")
    at, end = 4, len(payload) - (4 if flags & _CHECKSUM else 0)
    command = Command({})
    arrays: dict[str, Documents] = {}
    while at < end:
        kind, at = payload[at], at + 1
        if kind == 0:
            stop = document_end(payload, at, end)
            command.body, counted = decode_without(payload[at:stop], _INSERTED)
            command.counted += counted
            at = stop
        elif kind == 1:
            at = _read_sequence(payload, at, end, command, arrays)
        else:
            raise Unreadable(f"no section is of kind {kind}")
    if not command.body:
        raise Unreadable("a message has no body")
    command.body.update(arrays)
    return command


def _read_sequence(payload: bytes, at: int, end: int, command: Command, arrays: dict[str, Documents]) -> int:
    if at + 4 > end:
        raise Unreadable("a section is cut short")
    stop = at + int.from_bytes(payload[at : at + 4], "little", signed=True)
    name_end = payload.find(b"\0", at + 4, end)
    if not at + 4 < name_end + 1 <= stop <= end:
        raise Unreadable("the length of a section is a lie")
    name = payload[at + 4 : name_end]
    if name == _INSERTED:
        command.counted += count_documents(payload, name_end + 1, stop)
    else:
        arrays[name.decode("utf-8", "replace")] = Documents(payload, name_end + 1, stop)
    return stop
