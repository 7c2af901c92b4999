"""MongoDB's wire protocol: frames, compression, legacy opcodes, commands.

A message begins with four little-endian int32: its length, its number, the number it answers, and its opcode. A
stream may begin in the middle (a capture that started late, a lost segment): then bytes are skipped, and counted,
until something looks like a request.

Drivers have sent OP_MSG since 3.6. OP_QUERY, OP_COMMAND and the three legacy writes came before; they are read for
old applications and old captures, each as the command that means the same today. Sizes are untrusted: nothing is
unpacked beyond what the message says, nor beyond the largest message. Source: the MongoDB wire protocol, with its
legacy opcodes.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from io import BytesIO
from typing import Any

import msgspec

from levada.capture.mongodb.bson import (
    INSERTED,
    Unreadable,
    count_documents,
    decode,
    decode_all,
    decode_command,
    document_end,
)
from levada.core.errors import MissingExtra

HEADER = struct.Struct("<iiii")
LARGEST_MESSAGE = 48_000_000  # the server's own maxMessageSizeBytes
_SMALLEST_MESSAGE = HEADER.size + 5
_CHECKED_BYTES = HEADER.size + 5  # bytes that are checked before a position is taken for a request


class Opcode(IntEnum):
    UPDATE = 2001
    INSERT = 2002
    QUERY = 2004
    GET_MORE = 2005
    DELETE = 2006
    KILL_CURSORS = 2007
    COMMAND = 2010
    COMPRESSED = 2012
    MSG = 2013


_KNOWN = frozenset(Opcode)
# A request answers nothing, so four zeroes come before its opcode.
_REQUEST = re.compile(rb"\0{4}[\xd1\xd2\xd4-\xd7\xda\xdc\xdd]\x07\0\0")


class Frames:
    """The messages of one direction of one connection, from its bytes in order.

    `held` is the size of what it keeps, at most one message and a chunk. `passed_over` counts bytes that belonged
    to no message, `gaps` how often some were missing or meaningless.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._searching = False
        self.passed_over = 0
        self.gaps = 0

    @property
    def held(self) -> int:
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Every message that is complete now; to be consumed before the next call."""
        self._held += data
        at = 0
        while (begin := self._begin(at)) is not None:
            at = begin
            end = begin + HEADER.unpack_from(self._held, begin)[0]
            if end > len(self._held):
                break
            yield bytes(memoryview(self._held)[begin:end])
            at = end
        else:
            at = self._passed
        del self._held[:at]

    def lose(self) -> None:
        """Note that bytes are missing here: what is held will never be complete."""
        self.gaps += 1
        self.close()
        self._searching = True

    def close(self) -> None:
        """Note that no more bytes will come."""
        self.passed_over += len(self._held)
        self._held.clear()

    def _begin(self, at: int) -> int | None:
        """Where the next message begins; None if that is not known yet. Bytes before `_passed` are done."""
        self._passed = at
        if len(self._held) - at < HEADER.size:
            return None
        if not self._searching and not self._plausible(at):
            self.gaps += 1
            self._searching = True
        if not self._searching:
            return at
        found = self._search(at)
        self._passed = max(at, len(self._held) - _CHECKED_BYTES + 1) if found is None else found
        self.passed_over += self._passed - at
        self._searching = found is None
        return found

    def _search(self, at: int) -> int | None:
        for match in _REQUEST.finditer(self._held, at + 8):
            begin = match.start() - 8
            if begin + _CHECKED_BYTES > len(self._held):
                return None
            if self._looks_like_request(begin):
                return begin
        return None

    def _plausible(self, at: int) -> bool:
        length, _, _, opcode = HEADER.unpack_from(self._held, at)
        return _SMALLEST_MESSAGE <= length <= LARGEST_MESSAGE and opcode in _KNOWN

    def _looks_like_request(self, at: int) -> bool:
        """Stricter than plausible: in the middle of a document anything may look like a length."""
        if not self._plausible(at):
            return False
        opcode = HEADER.unpack_from(self._held, at)[3]
        inside = struct.unpack_from("<i", self._held, at + HEADER.size)[0]
        if opcode == Opcode.COMPRESSED:
            return inside in _KNOWN
        if opcode == Opcode.MSG:
            return inside & ~0x10003 == 0 and self._held[at + HEADER.size + 4] in (0, 1)
        return True


class Compressor(IntEnum):
    NOOP = 0
    SNAPPY = 1
    ZLIB = 2
    ZSTD = 3


def unpack(compressor: int, packed: bytes, claimed: int, largest: int) -> bytes:
    """The unpacked bytes, which must be exactly as many as claimed."""
    if not 0 <= claimed <= largest:
        raise Unreadable(f"claims {claimed} bytes")
    try:
        data = _UNPACK[Compressor(compressor)](packed, claimed)
    except MissingExtra:
        raise
    # each library raises its own errors; every one of them means that the bytes are wrong
    except Exception as error:
        raise Unreadable(f"does not unpack: {type(error).__name__}") from error
    if len(data) != claimed:
        raise Unreadable(f"claims {claimed} bytes and has another size")
    return data


def _noop(packed: bytes, claimed: int) -> bytes:
    return packed


def _snappy(packed: bytes, claimed: int) -> bytes:
    if _snappy_length(packed) != claimed:  # the format declares its unpacked size first
        raise ValueError("another size")
    try:
        import snappy
    except ImportError:
        raise MissingExtra("python-snappy", "mongodb") from None
    return bytes(snappy.uncompress(packed))


def _snappy_length(packed: bytes) -> int:
    length = 0
    for place, byte in enumerate(packed[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return length
    raise ValueError("no length")


def _zlib(packed: bytes, claimed: int) -> bytes:
    return zlib.decompressobj().decompress(packed, claimed + 1)  # one byte more than claimed shows a wrong size


def _zstd(packed: bytes, claimed: int) -> bytes:
    import zstandard

    window = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with window.stream_reader(BytesIO(packed)) as reader:
        return bytes(reader.read(claimed + 1))


_UNPACK = {Compressor.NOOP: _noop, Compressor.SNAPPY: _snappy, Compressor.ZLIB: _zlib, Compressor.ZSTD: _zstd}


_INT32 = struct.Struct("<i")
_UPSERT, _MULTI, _ONLY_FIRST = 1, 2, 1
_WRAPPED = ("$query", "query")


class Command(msgspec.Struct):
    """A command as the server would see it; `counted` documents to insert were not decoded."""

    body: dict[str, Any]
    database: str = ""
    counted: int = 0


def _query(payload: bytes) -> Command:
    database, collection, at = _namespace(payload)
    limit = _INT32.unpack_from(payload, at + 4)[0]
    at += 8
    end = document_end(payload, at)
    if collection == "$cmd":
        body, counted = decode_command(payload[at:end])
        return Command(_unwrapped(body), database, counted)
    query = decode(payload, at, end)
    command = {"find": collection, "filter": _unwrapped(query), "limit": abs(limit)}
    order = query.get("$orderby", query.get("orderby"))
    if _unwrapped(query) is not query and isinstance(order, dict):
        command["sort"] = order
    return Command(command, database)


def _unwrapped(query: dict[str, Any]) -> dict[str, Any]:
    """The query itself; it may be inside a document with the order, the hint or the read preference."""
    first = next(iter(query), "")
    inside = query.get(first)
    wrapped = first in _WRAPPED and (first[0] == "$" or "orderby" in query)
    return inside if wrapped and isinstance(inside, dict) else query


def _command(payload: bytes) -> Command:
    database, at = _text(payload, 0)
    _, at = _text(payload, at)
    at = document_end(payload, at)  # metadata
    body, counted = decode_command(payload[at : document_end(payload, at)])
    return Command(body, database, counted)


def _insert(payload: bytes) -> Command:
    database, collection, at = _namespace(payload)
    return Command({"insert": collection}, database, count_documents(payload, at, len(payload)))


def _update(payload: bytes) -> Command:
    database, collection, at = _namespace(payload)
    flags = _INT32.unpack_from(payload, at)[0]
    middle = document_end(payload, at + 4)
    update = {
        "q": decode(payload, at + 4, middle),
        "u": decode(payload, middle, document_end(payload, middle)),
        "upsert": bool(flags & _UPSERT),
        "multi": bool(flags & _MULTI),
    }
    return Command({"update": collection, "updates": [update]}, database)


def _delete(payload: bytes) -> Command:
    database, collection, at = _namespace(payload)
    flags = _INT32.unpack_from(payload, at)[0]
    delete = {"q": decode(payload, at + 4, document_end(payload, at + 4)), "limit": flags & _ONLY_FIRST}
    return Command({"delete": collection, "deletes": [delete]}, database)


def _namespace(payload: bytes) -> tuple[str, str, int]:
    """Database and collection after the flags, and where the next field begins."""
    name, at = _text(payload, 4)
    database, _, collection = name.partition(".")
    return database, collection, at


def _text(payload: bytes, at: int) -> tuple[str, int]:
    """A zero-terminated name, and where the next field begins."""
    end = payload.find(b"\0", at)
    if end < 0:
        raise Unreadable("a name does not end")
    return payload[at:end].decode("utf-8", "replace"), end + 1


_CHECKSUM = 1
_REQUIRED = 0xFFFF  # bits that a reader must know; only two of these exist
_COMPRESSED = struct.Struct("<iiB")


class Silent(Exception):
    """A message without a query: the next batch, the end of a cursor."""


def read_message(message: bytes) -> Command:
    """The command in a complete message; `Unreadable` or `Silent` if there is none."""
    if len(message) < HEADER.size:
        raise Unreadable("a message is cut short")
    length, _, _, opcode = HEADER.unpack_from(message)
    if length != len(message):
        raise Unreadable("the length of a message is wrong")
    payload = message[HEADER.size :]
    if opcode == Opcode.COMPRESSED:
        opcode, payload = _unpacked(payload)
    if opcode in (Opcode.GET_MORE, Opcode.KILL_CURSORS):
        raise Silent
    if opcode not in _READERS:
        raise Unreadable(f"unknown opcode {opcode}")
    try:
        return _READERS[opcode](payload)
    except struct.error:
        raise Unreadable("a message is cut short") from None


def _unpacked(payload: bytes) -> tuple[int, bytes]:
    if len(payload) < _COMPRESSED.size:
        raise Unreadable("a compressed message is cut short")
    opcode, claimed, compressor = _COMPRESSED.unpack_from(payload)
    if opcode == Opcode.COMPRESSED:
        raise Unreadable("a compressed message is in a compressed message")
    return opcode, unpack(compressor, payload[_COMPRESSED.size :], claimed, LARGEST_MESSAGE)


def _msg(payload: bytes) -> Command:
    """Sections: one body (kind 0), and sequences of documents (kind 1) that stand for arrays of it."""
    if len(payload) < 5:
        raise Unreadable("a message is cut short")
    flags = int.from_bytes(payload[:4], "little")
    if flags & _REQUIRED & ~3:
        raise Unreadable("a message has unknown flags")
    at, end = 4, len(payload) - (4 if flags & _CHECKSUM else 0)
    command = Command({})
    arrays: dict[str, Any] = {}
    while at < end:
        kind, at = payload[at], at + 1
        if kind == 0:
            stop = document_end(payload, at, end)
            command.body, counted = decode_command(payload[at:stop])
            command.counted += counted
            at = stop
        elif kind == 1:
            at = _read_sequence(payload, at, end, command, arrays)
        else:
            raise Unreadable(f"unknown section kind {kind}")
    if not command.body:
        raise Unreadable("a message has no body")
    command.body.update(arrays)
    return command


def _read_sequence(payload: bytes, at: int, end: int, command: Command, arrays: dict[str, Any]) -> int:
    if at + 4 > end:
        raise Unreadable("a section is cut short")
    stop = at + int.from_bytes(payload[at : at + 4], "little", signed=True)
    name_end = payload.find(b"\0", at + 4, end)
    if not at + 4 < name_end + 1 <= stop <= end:
        raise Unreadable("the length of a section is wrong")
    name = payload[at + 4 : name_end]
    if name == INSERTED:
        command.counted += count_documents(payload, name_end + 1, stop)
    else:
        arrays[name.decode("utf-8", "replace")] = decode_all(payload, name_end + 1, stop)
    return stop


_READERS: dict[int, Callable[[bytes], Command]] = {
    Opcode.MSG: _msg,
    Opcode.QUERY: _query,
    Opcode.COMMAND: _command,
    Opcode.INSERT: _insert,
    Opcode.UPDATE: _update,
    Opcode.DELETE: _delete,
}
