"""Which queries are in a capture of MongoDB's traffic?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from levada.adapters.mongodb.conversation import Conversations, Heard
from levada.adapters.pcap.files import PacketFile, read_packets
from levada.adapters.pcap.segments import read_segment
from levada.adapters.pcap.streams import Piece, Streams
from levada.sharding.asked import AskedQuery

__all__ = ["CaptureReading", "asked_in_pcap"]


class CaptureReading(msgspec.Struct):
    """What was met in the file; complete when the reading has ended."""

    heard: Heard
    packets: int = 0
    segments: int = 0  # towards the port
    missing: int = 0  # places where segments were missing
    damaged: str = ""  # why the file could not be read to its end


def asked_in_pcap(file: BinaryIO, port: int, reading: CaptureReading) -> Iterator[AskedQuery]:
    """The queries that clients sent to this port, in the order in which they became whole."""
    counts = PacketFile()
    streams = Streams(port)
    clients = Conversations(reading.heard, "pcap")
    for packet in read_packets(file, counts):
        segment = read_segment(packet.link, packet.data)
        if segment is not None:
            for piece in streams.take(segment, packet.at):
                yield from _take(piece, clients)
        reading.packets, reading.segments, reading.missing = counts.packets, streams.segments, streams.gaps
    for piece in streams.close():
        yield from _take(piece, clients)
    reading.missing, reading.damaged = streams.gaps, counts.damaged


def _take(piece: Piece, clients: Conversations) -> Iterator[AskedQuery]:
    if piece.gap:
        clients.lose(piece.stream)
    if piece.data:
        yield from clients.feed(piece.stream, piece.data, piece.at)
    if piece.end:
        clients.close(piece.stream)
