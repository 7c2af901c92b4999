"""Capture files made of byte streams, as tshark would have written them."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence

__all__ = ["pcap", "pcapng", "segments_of", "tcp"]

LINK_HEADERS = {
    0: b"\2\0\0\0",
    1: bytes(12) + b"\x08\x00",
    101: b"",
    113: bytes(14) + b"\x08\x00",
    276: b"\x08\x00" + bytes(18),
}


def tcp(
    data: bytes,
    sequence: int,
    flags: int = 0x18,
    *,
    source: tuple[str, int] = ("127.0.0.1", 50_000),
    target: tuple[str, int] = ("127.0.0.1", 27_017),
    link: int = 101,
) -> bytes:
    """One packet with one segment."""
    segment = struct.pack(">HHIIBBHHH", source[1], target[1], sequence % 2**32, 0, 5 << 4, flags, 1000, 0, 0) + data
    here, there = ipaddress.ip_address(source[0]).packed, ipaddress.ip_address(target[0]).packed
    if len(here) == 16:
        return struct.pack(">IHBB", 6 << 28, len(segment), 6, 64) + here + there + segment
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0x4000, 64, 6, 0) + here + there
    return LINK_HEADERS[link] + head + segment


def segments_of(stream: bytes, sizes: Sequence[int], first: int = 1000, port: int = 50_000) -> list[bytes]:
    """A whole connection: SYN, data cut into these sizes in turn, FIN."""
    source = ("127.0.0.1", port)
    packets, at, turn = [tcp(b"", first, 0x02, source=source)], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        packets.append(tcp(stream[at : at + size], first + 1 + at, source=source))
        at, turn = at + size, turn + 1
    return [*packets, tcp(b"", first + 1 + len(stream), 0x11, source=source)]


def pcap(packets: Iterable[bytes], link: int = 101, order: str = "<", keep: int = 1 << 16) -> bytes:
    head = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, link)
    return head + b"".join(
        struct.pack(f"{order}IIII", 1_700_000_000 + place, 500_000, len(packet[:keep]), len(packet)) + packet[:keep]
        for place, packet in enumerate(packets)
    )


def pcapng(packets: Iterable[bytes], link: int = 101, order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(f"{order}I", len(body) + 12)
        return struct.pack(f"{order}I", kind) + length + body + length

    out = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    nanoseconds = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    out += block(1, struct.pack(f"{order}HHI", link, 0, 0) + nanoseconds) + block(0xBAD, b"not for us")
    for place, packet in enumerate(packets):
        at = (1_700_000_000 + place) * 10**9
        head = struct.pack(f"{order}IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(packet), len(packet))
        out += block(6, head + packet)
    return out
