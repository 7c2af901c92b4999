"""Packets in pcap and pcapng files.

In pcapng, section headers give the byte order, interface descriptions the link type and the unit of time, and
enhanced and simple packet blocks hold packets; all other blocks are skipped. A file that ends in the middle of a
packet is read up to there, and reported. Sources: pcap (draft-ietf-opsawg-pcap) and pcapng
(draft-ietf-opsawg-pcapng).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

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
