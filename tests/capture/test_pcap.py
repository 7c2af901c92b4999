"""The bytes of a connection come out of a capture in order, each once."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.capture.mongodb.conversation import CaptureCounts, CaptureReading, queries_in_pcap
from levada.capture.pcap import TcpStreams, read_packets, read_segment
from levada.core.errors import UsageError
from levada.sharding.queries import QueryEntry
from tests.capture.captured_packets import pcap, pcapng, segments_of, tcp
from tests.capture.mongodb_responder import msg

FIND = msg({"find": "c", "filter": {"a": 1}, "$db": "d"})


def asked(file: bytes, port: int = 27_017) -> tuple[list[QueryEntry], CaptureReading]:
    reading = CaptureReading(CaptureCounts())
    return list(queries_in_pcap(io.BytesIO(file), port, reading)), reading


def stream_of(packets: list[bytes]) -> tuple[bytes, int]:
    """What comes out of one connection, and in how many places something is missing."""
    streams, out, gaps = TcpStreams(27_017), b"", 0
    pieces = []
    for packet in packets:
        segment = read_segment(101, packet)
        assert segment is not None
        pieces += list(streams.take(segment, 1.0))
    for piece in [*pieces, *streams.close()]:
        out += piece.data
        gaps += piece.gap
    return out, gaps


@pytest.mark.parametrize("link", [0, 1, 101, 113, 276], ids=["null", "ethernet", "raw", "cooked", "cooked2"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", [pcap, pcapng])
def test_every_form_of_file_and_link_is_read(form: type, order: str, link: int) -> None:
    packets = [tcp(b"", 0, 2, link=link), tcp(FIND[:20], 1, link=link), tcp(FIND[20:], 21, link=link)]
    found, reading = asked(form(packets, link, order))
    assert [query.at for query in found] == [1_700_000_002 + (0.5 if form is pcap else 0)]
    assert (reading.packets, reading.segments, reading.missing, reading.damaged) == (3, 3, 0, "")


def test_vlan_tags_and_ipv6_are_read() -> None:
    plain = tcp(FIND, 1, link=1)
    tagged = plain[:12] + b"\x81\x00\x00\x05\x81\x00\x00\x06" + plain[12:]
    assert len(asked(pcap([tcp(b"", 0, 2, link=1), tagged], 1))[0]) == 1
    ways = {"source": ("::1", 5), "target": ("::1", 27_017)}
    assert len(asked(pcap([tcp(b"", 0, 2, **ways), tcp(FIND, 1, **ways)]))[0]) == 1  # type: ignore[arg-type]


def test_other_ports_and_other_packets_are_left_alone() -> None:
    udp = bytearray(tcp(FIND, 1))
    udp[9] = 17
    found, reading = asked(pcap([bytes(udp), b"", b"\x45", tcp(FIND, 1, target=("10.0.0.1", 5432))]))
    assert (found, reading.packets, reading.segments) == ([], 4, 0)


@settings(max_examples=60)
@given(
    stream=st.binary(min_size=1, max_size=400),
    first=st.sampled_from([0, 1000, 2**32 - 50, 2**32 - 1]),
    data=st.data(),
)
def test_repeated_overlapping_and_shuffled_segments_give_the_stream_once(
    stream: bytes, first: int, data: st.DataObject
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=5))
    syn, *middle, fin = segments_of(stream, sizes, first)
    again = data.draw(st.lists(st.tuples(st.integers(0, len(stream) - 1), st.integers(1, 80)), max_size=5))
    overlapping = [tcp(stream[at : at + size], first + 1 + at) for at, size in again]
    shuffled = data.draw(st.permutations([*middle, *middle[:3], *overlapping]))
    late = [syn, fin, *middle[:2]]
    assert stream_of([syn, *shuffled, fin, *late]) == (stream, 0)


def test_a_missing_segment_costs_what_was_in_it_and_no_more() -> None:
    packets = segments_of(FIND * 10, [len(FIND)])
    del packets[5]
    found, reading = asked(pcap(packets))
    assert len(found) == 9
    assert reading.missing == 1


def test_a_capture_that_begins_late_begins_with_the_next_message() -> None:
    found, reading = asked(pcap(segments_of(FIND * 10, [50])[2:]))
    assert len(found) == 9
    assert reading.heard.gaps == 1


def test_a_packet_that_was_cut_by_the_capture_is_a_gap() -> None:
    large = msg({"find": "c", "filter": {"x": "y" * 900}, "$db": "d"})
    packets = segments_of(FIND + large + FIND, [len(FIND), len(large)])
    found, reading = asked(pcap(packets, keep=40 + len(FIND)))
    assert (len(found), reading.missing) == (2, 1)


def test_a_port_used_again_is_another_connection() -> None:
    once = segments_of(FIND, [50], first=1000)
    found, reading = asked(pcap([*once, *segments_of(FIND, [50], first=77)]))
    assert (len(found), reading.heard.gaps) == (2, 0)


def test_what_waits_for_a_missing_segment_is_bounded() -> None:
    streams = TcpStreams(27_017)
    for packet in [tcp(b"", 0, 2), *(tcp(bytes(9000), 5000 + place * 9000) for place in range(2_000))]:
        segment = read_segment(101, packet)
        assert segment is not None
        list(streams.take(segment, 1.0))
    (held,) = streams._streams.values()
    assert held.waiting_bytes <= 8 << 20
    assert streams.gaps == 1


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_a_file_that_ends_in_the_middle_is_read_up_to_there(form: type) -> None:
    whole = form(segments_of(FIND, [50]))
    found, reading = asked(whole[:-10])
    assert len(found) == 1
    assert "ends" in reading.damaged


def test_something_else_is_no_capture_file() -> None:
    for data in (b"", b"{}", b"PK\3\4 something"):
        with pytest.raises(UsageError, match="not a capture file"):
            asked(data)


@settings(max_examples=300)
@given(st.sampled_from([pcap, pcapng]), st.integers(0, 500), st.binary(max_size=8), st.booleans())
def test_damaged_files_harm_nobody(form: type, place: int, noise: bytes, cut: bool) -> None:
    data = bytearray(form(segments_of(FIND, [50]), 1))
    place = 4 + place % (len(data) - 4)
    data[place : place + len(noise)] = noise
    asked(bytes(data[: place + 1] if cut else data))


@given(st.sampled_from([0, 1, 12, 101, 113, 228, 276, 999]), st.binary(max_size=100))
def test_packets_of_any_kind_harm_nobody(link: int, packet: bytes) -> None:
    read_segment(link, packet)
    list(read_packets(io.BytesIO(pcap([packet], link)), CaptureReading(CaptureCounts())))


def test_a_block_that_claims_too_much_is_not_read() -> None:
    data = pcapng([]) + struct.pack("<II", 6, 2**31)
    assert "claims" in asked(data)[1].damaged
