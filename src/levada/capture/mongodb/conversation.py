"""Queries of one client, from the bytes it sends, live or from a capture file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from levada.capture.mongodb.bson import Unreadable
from levada.capture.mongodb.commands import command_name, is_query, queries_of
from levada.capture.mongodb.messages import Frames, Silent, read_message
from levada.capture.pcap import PacketCounts, StreamPiece, TcpStreams, read_packets, read_segment
from levada.sharding.queries import QueryEntry

FAULT = "an internal error of Levada"
_TLS_HANDSHAKE = b"\x16\x03"
_MOST_REASONS = 100


class CaptureCounts(msgspec.Struct):
    """Totals over all conversations."""

    messages: int = 0
    queries: int = 0
    silent: int = 0  # messages without a query: hello, authentication, the next batch, administration
    unreadable: dict[str, int] = {}  # messages, by what was wrong with them
    encrypted: int = 0  # connections with TLS: not decoded
    gaps: int = 0  # places where bytes were missing or meaningless
    passed_over: int = 0  # bytes that belonged to no message

    def misread(self, why: str) -> None:
        known = why if why in self.unreadable or len(self.unreadable) < _MOST_REASONS else "other"
        self.unreadable[known] = self.unreadable.get(known, 0) + 1


class Conversation:
    """What the client of one connection sends. It never raises, whatever the bytes."""

    def __init__(self, counts: CaptureCounts) -> None:
        self._counts = counts
        self._frames = Frames()
        self._first = b""
        self._encrypted = False

    @property
    def held(self) -> int:
        return self._frames.held

    def feed(self, data: bytes, at: float | None, source: str) -> Iterator[QueryEntry]:
        """The queries that are complete now; to be consumed before the next call."""
        if self._encrypted or self._is_tls(data):
            return
        for message in self._frames.feed(data):
            self._counts.messages += 1
            yield from self._read(message, at, source)

    def lose(self) -> None:
        """Note that bytes are missing from here on."""
        self._first = self._first or b"?"
        self._frames.lose()

    def close(self) -> None:
        self._frames.close()
        self._counts.gaps += self._frames.gaps
        self._counts.passed_over += self._frames.passed_over

    def _is_tls(self, data: bytes) -> bool:
        """A TLS client begins with a handshake record, which would not be a valid length for MongoDB."""
        if len(self._first) < len(_TLS_HANDSHAKE):
            self._first += data[: len(_TLS_HANDSHAKE)]
            if self._first.startswith(_TLS_HANDSHAKE):
                self._encrypted = True
                self._counts.encrypted += 1
        return self._encrypted

    def _read(self, message: bytes, at: float | None, source: str) -> Iterator[QueryEntry]:
        try:
            command = read_message(message)
            if not is_query(command_name(command)):
                raise Silent
            for query in queries_of(command):
                self._counts.queries += 1
                yield msgspec.structs.replace(query, at=at, source=source)
        except Silent:
            self._counts.silent += 1
        except Unreadable as error:
            self._counts.misread(str(error))
        except MemoryError:
            self._counts.misread("there was not enough memory")
        except Exception as error:  # one message that we cannot handle must not cost all that follow
            self._counts.misread(f"{FAULT}: {type(error).__name__}")


class Conversations:
    """All connections, by number; holds at most `memory` bytes of incomplete messages."""

    def __init__(self, counts: CaptureCounts, source: str, memory: int = 128 << 20) -> None:
        self._source = source
        self._memory = memory
        self._held = 0
        self._by_number = defaultdict[int, Conversation](lambda: Conversation(counts))

    def feed(self, number: int, data: bytes, at: float) -> Iterator[QueryEntry]:
        conversation = self._by_number[number]
        before = conversation.held
        yield from conversation.feed(data, at, self._source)
        self._held += conversation.held - before
        while self._held > self._memory:
            self._lose(max(self._by_number.values(), key=lambda each: each.held))

    def lose(self, number: int) -> None:
        self._lose(self._by_number[number])

    def close(self, number: int) -> None:
        conversation = self._by_number.pop(number, None)
        if conversation is not None:
            self._held -= conversation.held
            conversation.close()

    def close_all(self) -> None:
        for number in list(self._by_number):
            self.close(number)

    def _lose(self, conversation: Conversation) -> None:
        self._held -= conversation.held
        conversation.lose()


class CaptureReading(msgspec.Struct):
    """What a capture file holds; complete when reading has ended."""

    heard: CaptureCounts
    packets: int = 0
    segments: int = 0  # sent to the port
    missing: int = 0  # places where segments were missing
    damaged: str = ""  # why the file could not be read to its end


def queries_in_pcap(file: BinaryIO, port: int, reading: CaptureReading) -> Iterator[QueryEntry]:
    """The queries that clients sent to this port, in the order in which they became complete."""
    streams = TcpStreams(port)
    clients = Conversations(reading.heard, "pcap")
    for piece in _pieces(file, streams, reading):
        if piece.gap:
            clients.lose(piece.stream)
        if piece.data:
            yield from clients.feed(piece.stream, piece.data, piece.at)
        if piece.end:
            clients.close(piece.stream)
    reading.segments, reading.missing = streams.segments, streams.gaps


def _pieces(file: BinaryIO, streams: TcpStreams, counts: PacketCounts) -> Iterator[StreamPiece]:
    for packet in read_packets(file, counts):
        segment = read_segment(packet.link, packet.data)
        if segment is not None:
            yield from streams.take(segment, packet.at)
    yield from streams.close()
