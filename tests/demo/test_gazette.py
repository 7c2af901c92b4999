"""The gazette of the bundled web: much at once, at known times."""

from __future__ import annotations

import asyncio
import re

import pytest

from levada.core.records import RawPage
from levada.demo.gazette import EDITIONS, EVERY, FIRST, GAZETTE_HOST, PAGES, Gazette, is_issue
from levada.demo.http import WebRequest
from levada.demo.server import serve
from levada.demo.world import DemoWorld
from levada.pages.parse import ParseLimits, parse_page
from tests.manual_clock import ManualClock

BEGAN = 1_000_000.0


def ask(gazette: Gazette, host: str, path: str, now: float) -> tuple[int, str]:
    answer = gazette.answer(WebRequest("GET", host, ":8000", path), now)
    return answer.status, answer.body.decode()


def links(gazette: Gazette, now: float) -> list[str]:
    return re.findall(r'href="([^"]+)"', ask(gazette, GAZETTE_HOST, "/", now)[1])


@pytest.mark.parametrize(
    ("after", "issues"), [(0.0, 0), (FIRST - 1, 0), (FIRST, 1), (FIRST + EVERY, 2), (FIRST + 9 * EVERY, 10)]
)
def test_issues_come_out_at_their_times(after: float, issues: int) -> None:
    gazette = Gazette(1, BEGAN)
    assert gazette.issues(BEGAN + after) == issues
    assert len(links(gazette, BEGAN + after)) == min(issues, 6) * EDITIONS * PAGES


def test_a_page_is_there_from_its_issue_on_and_never_changes() -> None:
    gazette = Gazette(1, BEGAN)
    host = f"3.{GAZETTE_HOST}"
    assert ask(gazette, host, "/sayi-1/7", BEGAN + FIRST - 1)[0] == 404
    first = ask(gazette, host, "/sayi-1/7", BEGAN + FIRST)
    assert first[0] == 200
    assert first == ask(gazette, host, "/sayi-1/7", BEGAN + 50 * EVERY)


@pytest.mark.parametrize("path", ["/sayi-1/0", "/sayi-1/16", "/sayi-1/007", "/sayi-2/1", "/sayi-x/1", "/sayi-1", "/x"])
def test_nothing_else_is_there(path: str) -> None:
    assert ask(Gazette(1, BEGAN), f"1.{GAZETTE_HOST}", path, BEGAN + FIRST)[0] == 404


def test_an_issue_leads_to_pages_that_differ() -> None:
    gazette, now = Gazette(1, BEGAN), BEGAN + FIRST
    digests = set()
    for url in links(gazette, now)[:: PAGES - 2]:
        host, path = re.match(r"http://([^:/]+):8000(/.+)", url).groups()  # type: ignore[union-attr]
        assert gazette.is_of(host)
        status, body = ask(gazette, host, path, now)
        assert status == 200
        digests.add(parse_page(RawPage(url, body.encode(), "text/html"), ParseLimits()).sketch)
        assert is_issue(url)
    assert len(digests) == len(links(gazette, now)[:: PAGES - 2])


def test_every_edition_is_a_start_and_stands_alone() -> None:
    starts = Gazette(1, BEGAN).start_urls(8000)
    assert len(starts) == EDITIONS + 1
    assert starts[0] == f"http://{GAZETTE_HOST}:8000/"
    assert not any(is_issue(url) for url in starts)


def test_it_is_served_only_if_asked_for_and_answers_that_are_late_keep_their_order() -> None:
    async def run() -> list[bytes]:
        clock = ManualClock(BEGAN)
        plain = await serve(DemoWorld.build(1, 30), clock)
        assert not [url for url in plain.start_urls() if GAZETTE_HOST in url]
        await plain.close()
        web = await serve(DemoWorld.build(1, 30), clock, burst=True)
        clock.advance(FIRST)
        assert len([url for url in web.start_urls() if GAZETTE_HOST in url]) == EDITIONS + 1
        reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
        for path in ("/sayi-1/1", "/", "/sayi-1/2"):  # all at once
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 2.{GAZETTE_HOST}\r\n\r\n".encode())
        bodies = []
        for _ in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", head)[1])  # type: ignore[index]
            bodies.append(await reader.readexactly(length))
        writer.close()
        await web.close()
        return bodies

    first, front, second = asyncio.run(run())
    assert b"2. bask" in front
    assert first != second
    assert min(len(first), len(second)) > 15_000
