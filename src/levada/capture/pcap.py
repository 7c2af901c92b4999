"""Capture files of tshark, dumpcap and tcpdump: packets, TCP segments, and the byte streams they make.

Written by hand: these are fixed layouts of a few hundred lines, and all of it reads untrusted bytes. scapy is a
workbench much larger than the need; dpkt has no reassembly, which is the hard part.

In pcapng, section headers give the byte order, interface descriptions the link type and the unit of time, and
enhanced and simple packet blocks hold packets; all other blocks are skipped. A file that ends in the middle of a
packet is read up to there, and reported. Sources: pcap (draft-ietf-opsawg-pcap) and pcapng
(draft-ietf-opsawg-pcapng).

Packets are read from Ethernet (with VLAN tags), Linux cooked 1 and 2, loopback and raw IP; IPv4 and IPv6. Fragments
of IP packets are skipped: a TCP with path discovery sends none.

Segments may come twice, overlap, come in another order, or be missing. A segment that is ahead waits until the
missing ones come, or until too much waits: then there is a gap. Of bytes that come twice the first are taken.
Memory is bounded, per stream and in all.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

from levada.core.errors import UsageError

_SECTION, _INTERFACE, _OBSOLETE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_LARGEST_BLOCK = 1 << 24
_MOST_INTERFACES = 10_000
_TIME_UNIT = 9  # if_tsresol
_END_OF_OPTIONS = 0


_LARGEST_PACKET = 1 << 20
_CLASSIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"


class Packet(NamedTuple):
    at: float
    link: int  # the link type of its interface
    data: bytes
    cut: bool  # the capture kept only its beginning


class PacketCounts(Protocol):
    packets: int
    damaged: str  # why the file could not be read to its end


class _Cut(Exception):
    """The file is not what it claims; the text says how."""


def read_packets(file: BinaryIO, counts: PacketCounts) -> Iterator[Packet]:
    """Packets in the order of the file; `UsageError` if it is not a capture file."""
    magic = file.read(4)
    if magic in _CLASSIC:
        packets = _read_classic(file, *_CLASSIC[magic])
    elif magic == _PCAPNG:
        packets = _read_blocks(file)
    else:
        raise UsageError("this is not a capture file: neither pcap nor pcapng")
    try:
        for packet in packets:
            counts.packets += 1
            yield packet
    except (_Cut, struct.error) as error:
        counts.damaged = str(error) if isinstance(error, _Cut) else "a block is shorter than it says"


def _read_blocks(file: BinaryIO) -> Iterator[Packet]:
    """Packets of pcapng; the file's first four bytes are read already."""
    order = _read_section(file)
    interfaces: list[tuple[int, float]] = []
    while kind_bytes := file.read(4):
        kind = struct.unpack(f"{order}I", kind_bytes)[0] if len(kind_bytes) == 4 else 0
        if kind == _SECTION:
            order, interfaces = _read_section(file), []
            continue
        body = _read_body(file, order)
        if kind == _INTERFACE and len(interfaces) < _MOST_INTERFACES:
            interfaces.append(_read_interface(body, order))
        elif kind in (_ENHANCED, _SIMPLE, _OBSOLETE):
            yield _read_packet(kind, body, order, interfaces)


def _read_section(file: BinaryIO) -> str:
    """The byte order of what follows. The block type, the same in both orders, is read already."""
    head = file.read(8)
    order = _ORDERS.get(head[4:8])
    if order is None:
        raise _Cut("a section does not say its byte order")
    length = struct.unpack(f"{order}I", head[:4])[0]
    if not 28 <= length <= _LARGEST_BLOCK:
        raise _Cut(f"a block claims {length} bytes")
    file.read(length - 12)
    return order


def _read_body(file: BinaryIO, order: str) -> bytes:
    length_bytes = file.read(4)
    if len(length_bytes) < 4:
        raise _Cut("the file ends in the middle of a block")
    length = struct.unpack(f"{order}I", length_bytes)[0]
    if not 12 <= length <= _LARGEST_BLOCK:
        raise _Cut(f"a block claims {length} bytes")
    body = file.read(length - 8)  # the rest of the block, with the length once more at its end
    if len(body) < length - 8:
        raise _Cut("the file ends in the middle of a block")
    return body[:-4]


def _read_interface(body: bytes, order: str) -> tuple[int, float]:
    """Link type, and seconds per unit of time."""
    link = struct.unpack_from(f"{order}H", body)[0]
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(f"{order}HH", body, at)
        if code == _END_OF_OPTIONS:
            break
        if code == _TIME_UNIT and length == 1 and at + 4 < len(body):
            power = body[at + 4]
            return link, 2.0 ** -(power & 0x7F) if power & 0x80 else 10.0**-power
        at += 4 + (length + 3) // 4 * 4
    return link, 1e-6


def _read_packet(kind: int, body: bytes, order: str, interfaces: list[tuple[int, float]]) -> Packet:
    if kind == _SIMPLE:
        number, at, original = 0, 0.0, struct.unpack_from(f"{order}I", body)[0]
        kept, begin = min(original, len(body) - 4), 4
    else:
        layout = f"{order}IIIII" if kind == _ENHANCED else f"{order}HxxIIII"
        number, high, low, kept, original = struct.unpack_from(layout, body)
        begin = 20
        at = float(high << 32 | low)
    if number >= len(interfaces):
        raise _Cut("a packet names an interface that the file does not describe")
    if kept > len(body) - begin:
        raise _Cut("a packet is longer than its block")
    link, unit = interfaces[number]
    return Packet(at * unit, link, body[begin : begin + kept], kept < original)


def _read_classic(file: BinaryIO, order: str, unit: float) -> Iterator[Packet]:
    head = file.read(20)
    if len(head) < 20:
        raise _Cut("the file ends in its header")
    link = struct.unpack(f"{order}HHiIII", head)[5] & 0x0FFFFFFF
    record = struct.Struct(f"{order}IIII")
    while header := file.read(record.size):
        if len(header) < record.size:
            raise _Cut("the file ends in the middle of a packet")
        seconds, fraction, kept, original = record.unpack(header)
        if kept > _LARGEST_PACKET:
            raise _Cut(f"a packet claims {kept} bytes")
        data = file.read(kept)
        if len(data) < kept:
            raise _Cut("the file ends in the middle of a packet")
        yield Packet(seconds + fraction * unit, link, data, kept < original)


FIN, SYN, RST = 0x01, 0x02, 0x04
_NULL, _ETHERNET, _RAW_BSD, _RAW, _LOOP, _SLL, _IPV4, _IPV6, _SLL2 = 0, 1, 12, 101, 108, 113, 228, 229, 276
_LINKS: dict[int, tuple[int | None, int]] = {
    _ETHERNET: (12, 14),
    _SLL: (14, 16),
    _SLL2: (0, 20),
    **dict.fromkeys((_NULL, _LOOP), (None, 4)),
    **dict.fromkeys((_RAW, _RAW_BSD, _IPV4, _IPV6), (None, 0)),
}  # where the type of the packet and its IP header are
_VLAN = (0x8100, 0x88A8, 0x9100)
_TYPE_IPV4, _TYPE_IPV6 = 0x0800, 0x86DD
_TCP = 6
_EXTENSIONS = frozenset({0, 43, 60, 135, 139, 140})
_AUTHENTICATION = 51


class Segment(NamedTuple):
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    sequence: int
    flags: int
    data: bytes
    missing: int  # bytes of it that the capture did not keep


def read_segment(link: int, packet: bytes) -> Segment | None:
    """The segment in a packet; None if it is something else, or cut before its data begins."""
    type_at, at = _LINKS.get(link, (None, len(packet)))
    try:
        if type_at is not None:
            kind = struct.unpack_from(">H", packet, type_at)[0]
            while kind in _VLAN and link == _ETHERNET:
                kind, at = struct.unpack_from(">H", packet, at + 2)[0], at + 4
            if kind not in (_TYPE_IPV4, _TYPE_IPV6):
                return None
        version = packet[at] >> 4
        if version == 4:
            return _of_ipv4(packet, at)
        return _of_ipv6(packet, at) if version == 6 else None
    except (struct.error, IndexError):
        return None


def _of_ipv4(packet: bytes, at: int) -> Segment | None:
    size = (packet[at] & 0x0F) * 4
    total, fragment = struct.unpack_from(">H2xH", packet, at + 2)
    if size < 20 or packet[at + 9] != _TCP or fragment & 0x3FFF:
        return None
    end = at + total if total else len(packet)  # 0: the network card segmented it after the capture
    return _of_tcp(packet, at + size, end, packet[at + 12 : at + 16], packet[at + 16 : at + 20])


def _of_ipv6(packet: bytes, at: int) -> Segment | None:
    length, following = struct.unpack_from(">HB", packet, at + 4)
    place = at + 40
    end = place + length if length else len(packet)
    while following in _EXTENSIONS or following == _AUTHENTICATION:
        size = (packet[place + 1] + 2) * 4 if following == _AUTHENTICATION else (packet[place + 1] + 1) * 8
        following, place = packet[place], place + size
    if following != _TCP:
        return None
    return _of_tcp(packet, place, end, packet[at + 8 : at + 24], packet[at + 24 : at + 40])


def _of_tcp(packet: bytes, at: int, end: int, source: bytes, target: bytes) -> Segment | None:
    source_port, target_port, sequence, _, offset, flags = struct.unpack_from(">HHIIBB", packet, at)
    begin = at + (offset >> 4) * 4
    if begin < at + 20 or end < begin:
        return None
    data = packet[begin:end]
    return Segment((source, source_port), (target, target_port), sequence, flags, data, end - begin - len(data))


_HALF = 1 << 31
_WHOLE = 1 << 32
_MOST_WAITING = 4_096  # segments of one stream
_MOST_WAITING_BYTES = 8 << 20
_MOST_BYTES = 128 << 20  # of all streams together
_MOST_STREAMS = 20_000
Way: TypeAlias = tuple[tuple[bytes, int], tuple[bytes, int]]


class StreamPiece(NamedTuple):
    """Bytes of one stream, a mark that some are missing before the next (`gap`), or its end."""

    stream: int
    at: float
    data: bytes = b""
    gap: bool = False
    end: bool = False


class _Stream:
    """One direction of one connection."""

    def __init__(self, number: int, first: int | None = None) -> None:
        self.number = number
        self.first = first  # the sequence number of its first byte, if its beginning was captured
        self.next = first  # the sequence number that continues it
        self.waiting: dict[int, tuple[bytes, float]] = {}
        self.waiting_bytes = 0
        self.end_at: int | None = None  # the sequence number of its FIN
        self.ended = False

    def put(self, sequence: int, data: bytes, at: float) -> None:
        """Keep a segment for later; of two with the same beginning the longer one."""
        held = self.waiting.get(sequence)
        if held is None or len(held[0]) < len(data):
            self.waiting_bytes += len(data) - (len(held[0]) if held else 0)
            self.waiting[sequence] = (data, at)

    def in_order(self) -> Iterator[tuple[bytes, float]]:
        """The waiting segments that continue the stream."""
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
        """Give up what is missing, and go on with the nearest segment."""
        self.next = min(self.waiting, key=self._ahead)

    def is_over_full(self) -> bool:
        return len(self.waiting) > _MOST_WAITING or self.waiting_bytes > _MOST_WAITING_BYTES

    def _ahead(self, sequence: int) -> int:
        """How far a sequence number is ahead; numbers wrap at 2^32."""
        assert self.next is not None
        return (sequence - self.next + _HALF) % _WHOLE - _HALF


class TcpStreams:
    """All streams to one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: OrderedDict[Way, _Stream] = OrderedDict()
        self._begun = 0
        self._waiting_bytes = 0
        self.segments = 0
        self.gaps = 0

    def take(self, segment: Segment, at: float) -> Iterator[StreamPiece]:
        """The pieces that are in order now."""
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
        if first is None and not stream.ended:  # a retransmission after the end
            before = stream.waiting_bytes
            yield from self._add(stream, segment, at)
            self._waiting_bytes += stream.waiting_bytes - before
            if segment.flags & RST or (stream.end_at is not None and stream.next == stream.end_at):
                yield from self._end(stream)

    def close(self) -> Iterator[StreamPiece]:
        """Note that no more segments will come."""
        for stream in self._streams.values():
            yield from self._end(stream)

    def _make_room(self, way: Way) -> Iterator[StreamPiece]:
        """For a new connection: end the previous one between the same addresses, and the oldest if there are too
        many."""
        old = self._streams.pop(way, None)
        if old is None and len(self._streams) >= _MOST_STREAMS:
            _, old = self._streams.popitem(last=False)
        if old is not None:
            yield from self._end(old)

    def _add(self, stream: _Stream, segment: Segment, at: float) -> Iterator[StreamPiece]:
        if stream.next is None:
            if not segment.data:
                return
            stream.next = segment.sequence  # the capture began later than the connection
            yield StreamPiece(stream.number, at, gap=True)
        if segment.flags & FIN:
            stream.end_at = (segment.sequence + len(segment.data) + segment.missing) % _WHOLE
        if segment.data:
            stream.put(segment.sequence, segment.data, at)
        yield from self._ready(stream)
        while stream.is_over_full() or (stream.waiting and self._waiting_bytes > _MOST_BYTES):
            yield from self._skip_gap(stream)

    def _ready(self, stream: _Stream) -> Iterator[StreamPiece]:
        for data, at in stream.in_order():
            yield StreamPiece(stream.number, at, data)

    def _skip_gap(self, stream: _Stream) -> Iterator[StreamPiece]:
        self.gaps += 1
        stream.skip()
        yield StreamPiece(stream.number, 0.0, gap=True)
        yield from self._ready(stream)

    def _end(self, stream: _Stream) -> Iterator[StreamPiece]:
        if stream.ended:
            return
        stream.ended = True
        self._waiting_bytes -= stream.waiting_bytes
        while stream.waiting:
            yield from self._skip_gap(stream)
        yield StreamPiece(stream.number, 0.0, end=True)
