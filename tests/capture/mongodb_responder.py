"""A server that speaks MongoDB's wire protocol from a script instead of data: enough for pymongo.

It answers hello (also in an OP_QUERY), negotiates compression, and answers every command by its name. `Recorder` is
a forwarder that keeps what went both ways.
"""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import bson
import snappy
import zstandard

__all__ = ["Recorder", "Responder", "compressed", "message", "msg"]

_HEADER = struct.Struct("<iiii")
_NAMES = {1: "snappy", 2: "zlib", 3: "zstd"}
_PACK: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: snappy.compress,
    2: zlib.compress,
    3: zstandard.ZstdCompressor().compress,
}
_UNPACK: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: snappy.uncompress,
    2: zlib.decompress,
    3: lambda data: zstandard.ZstdDecompressor().decompress(data, max_output_size=48_000_000),
}


def message(opcode: int, payload: bytes, number: int = 1, answers: int = 0) -> bytes:
    return _HEADER.pack(_HEADER.size + len(payload), number, answers, opcode) + payload


def msg(body: dict[str, Any], flags: int = 0, **sequences: list[dict[str, Any]]) -> bytes:
    """An OP_MSG; `sequences` become sections of kind 1."""
    payload = struct.pack("<I", flags) + b"\0" + bson.encode(body)
    for name, documents in sequences.items():
        inside = name.encode() + b"\0" + b"".join(map(bson.encode, documents))
        payload += b"\1" + struct.pack("<i", len(inside) + 4) + inside
    return message(2013, payload + (b"\0\0\0\0" if flags & 1 else b""))


def compressed(whole: bytes, compressor: int) -> bytes:
    _, number, answers, opcode = _HEADER.unpack_from(whole)
    inside = whole[_HEADER.size :]
    head = struct.pack("<iiB", opcode, len(inside), compressor)
    return message(2012, head + _PACK[compressor](inside), number, answers)


class _Threads:
    """A listening socket and a thread for each connection; all are ended at the end."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = [self._listening]
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(client)
                self._start(self.serve, client)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    @classmethod
    @contextmanager
    def running(cls, *arguments: Any) -> Iterator[Any]:
        running = cls(*arguments)
        try:
            yield running
        finally:
            running.close()


class Responder(_Threads):
    """`commands` are the names met, hello left out; `received` and `sent` have every connection's bytes."""

    def __init__(self, compressors: tuple[str, ...] = ()) -> None:
        self.compressors = compressors
        self.commands: list[str] = []
        self.received: list[bytearray] = []
        self.sent: list[bytearray] = []
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        received, sent = bytearray(), bytearray()
        self.received.append(received)
        self.sent.append(sent)
        with suppress(OSError), client.makefile("rb") as said:
            while len(head := said.read(_HEADER.size)) == _HEADER.size:
                length, number, _, opcode = _HEADER.unpack(head)
                payload = said.read(length - _HEADER.size)
                received += head + payload
                reply = self._reply(opcode, number, payload)
                sent += reply
                client.sendall(reply)

    def _reply(self, opcode: int, number: int, payload: bytes) -> bytes:
        packed = 0
        if opcode == 2012:
            opcode, _, packed = struct.unpack_from("<iiB", payload)
            payload = _UNPACK[packed](payload[9:])
        if opcode == 2004:
            answer = bson.encode(self._answer(bson.decode(payload[payload.index(b"\0", 4) + 9 :])))
            return message(1, struct.pack("<iqii", 8, 0, 0, 1) + answer, number, number)
        length = struct.unpack_from("<i", payload, 5)[0]
        body = bson.decode(payload[5 : 5 + length])
        answer = struct.pack("<I", 0) + b"\0" + bson.encode(self._answer(body))
        whole = message(2013, answer, number, number)
        return compressed(whole, packed) if packed else whole

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(body))
        if name.lower() in ("hello", "ismaster"):
            return self._hello(body)
        self.commands.append(name)
        space = f"{body.get('$db')}.{body.get(name) if name != 'getMore' else body.get('collection')}"
        if name == "find":
            more = 77 if body.get("batchSize") == 1 else 0
            return {
                "cursor": {"id": bson.Int64(more), "ns": space, "firstBatch": [{"_id": 1, "a": "x" * 50}]},
                "ok": 1.0,
            }
        if name == "aggregate":
            return {"cursor": {"id": bson.Int64(0), "ns": space, "firstBatch": [{"_id": 1, "n": 1}]}, "ok": 1.0}
        if name == "getMore":
            return {"cursor": {"id": bson.Int64(0), "ns": space, "nextBatch": [{"_id": 2}]}, "ok": 1.0}
        if name == "distinct":
            return {"values": [1, 2], "ok": 1.0}
        if name == "findAndModify":
            return {"value": {"_id": 1}, "lastErrorObject": {"n": 1, "updatedExisting": True}, "ok": 1.0}
        return {"n": 1, "nModified": 1, "ok": 1.0}

    def _hello(self, body: dict[str, Any]) -> dict[str, Any]:
        wanted = [name for name in body.get("compression", []) if name in self.compressors]
        return {
            "ismaster": True, "isWritablePrimary": True, "helloOk": True, "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "minWireVersion": 0,
            "maxWireVersion": 21,
            "logicalSessionTimeoutMinutes": 30, "connectionId": 1, "readOnly": False, "ok": 1.0,
            **({"compression": wanted} if wanted else {}),
        }  # fmt: skip


class Recorder(_Threads):
    """Passes everything on to `port`; `said` and `heard` have, per connection, the bytes of both directions."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.said: list[bytearray] = []
        self.heard: list[bytearray] = []
        super().__init__()

    def serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._port))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.append(server)
        said, heard = bytearray(), bytearray()
        self.said.append(said)
        self.heard.append(heard)
        self._start(_forward, server, client, heard)
        _forward(client, server, said)


def _forward(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            kept += data
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
