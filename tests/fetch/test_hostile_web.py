"""Every exchange, however the server behaves, ends in time with a response or a reason."""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from collections.abc import Callable

import pycurl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.transfer import SharedBuffer
from tests.fetch.fetching import KIB, ask, fetch, with_fetcher
from tests.fetch.servers import Answer, Exchange, answer, broken, endless, endless_chunks, trickle, web

PAGE = b"<p>many words, again and again</p>" * 500
ZEROS = bytes(20 * KIB * KIB)
BROTLI = {
    PAGE: "G2dC+B2nwZqbH1PN4waXp17ayicsB5nltFYgBodUUrK/B/XDADoAiA==",
    ZEROS: "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v1f/v//4J8AiMMCAN37Hw==",
}
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda plain: base64.b64decode(BROTLI[plain]),
    "zstd": zstandard.ZstdCompressor().compress,
}


def understood(encoding: str) -> bool:
    library = {"gzip": "zlib/", "deflate": "zlib/", "br": "brotli/", "zstd": "zstd/"}[encoding]
    return library in pycurl.version


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_compressed_body_is_decoded_or_refused_but_never_kept_as_it_is(encoding: str) -> None:
    packed = ENCODERS[encoding](PAGE)
    response = ask(answer(packed, f"Content-Encoding: {encoding}"))
    if understood(encoding):
        assert (response.body, response.reason) == (PAGE, None)
        assert response.wire_bytes == len(packed)
    else:
        assert (response.body, response.reason) == (b"", Reason.PROTOCOL)


def test_only_what_can_be_decoded_is_asked_for() -> None:
    with web({"/": answer()}) as server:
        fetch(f"{server.url}/", [server.address])
    asked = (server.exchanges[0].header("accept-encoding") or "").split(", ")
    assert asked == [encoding for encoding in ("gzip", "br", "zstd") if understood(encoding)]


@pytest.mark.parametrize("encoding", ["gzip", "utf-8", "gzip, gzip"])
def test_a_body_comes_as_it_stands_to_whoever_names_an_encoding(encoding: str) -> None:
    plain = (("Accept-Encoding", "identity"),)

    async def three(fetcher: CurlFetcher) -> list[Response]:
        return [await fetcher.fetch(Request(f"{server.url}/", headers)) for headers in ((), plain, ())]

    with web({"/": answer(PAGE, f"Content-Encoding: {encoding}")}) as server:
        first, second, third = with_fetcher(three, [server.address])
    assert (first.reason, second.reason, third.reason) == (Reason.PROTOCOL, None, Reason.PROTOCOL)
    assert (first.header("content-encoding"), second.body) == (encoding, PAGE)
    said = [exchange.header("accept-encoding") or "" for exchange in server.exchanges]
    assert ["gzip" in each for each in said] == [True, False, True]
    assert said[1] == "identity"


@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODERS if understood(encoding)])
def test_a_bomb_stops_at_the_cap(encoding: str) -> None:
    bomb = ENCODERS[encoding](ZEROS)
    response = ask(answer(bomb, f"Content-Encoding: {encoding}"))
    assert (response.reason, response.body) == (Reason.DECODED_BYTES, b"")
    assert response.status == 200
    assert response.wire_bytes <= 64 * KIB


def test_a_bomb_within_a_bomb_stops_too() -> None:
    bomb = gzip.compress(gzip.compress(ZEROS))
    assert ask(answer(bomb, "Content-Encoding: gzip, gzip")).reason is Reason.DECODED_BYTES


@pytest.mark.parametrize("packed", [b"not gzip at all", gzip.compress(PAGE)[:40] + bytes(40)], ids=["plain", "torn"])
def test_a_damaged_compressed_body_is_a_reason(packed: bytes) -> None:
    response = ask(answer(packed, "Content-Encoding: gzip"))
    assert (response.reason, response.body) == (Reason.PROTOCOL, b"")


def test_a_long_body_is_refused_by_its_length_before_it_is_read() -> None:
    response = ask(answer(bytes(65 * KIB)))
    assert (response.reason, response.status, response.body) == (Reason.BYTES, 200, b"")


def test_a_body_as_long_as_the_cap_is_kept() -> None:
    assert len(ask(answer(bytes(64 * KIB))).body) == 64 * KIB


@pytest.mark.parametrize("reply", [endless, endless_chunks])
def test_an_endless_body_stops_at_the_cap(reply: Answer) -> None:
    response = ask(reply)
    assert (response.reason, response.body) == (Reason.BYTES, b"")


@pytest.mark.parametrize(
    "reply",
    [endless, endless_chunks, answer(bytes(200 * KIB)), answer(gzip.compress(PAGE))],
    ids=["endless", "chunks", "long", "packed"],
)
def test_whoever_wants_the_beginning_gets_just_that(reply: Answer) -> None:
    response = ask(reply, keep_bytes=100)
    assert (response.status, response.reason, len(response.body)) == (200, None, 100)


def test_a_short_body_is_kept_whole_by_whoever_wants_the_beginning() -> None:
    assert ask(answer(b"short"), keep_bytes=100).body == b"short"
    assert ask(answer(b"exact"), keep_bytes=5).body == b"exact"
    assert ask(answer(b"more"), keep_bytes=0).body == b""


@pytest.mark.parametrize("keep_bytes", [None, 100])
def test_bytes_that_decode_to_nothing_are_counted_whoever_asks(keep_bytes: int | None) -> None:
    def hollow(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10])
        while True:
            exchange.send(b"\x00\x00\x00\xff\xff" * 3000)  # stored blocks of length 0

    assert ask(hollow, keep_bytes=keep_bytes).reason is Reason.BYTES


def test_a_head_that_never_ends_stops_at_the_cap() -> None:
    def flood(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\n")
        for number in range(100_000):
            exchange.send(b"X-%d: y\r\n" % number)

    assert ask(flood).reason is Reason.HEADER_BYTES


def test_one_header_that_never_ends_stops_too() -> None:
    def flood(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            exchange.send(b"y" * 10_000)

    assert ask(flood).reason is Reason.HEADER_BYTES


def test_interim_answers_without_end_stop_too() -> None:
    def flood(exchange: Exchange) -> None:
        while True:
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)

    assert ask(flood).reason is Reason.HEADER_BYTES


def test_a_server_that_says_nothing_runs_out_of_time() -> None:
    limits = FetchLimits(seconds=0.3)
    response = ask(Exchange.hang, limits)
    assert (response.status, response.reason) == (0, Reason.SECONDS)
    assert response.detail


def test_a_trickle_runs_out_of_time() -> None:
    response = ask(trickle, FetchLimits(seconds=0.4))
    assert (response.status, response.reason, response.body) == (200, Reason.SECONDS, b"")


def test_a_trickle_in_the_head_runs_out_of_time() -> None:
    def slow_head(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nX: ")
        while not exchange.pause(0.05):
            exchange.send(b"y")

    assert ask(slow_head, FetchLimits(seconds=0.4)).reason is Reason.SECONDS


def test_a_trickle_below_the_minimum_rate_is_given_up_before_the_time_is_out() -> None:
    response = ask(trickle, FetchLimits(min_rate=1000, min_rate_seconds=1))
    assert (response.reason, response.body) == (Reason.MIN_RATE, b"")


NONSENSE = {
    "nothing": b"",
    "not http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "http 0.9": b"<html>hello</html>",
    "no status": b"HTTP/1.1 \r\n\r\n",
    "bad status": b"HTTP/1.1 abc OK\r\n\r\nx",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
    "chunk size is no number": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "chunk size too large": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\nhello",
    "chunk without end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX5\r\n",
    "chunks cut short": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "unknown transfer encoding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: sdch\r\n\r\nhello",
    "header that is not text": b"HTTP/1.1 200 OK\r\nX\xff\xfe\r\n\r\n",
    "null in a header": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nhi",
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_a_reason_and_leaves_no_body(kind: str) -> None:
    response = ask(broken(NONSENSE[kind]))
    assert response.reason is Reason.PROTOCOL, response
    assert response.body == b""
    assert response.detail


def test_a_length_that_is_too_short_cuts_the_body_and_spoils_no_other_exchange() -> None:
    async def both(fetcher: CurlFetcher) -> tuple[Response, Response]:
        first = await fetcher.fetch(Request(f"{server.url}/bad"))
        return first, await fetcher.fetch(Request(f"{server.url}/good"))

    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc" + answer(b"smuggled")
    with web({"/bad": smuggled, "/good": answer(b"good")}) as server:
        first, second = with_fetcher(both, [server.address])
    assert first.body == b"abc"
    assert second.body == b"good" or second.reason is Reason.PROTOCOL


def test_a_connection_reset_in_the_middle_of_a_body_is_a_reason() -> None:
    def reset(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        exchange.reset()

    response = ask(reset)
    assert (response.reason, response.body) == (Reason.PROTOCOL, b"")


def test_large_bodies_together_are_bounded_and_small_pages_get_through() -> None:
    limits = FetchLimits(max_buffered_bytes=400 * KIB)

    def large(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(200):
            exchange.send(bytes(16 * KIB))

    async def crowd(fetcher: CurlFetcher) -> list[Response]:
        paths = ["/large"] * 3 + ["/small"] * 3
        return await asyncio.gather(*(fetcher.fetch(Request(server.url + path)) for path in paths))

    with web({"/large": large, "/small": answer(b"small")}) as server:
        responses = with_fetcher(crowd, [server.address], limits)
    assert {response.reason for response in responses[:3]} == {Reason.BUFFERED_BYTES}
    assert [response.body for response in responses[3:]] == [b"small"] * 3


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 50)), max_size=200))
def test_the_shared_buffer_holds_at_most_twice_its_cap_and_never_stops_a_fair_share(
    pieces: list[tuple[int, int]],
) -> None:
    buffer, held = SharedBuffer(400, exchanges=8), [0] * 8
    for who, more in pieces:
        if buffer.admits(more, held[who] + more):
            held[who] += more
        else:
            assert held[who] + more > 50
            buffer.release(held[who])
            held[who] = 0
        assert buffer.held == sum(held) <= 800


@pytest.mark.parametrize("field", [field for field in FetchLimits.__struct_fields__ if field != "min_rate"])
def test_no_limit_but_the_minimum_rate_can_be_switched_off(field: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        FetchLimits(**{field: 0})
    assert FetchLimits(min_rate=0).min_rate == 0
