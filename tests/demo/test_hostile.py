"""The hostile corner does what it says, and never more than somebody reads."""

from __future__ import annotations

import asyncio
import re
import zlib

import pytest

from levada.core.reasons import Reason
from levada.demo.hostile import (
    HOSTILE_CASES,
    HOSTILE_HOST,
    HostileCase,
    answer_hostile,
    gzip_bomb,
    is_hostile,
    start_urls,
)
from levada.demo.http import Answer, StreamedAnswer, WebRequest
from levada.demo.server import Running
from tests.demo.test_server import exchange, get, with_web

_CASES = {case.name: case for case in HOSTILE_CASES}


def _ask(name: str, path: str | None = None) -> Answer:
    case = _CASES[name]
    answer = answer_hostile(WebRequest("GET", case.host, ":8000", path or case.path))
    assert isinstance(answer, Answer)
    return answer


def _links(answer: Answer) -> list[str]:
    return re.findall(r'href="([^"]+)"', answer.body.decode("utf-8", "replace"))


def test_every_case_has_its_own_host_and_says_what_to_expect() -> None:
    assert len({case.host for case in HOSTILE_CASES}) == len(HOSTILE_CASES) >= 30
    assert all(case.reasons or case.storable for case in HOSTILE_CASES)


def test_the_start_page_links_to_every_case() -> None:
    start = answer_hostile(WebRequest("GET", HOSTILE_HOST, ":8000", "/"))
    assert isinstance(start, Answer)
    assert set(_links(start)) == {f"http://{case.host}:8000/" for case in HOSTILE_CASES}
    to_the_guard = {case.url(8000) for case in HOSTILE_CASES if case.reasons == {Reason.ADDRESS}}
    assert len(to_the_guard) == 4
    assert set(start_urls(8000)) == {f"http://{HOSTILE_HOST}:8000/", *_links(start), *to_the_guard}


@pytest.mark.parametrize("case", HOSTILE_CASES, ids=lambda case: case.name)
def test_every_host_has_a_front_page_that_links_to_its_case(case: HostileCase) -> None:
    assert is_hostile(case.host)
    assert _links(_ask(case.name, "/")) == [case.path]
    assert case.url(8000) == f"http://{case.host}:8000{case.path}"
    answer = answer_hostile(WebRequest("GET", case.host, ":8000", case.path))
    assert isinstance(answer, StreamedAnswer) or answer.status != 404


def test_other_hosts_and_paths_are_not_there() -> None:
    assert not is_hostile("trendyol.localhost")
    assert not is_hostile("x.hostile.localhost")
    assert _ask("calendar", "/elsewhere").status == 404
    assert _ask("calendar", "/calendar/x/y").status == 404


def test_the_calendar_has_no_end() -> None:
    path, seen = "/calendar/2026/01", set()
    for _ in range(500):
        seen.add(path)
        path = _links(_ask("calendar", path))[1]
    assert len(seen) == 500
    assert path == "/calendar/2067/09"


def test_session_ids_are_always_new_and_the_text_is_not() -> None:
    first = _ask("session")
    link = _links(first)[1]
    path, _, query = link.partition("?")
    again = answer_hostile(WebRequest("GET", _CASES["session"].host, "", path, query))
    assert isinstance(again, Answer)
    assert not set(_links(first)) & set(_links(again))


def test_copies_are_the_same_bytes_and_near_copies_are_not() -> None:
    assert len({_ask("copies", f"/copy/{i}").body for i in range(1, 9)}) == 1
    assert len({_ask("near-copies", f"/near/{i}").body for i in range(1, 9)}) == 8


@pytest.mark.parametrize(
    ("name", "location"),
    [
        ("to-metadata", "http://169.254.169.254/latest/meta-data/"),
        ("to-loopback", "http://127.0.0.1:1/"),
        ("to-loopback6", "http://[::1]/"),
        ("to-private", "http://10.0.0.1/"),
        ("to-file", "file:///etc/passwd"),
        ("redirect-loop", "/loop/b"),
        ("redirect-endless", "/on/2"),
    ],
)
def test_redirects_lead_where_they_should_not(name: str, location: str) -> None:
    assert dict(_ask(name).headers)["Location"] == location


def test_pages_lie_about_their_charset() -> None:
    turkish = _ask("charset-1254")
    assert "utf-8" in dict(turkish.headers)["Content-Type"]
    with pytest.raises(UnicodeDecodeError):
        turkish.body.decode()
    assert "İstanbul" in turkish.body.decode("cp1254")
    assert "utf-7" in dict(_ask("charset-utf7").headers)["Content-Type"]


def test_sizes_are_as_designed() -> None:
    assert _ask("deep").body.count(b"<div>") == 10_000
    assert len(_links(_ask("many-links"))) == 20_000
    assert _ask("empty").body == b""
    assert b"\x00" in _ask("binary").body


def test_robots_close_fail_or_never_end() -> None:
    assert b"Disallow: /closed/" in _ask("blocked", "/robots.txt").body
    assert _CASES["blocked"].path.startswith("/closed/")
    assert _ask("robots-500", "/robots.txt").status == 500
    assert isinstance(
        answer_hostile(WebRequest("GET", _CASES["robots-endless"].host, "", "/robots.txt")), StreamedAnswer
    )


def test_the_bomb_is_a_valid_gzip_a_thousandth_of_its_size() -> None:
    async def gather() -> bytes:
        return b"".join([piece async for piece in gzip_bomb(8 * 1024 * 1024).pieces()])

    wire = asyncio.run(gather()).split(b"\r\n\r\n", 1)[1]
    assert len(wire) < 8 * 1024 * 1024 / 900
    assert len(zlib.decompress(wire, 31)) == 8 * 1024 * 1024


async def _read_some(port: int, case: HostileCase, size: int) -> bytes:
    """The first bytes of a case; then hang up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(get(case.host, case.path))
    try:
        return await reader.readexactly(size)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(("name", "size"), [("gzip-bomb", 100_000), ("endless", 1_000_000), ("slow", 100)])
def test_what_does_not_end_stops_when_nobody_reads(name: str, size: int) -> None:
    async def story(web: Running) -> None:
        assert (await _read_some(web.port, _CASES[name], size)).startswith(b"HTTP/1.1 200 OK")
        while web.connections:  # noqa: ASYNC110 - the end of a connection is no event outside it
            await asyncio.sleep(0)
        assert b"200 OK" in await exchange(web.port, get("boun.localhost", close=True))

    with_web(story)


def test_ten_megabytes_of_headers_come_before_the_page() -> None:
    async def story(web: Running) -> None:
        case = _CASES["header-flood"]
        answer = await exchange(web.port, get(case.host, case.path))
        assert answer.index(b"\r\n\r\n") > 10_000_000

    with_web(story)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("not-modified", b"HTTP/1.1 304"),
        ("not-http", b"220 mail"),
        ("hangs-up", b""),
        ("busy", b"HTTP/1.1 429"),
        ("too-short", b"HTTP/1.1 200"),
        ("too-long", b"HTTP/1.1 200"),
        ("not-gzip", b"HTTP/1.1 200"),
        ("bad-chunks", b"HTTP/1.1 200"),
        ("fails", b"HTTP/1.1 500"),
    ],
)
def test_broken_answers_are_broken_on_the_wire(name: str, begins: bytes) -> None:
    async def story(web: Running) -> None:
        case = _CASES[name]
        answer = await exchange(web.port, get(case.host, case.path, close=True))
        assert answer.startswith(begins)
        assert bool(answer) == bool(begins)

    with_web(story)
