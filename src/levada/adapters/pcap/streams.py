"""Which bytes did each side of a TCP connection send, in order, each once?

Segments may come twice, overlap, come in another order, or be missing. A segment that lies ahead waits until what
is missing comes, or until so much waits that it will not come any more: then there is a gap. Of bytes that come
twice the first are taken. Memory is bounded, per stream and for all of them together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from levada.adapters.pcap.segments import FIN, RST, SYN, Segment

__all__ = ["Piece", "Streams"]

_HALF = 1 << 31
_WHOLE = 1 << 32
_MOST_WAITING = 4_096  # segments of one stream
_MOST_WAITING_BYTES = 8 << 20
_MOST_BYTES = 128 << 20  # of all streams together
_MOST_STREAMS = 20_000

Way: TypeAlias = tuple[tuple[bytes, int], tuple[bytes, int]]


class Piece(NamedTuple):
    """Bytes of one stream, or that some are missing before the next (`gap`), or its end."""

    stream: int
    at: float
    data: bytes = b""
    gap: bool = False
    end: bool = False


class _Stream:
    """One direction of one connection."""

    def __init__(self, number: int, first: int | None = None) -> None:
        self.number = number
        self.first = first  # the sequence number of its first byte, if its beginning was seen
        self.next = first  # the one that continues it
        self.waiting: dict[int, tuple[bytes, float]] = {}
        self.waiting_bytes = 0
        self.end_at: int | None = None  # where its FIN stands
        self.ended = False

    def put(self, sequence: int, data: bytes, at: float) -> None:
        """A segment for later; of two that begin alike the longer one."""
        held = self.waiting.get(sequence)
        if held is None or len(held[0]) < len(data):
            self.waiting_bytes += len(data) - (len(held[0]) if held else 0)
            self.waiting[sequence] = (data, at)

    def in_order(self) -> Iterator[tuple[bytes, float]]:
        """What continues the stream, from what waits."""
        while self.waiting and self.next is not None:
            sequence = min(self.waiting, key=self._ahead)
            if self._ahead(sequence) > 0:
                return
            data, at = self.waiting.pop(sequence)
            self.waiting_bytes -= len(data)
            fresh = data[-self._ahead(sequence) :]
            if fresh:
                self.next = (self.next + len(fresh)) % _WHOLE
                yield fresh, at

    def skip(self) -> None:
        """What is missing will not come: go on with what is nearest."""
        self.next = min(self.waiting, key=self._ahead)

    def is_over_full(self) -> bool:
        return len(self.waiting) > _MOST_WAITING or self.waiting_bytes > _MOST_WAITING_BYTES

    def _ahead(self, sequence: int) -> int:
        """How far a sequence number lies ahead; numbers begin again after 2^32."""
        assert self.next is not None
        return (sequence - self.next + _HALF) % _WHOLE - _HALF


class Streams:
    """All streams towards one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: OrderedDict[Way, _Stream] = OrderedDict()
        self._begun = 0
        self._waiting_bytes = 0
        self.segments = 0
        self.gaps = 0

    def take(self, segment: Segment, at: float) -> Iterator[Piece]:
        """What is known in order now."""
        if segment.target[1] != self._port:
            return
        self.segments += 1
        way = (segment.source, segment.target)
        first = (segment.sequence + 1) % _WHOLE if segment.flags & SYN else None
        stream = self._streams.get(way)
        if stream is None or (first is not None and stream.first != first):
            yield from self._make_room(way)
            self._begun += 1
            stream = self._streams[way] = _Stream(self._begun, first)
        self._streams.move_to_end(way)
        if first is None and not stream.ended:  # what comes after the end is said once more
            before = stream.waiting_bytes
            yield from self._add(stream, segment, at)
            self._waiting_bytes += stream.waiting_bytes - before
            if segment.flags & RST or (stream.end_at is not None and stream.next == stream.end_at):
                yield from self._end(stream)

    def close(self) -> Iterator[Piece]:
        """No more segments will come."""
        for stream in self._streams.values():
            yield from self._end(stream)

    def _make_room(self, way: Way) -> Iterator[Piece]:
        """For a connection that begins: the one before it on the same way has ended, and so has the oldest."""
        old = self._streams.pop(way, None)
        if old is None and len(self._streams) >= _MOST_STREAMS:
            _, old = self._streams.popitem(last=False)
        if old is not None:
            yield from self._end(old)

    def _add(self, stream: _Stream, segment: Segment, at: float) -> Iterator[Piece]:
        if stream.next is None:
            if not segment.data:
                return
            stream.next = segment.sequence  # the capture began later than the connection
            yield Piece(stream.number, at, gap=True)
        if segment.flags & FIN:
            stream.end_at = (segment.sequence + len(segment.data) + segment.missing) % _WHOLE
        if segment.data:
            stream.put(segment.sequence, segment.data, at)
        yield from self._flow(stream)
        while stream.is_over_full() or (stream.waiting and self._waiting_bytes > _MOST_BYTES):
            yield from self._leap(stream)

    def _flow(self, stream: _Stream) -> Iterator[Piece]:
        for data, at in stream.in_order():
            yield Piece(stream.number, at, data)

    def _leap(self, stream: _Stream) -> Iterator[Piece]:
        self.gaps += 1
        stream.skip()
        yield Piece(stream.number, 0.0, gap=True)
        yield from self._flow(stream)

    def _end(self, stream: _Stream) -> Iterator[Piece]:
        if stream.ended:
            return
        stream.ended = True
        self._waiting_bytes -= stream.waiting_bytes
        while stream.waiting:
            yield from self._leap(stream)
        yield Piece(stream.number, 0.0, end=True)
