"""An exchange does what was requested, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import SettingsError
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.guard import AddressGuard
from levada.fetch.transfer import header_lines, read_head
from levada.pages.urls import canonical
from tests.fetch.fetching import KIB, TIGHT, ask, fetch, with_fetcher
from tests.fetch.servers import Answer, Exchange, answer, broken, endless, trickle, web
from tests.needs import needs


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


@pytest.mark.parametrize("tag", [b'"caf\xe9"', b'"caf\xc3\xa9"', b'"\xc5\x9fehir"', b"voil\xc3\xa0", b'"\xff\xc3\xa9"'])
def test_a_tag_is_sent_back_byte_by_byte_whatever_its_charset(tag: bytes) -> None:
    async def twice(fetcher: CurlFetcher) -> None:
        response = await fetcher.fetch(Request(f"{server.url}/"))
        await fetcher.fetch(Request(f"{server.url}/", headers=(("If-None-Match", response.header("etag") or ""),)))

    with web({"/": answer(b"", f"ETag: {tag.decode('latin-1')}")}) as server:
        with_fetcher(twice, [server.address])
    assert b"If-None-Match: %b" % tag in server.exchanges[1].head.encode("latin-1").split(b"\r\n")


@pytest.mark.parametrize(
    ("sent", "meant"),
    [(b"/\xc5\x9fehir", "/%C5%9Fehir"), (b"/voil\xc3\xa0", "/voil%C3%A0"), (b"/caf\xe9", "/caf%C3%A9")],
)
def test_a_redirect_in_utf_8_leads_where_it_leads_a_browser_and_any_other_is_read_as_latin_1(
    sent: bytes, meant: str
) -> None:
    response = ask(answer(b"", f"Location: {sent.decode('latin-1')}", status="301 Moved"))
    assert canonical(response.header("location") or "", "http://a.test/") == f"http://a.test{meant}"


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


def test_a_port_where_nobody_listens_is_a_failed_connection() -> None:
    with web({}) as server:
        gone = server.address
    response = fetch(f"http://{gone}/", [gone])
    assert (response.status, response.reason) == (0, Reason.CONNECT)


def test_a_name_that_does_not_exist_is_a_dns_failure() -> None:
    assert fetch("http://does-not-exist.invalid/").reason is Reason.DNS


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


def open_files() -> set[str]:
    return {link for fd in Path("/proc/self/fd").iterdir() if (link := _target(fd)).startswith("socket:")}


def _target(fd: Path) -> str:
    try:
        return os.readlink(fd)
    except FileNotFoundError:
        return ""


@needs(Path("/proc/self/fd").exists(), "counts open files by /proc")
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


@pytest.mark.parametrize("agent", ["a\r\nHost: b", "tab\t", "ünicode"])
def test_an_agent_that_is_not_one_plain_line_is_a_settings_error(agent: str) -> None:
    with pytest.raises(SettingsError, match="one line"):
        CurlFetcher(FetchLimits(), AddressGuard(), agent=agent)
