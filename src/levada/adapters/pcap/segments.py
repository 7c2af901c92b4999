"""Which TCP segment does a packet hold?

Ethernet (with VLAN tags), Linux cooked 1 and 2, loopback and raw IP; IPv4 and IPv6. Fragments of IP packets are
passed over: a TCP that discovers its path sends none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["Segment", "read_segment"]

FIN, SYN, RST = 0x01, 0x02, 0x04
_NULL, _ETHERNET, _RAW_BSD, _RAW, _LOOP, _SLL, _IPV4, _IPV6, _SLL2 = 0, 1, 12, 101, 108, 113, 228, 229, 276
_VLAN = (0x8100, 0x88A8, 0x9100)
_TYPE_IPV4, _TYPE_IPV6 = 0x0800, 0x86DD
_TCP = 6
_EXTENSIONS = frozenset({0, 43, 60, 135, 139, 140})
_FRAGMENT, _AUTHENTICATION = 44, 51


class Segment(NamedTuple):
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    sequence: int
    flags: int
    data: bytes
    missing: int  # bytes of it that the capture did not keep


def read_segment(link: int, packet: bytes) -> Segment | None:
    """None where the packet is something else, or is cut before its data begins."""
    try:
        return _of_network(packet, _network_begin(link, packet))
    except (struct.error, IndexError):
        return None


def _network_begin(link: int, packet: bytes) -> int:
    """Where the IP header begins; -1: there is none."""
    if link == _ETHERNET:
        kind, at = struct.unpack_from(">H", packet, 12)[0], 14
        while kind in _VLAN:
            kind, at = struct.unpack_from(">H", packet, at + 2)[0], at + 4
        return at if kind in (_TYPE_IPV4, _TYPE_IPV6) else -1
    if link in (_NULL, _LOOP):
        return 4
    if link in (_RAW, _RAW_BSD, _IPV4, _IPV6):
        return 0
    if link in (_SLL, _SLL2):
        kind = struct.unpack_from(">H", packet, 14 if link == _SLL else 0)[0]
        return (16 if link == _SLL else 20) if kind in (_TYPE_IPV4, _TYPE_IPV6) else -1
    return -1


def _of_network(packet: bytes, at: int) -> Segment | None:
    if at < 0:
        return None
    version = packet[at] >> 4
    if version == 4:
        return _of_ipv4(packet, at)
    return _of_ipv6(packet, at) if version == 6 else None


def _of_ipv4(packet: bytes, at: int) -> Segment | None:
    size = (packet[at] & 0x0F) * 4
    total, fragment = struct.unpack_from(">H2xH", packet, at + 2)
    if size < 20 or packet[at + 9] != _TCP or fragment & 0x3FFF:
        return None
    end = at + total if total else len(packet)  # 0: the network card cut it later than it was captured
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
