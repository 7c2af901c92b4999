"""Which packets are in a capture file?

Sources: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng). A file that ends in the middle of a
packet is read up to there, and says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from levada.adapters.pcap.blocks import read_pcapng
from levada.errors import UsageError

__all__ = ["Packet", "PacketFile", "read_packets"]

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
    link: int  # the link type of the interface that it was met on
    data: bytes
    cut: bool  # the capture kept only its beginning


class PacketFile:
    """Counts what could not be read."""

    def __init__(self) -> None:
        self.packets = 0
        self.damaged = ""  # why the file could not be read to its end


def read_packets(file: BinaryIO, counts: PacketFile) -> Iterator[Packet]:
    """Packets in the order of the file; `UsageError` if it is no capture file at all."""
    magic = file.read(4)
    if magic in _CLASSIC:
        packets = _read_classic(file, counts, *_CLASSIC[magic])
    elif magic == _PCAPNG:
        packets = (Packet(*each) for each in read_pcapng(file, counts))
    else:
        raise UsageError("this is no capture file: neither pcap nor pcapng")
    for packet in packets:
        counts.packets += 1
        yield packet


def _read_classic(file: BinaryIO, counts: PacketFile, order: str, unit: float) -> Iterator[Packet]:
    head = file.read(20)
    if len(head) < 20:
        counts.damaged = "the file ends in its header"
        return
    link = struct.unpack(f"{order}HHiIII", head)[5] & 0x0FFFFFFF
    record = struct.Struct(f"{order}IIII")
    while header := file.read(record.size):
        if len(header) < record.size:
            counts.damaged = "the file ends in the middle of a packet"
            return
        seconds, fraction, kept, original = record.unpack(header)
        if kept > _LARGEST_PACKET:
            counts.damaged = f"a packet claims {kept} bytes"
            return
        data = file.read(kept)
        if len(data) < kept:
            counts.damaged = "the file ends in the middle of a packet"
            return
        yield Packet(seconds + fraction * unit, link, data, kept < original)
