"""Does every exchange, however the server behaves, end in time with an answer or a reason?"""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest
import uvloop
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from levada.adapters.guard import AddressGuard
from levada.adapters.web import CurlFetcher, FetchLimits
from levada.adapters.web.buffers import SharedBuffer
from levada.adapters.web.head import header_lines, read_head
from levada.errors import SettingsError
from levada.reasons import Reason
from levada.records import Request, Response
from tests.adapters.fetching import fetch, with_fetcher
from tests.adapters.servers import Answer, Exchange, answer, web

KIB = 1024
TIGHT = FetchLimits(
    max_bytes=64 * KIB, max_decoded_bytes=256 * KIB, max_header_bytes=4 * KIB, seconds=10, min_rate_seconds=1
)


def ask(reply: Answer, limits: FetchLimits = TIGHT, **request: object) -> Response:
    with web({"/": reply}) as server:
        return fetch(Request(f"{server.url}/", **request), [server.address], limits)  # type: ignore[arg-type]


def test_an_answer_comes_back_whole() -> None:
    with web({"/a?b=c": answer(b"hello", "Content-Type: text/plain", "X-Two: 1", "X-Two: 2")}) as server:
        response = fetch(f"{server.url}/a?b=c", [server.address])
    assert (response.status, response.body, response.reason, response.detail) == (200, b"hello", None, "")
    assert response.headers == (
        ("content-length", "5"),
        ("content-type", "text/plain"),
        ("x-two", "1"),
        ("x-two", "2"),
    )
    assert (response.address, response.http_version, response.wire_bytes) == ("127.0.0.1", "1.1", 5)


def test_the_request_says_who_asks_and_what_it_understands() -> None:
    with web({"/": answer()}) as server:
        fetch(Request(f"{server.url}/", headers=(("If-None-Match", '"é"'), ("X-Empty", ""))), [server.address])
    exchange = server.exchanges[0]
    assert exchange.head.startswith("GET / HTTP/1.1\r\n")
    assert exchange.header("user-agent") == "levada-test/1"
    assert exchange.header("host") == server.address
    assert exchange.header("if-none-match") == '"é"'
    assert exchange.header("x-empty") == ""
    assert "gzip" in (exchange.header("accept-encoding") or "")
    assert "text/html" in (exchange.header("accept") or "")
    assert exchange.header("cookie") is None


def test_headers_of_one_request_are_not_sent_with_the_next() -> None:
    async def two(fetcher: CurlFetcher) -> None:
        await fetcher.fetch(Request(f"{server.url}/", headers=(("X-Once", "1"),)))
        await fetcher.fetch(Request(f"{server.url}/"))

    with web({"/": answer(b"", "Set-Cookie: a=b")}) as server:
        with_fetcher(two, [server.address])
    assert [exchange.header("x-once") for exchange in server.exchanges] == ["1", None]
    assert server.exchanges[1].header("cookie") is None


def test_a_conditional_request_gets_its_304() -> None:
    def reply(exchange: Exchange) -> None:
        known = exchange.header("if-none-match") == '"v1"'
        exchange.send(answer(status="304 Not Modified") if known else answer(b"page", 'ETag: "v1"'))

    assert ask(reply).body == b"page"
    response = ask(reply, headers=(("If-None-Match", '"v1"'),))
    assert (response.status, response.body, response.reason) == (304, b"", None)


@pytest.mark.parametrize("status", ["301 Moved", "404 Not Found", "429 Too Many", "500 Oops", "503 Busy"])
def test_a_status_is_not_a_failure_of_the_exchange(status: str) -> None:
    response = ask(answer(b"why", "Location: /x", "Retry-After: 3", status=status))
    assert (response.status, response.body, response.reason) == (int(status[:3]), b"why", None)


def test_connections_are_used_again() -> None:
    async def many(fetcher: CurlFetcher) -> list[Response]:
        return [await fetcher.fetch(Request(f"{server.url}/")) for _ in range(20)]

    with web({"/": answer(b"x" * 30_000)}) as server:
        responses = with_fetcher(many, [server.address])
        assert [len(response.body) for response in responses] == [30_000] * 20
        assert {response.address for response in responses} == {"127.0.0.1"}
        assert server.connections == 1


def test_no_more_connections_than_allowed_are_open_at_once() -> None:
    async def many(fetcher: CurlFetcher) -> list[Response]:
        return await asyncio.gather(*(fetcher.fetch(Request(f"{server.url}/")) for _ in range(50)))

    with web({"/": answer(b"x")}) as server:
        assert {response.body for response in with_fetcher(many, [server.address], connections=3)} == {b"x"}
        assert server.connections <= 3


def test_an_ipv6_server_is_spoken_to() -> None:
    with web({"/": answer(b"six")}, host="::1") as server:
        assert fetch(f"{server.url}/", [server.address]).body == b"six"


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


@pytest.mark.parametrize("packed", [b"not gzip at all", gzip.compress(PAGE)[:40] + bytes(40)])
def test_a_damaged_compressed_body_is_a_reason(packed: bytes) -> None:
    response = ask(answer(packed, "Content-Encoding: gzip"))
    assert (response.reason, response.body) == (Reason.PROTOCOL, b"")


def test_a_long_body_is_refused_by_its_length_before_it_is_read() -> None:
    response = ask(answer(bytes(65 * KIB)))
    assert (response.reason, response.status, response.body) == (Reason.BYTES, 200, b"")


def test_a_body_as_long_as_the_cap_is_kept() -> None:
    assert len(ask(answer(bytes(64 * KIB))).body) == 64 * KIB


def endless(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.send(bytes(16 * KIB))


def endless_chunks(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        exchange.send(b"4000\r\n" + bytes(16 * KIB) + b"\r\n")


@pytest.mark.parametrize("reply", [endless, endless_chunks])
def test_an_endless_body_stops_at_the_cap(reply: Answer) -> None:
    response = ask(reply)
    assert (response.reason, response.body) == (Reason.BYTES, b"")


@pytest.mark.parametrize("reply", [endless, endless_chunks, answer(bytes(200 * KIB)), answer(gzip.compress(PAGE))])
def test_whoever_wants_the_beginning_gets_just_that(reply: Answer) -> None:
    response = ask(reply, keep_bytes=100)
    assert (response.status, response.reason, len(response.body)) == (200, None, 100)


def test_a_short_body_is_kept_whole_by_whoever_wants_the_beginning() -> None:
    assert ask(answer(b"short"), keep_bytes=100).body == b"short"
    assert ask(answer(b"exact"), keep_bytes=5).body == b"exact"
    assert ask(answer(b"more"), keep_bytes=0).body == b""


def test_bytes_that_decode_to_nothing_are_counted_for_whoever_wants_the_beginning() -> None:
    def hollow(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10])
        while True:
            exchange.send(b"\x00\x00\x00\xff\xff" * 3000)  # stored blocks of length 0

    assert ask(hollow, keep_bytes=100).reason is Reason.BYTES


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


def trickle(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while not exchange.pause(0.05):
        exchange.send(b"x")


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


def test_a_port_where_nobody_listens_is_a_failed_connection() -> None:
    with web({}) as server:
        gone = server.address
    response = fetch(f"http://{gone}/", [gone])
    assert (response.status, response.reason) == (0, Reason.CONNECT)


def test_a_name_that_does_not_exist_is_a_dns_failure() -> None:
    assert fetch("http://does-not-exist.invalid/").reason is Reason.DNS


def broken(data: bytes) -> Answer:
    return lambda exchange: exchange.send(data)


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


def test_trailers_and_interim_answers_do_not_become_headers() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Real: 1\r\n\r\n2\r\nhi\r\n0\r\nX-Late: 1\r\n\r\n"
    response = ask(early + chunks)
    assert response.body == b"hi"
    assert response.headers == (("transfer-encoding", "chunked"), ("x-real", "1"))


@pytest.mark.parametrize(
    "url", ["http://", "http://a b/", "http://ü.example/", "http://h:99999/", "http://[::1/", "http://a\n/"]
)
def test_an_address_that_cannot_be_asked_is_a_bad_url(url: str) -> None:
    assert fetch(url).reason is Reason.BAD_URL


@pytest.mark.parametrize("url", ["http://user:word@{}/", "http://user@{}/", "HTTP://:@{}/", "http:///user@{}/"])
def test_a_user_name_in_an_address_is_not_sent(url: str) -> None:
    with web({"/": answer()}) as server:
        assert fetch(url.format(server.address), [server.address]).reason is Reason.BAD_URL
        assert server.exchanges == []


@pytest.mark.parametrize(
    "header", [("X", "a\r\nY: b"), ("X\r\nY", "a"), ("X:", "a"), ("", "a"), ("X", "a\0"), ("X", "€")]
)
def test_a_request_header_cannot_smuggle_a_line(header: tuple[str, str]) -> None:
    response = ask(answer(), headers=(header,))
    assert (response.status, response.reason) == (0, Reason.BAD_URL)


def test_a_failure_leaves_the_handle_fit_for_the_next_exchange() -> None:
    async def in_turn(fetcher: CurlFetcher) -> list[Response]:
        paths = ("/bad", "/good", "/long", "/good", "/head", "/good")
        return [await fetcher.fetch(Request(server.url + path)) for path in paths]

    answers: dict[str, Answer] = {
        "/good": answer(b"good"),
        "/bad": broken(b"nonsense"),
        "/long": answer(bytes(65 * KIB)),
        "/head": answer(b"", "X: " + "y" * 5000),
    }
    with web(answers) as server:
        responses = with_fetcher(in_turn, [server.address], TIGHT, connections=1)
    assert [response.body for response in responses[1::2]] == [b"good"] * 3
    failed = [response.reason for response in responses[0::2]]
    assert failed == [Reason.PROTOCOL, Reason.BYTES, Reason.HEADER_BYTES]


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


def open_files() -> set[str]:
    return {link for fd in Path("/proc/self/fd").iterdir() if (link := _target(fd)).startswith("socket:")}


def _target(fd: Path) -> str:
    try:
        return os.readlink(fd)
    except FileNotFoundError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
def test_nothing_stays_open_after_close() -> None:
    async def several(fetcher: CurlFetcher) -> None:
        await asyncio.gather(*(fetcher.fetch(Request(f"{server.url}/{path}")) for path in ("", "", "bad", "long")))

    with web({"/": answer(b"x"), "/bad": broken(b"nonsense"), "/long": endless}) as server:
        before = open_files()
        with_fetcher(several, [server.address], TIGHT)
        theirs = open_files() - before
    assert not open_files() - before
    assert len(theirs) <= 4  # the server's own ends, until it notices


def test_a_cancelled_fetch_ends_at_once_and_its_handle_is_used_again() -> None:
    async def cancel_one(fetcher: CurlFetcher) -> Response:
        waiting = asyncio.ensure_future(fetcher.fetch(Request(f"{server.url}/hang")))
        await asyncio.to_thread(server.arrived.wait, 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await fetcher.fetch(Request(f"{server.url}/"))

    with web({"/": answer(b"next"), "/hang": Exchange.hang}) as server:
        assert with_fetcher(cancel_one, [server.address], connections=1).body == b"next"


def test_close_ends_what_is_under_way_with_a_reason() -> None:
    async def close_under_way(fetcher: CurlFetcher) -> list[Response]:
        fetches = [asyncio.ensure_future(fetcher.fetch(Request(f"{server.url}/hang"))) for _ in range(3)]
        await asyncio.to_thread(server.arrived.wait, 10)
        await fetcher.close()
        return [*await asyncio.gather(*fetches), await fetcher.fetch(Request(f"{server.url}/"))]

    with web({"/hang": Exchange.hang}) as server:
        responses = with_fetcher(close_under_way, [server.address], connections=2)
    assert [(response.status, response.reason) for response in responses] == [(0, Reason.CONNECT)] * 4
    assert all("closed" in response.detail for response in responses)


def test_uvloop_drives_it_as_well_and_rings_its_alarms() -> None:
    async def run() -> list[Response]:
        limits = FetchLimits(seconds=0.3)
        fetcher = CurlFetcher(limits, AddressGuard([server.address]), agent="levada-test/1", connections=4)
        paths = ["/"] * 20 + ["/hang", "/trickle"]
        try:
            return await asyncio.gather(*(fetcher.fetch(Request(server.url + path)) for path in paths))
        finally:
            await fetcher.close()

    answers: dict[str, Answer] = {"/": answer(b"fast"), "/hang": Exchange.hang, "/trickle": trickle}
    with web(answers) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        responses = runner.run(run())
    assert [response.body for response in responses[:20]] == [b"fast"] * 20
    assert [response.reason for response in responses[20:]] == [Reason.SECONDS] * 2


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"") + b"\r\n"), max_size=20))
def test_any_lines_at_all_can_be_read_as_a_head(lines: list[bytes]) -> None:
    _, headers = read_head(lines)
    assert all(name == name.lower() and "\n" not in name + value for name, value in headers)


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=12)), max_size=4))
def test_a_request_line_never_holds_two(headers: list[tuple[str, str]]) -> None:
    try:
        lines = header_lines(headers)
    except ValueError:
        return
    assert len(lines) == len(headers)
    assert not any(byte in line for line in lines for byte in (b"\r", b"\n", b"\0"))


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


@pytest.mark.parametrize("agent", ["a\r\nHost: b", "tab\t", "ünicode"])
def test_an_agent_that_is_not_one_plain_line_is_a_settings_error(agent: str) -> None:
    with pytest.raises(SettingsError, match="one line"):
        CurlFetcher(FetchLimits(), AddressGuard(), agent=agent)
