"""The fetcher contract, run on every fetcher."""

from __future__ import annotations

import asyncio

import pytest

from levada.core.protocols import Fetcher
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.guard import AddressGuard
from levada.testing import FetcherContract
from levada.testing.fetcher import ANSWERS, Site
from tests.scripted_web import MemoryFetcher


def conditional(request: Request) -> Response:
    fresh = ("If-None-Match", '"v1"') in request.headers
    return Response("", 304) if fresh else ANSWERS["/conditional"]


class TestCurl(FetcherContract):
    def make(self, allowed: str) -> Fetcher:
        return CurlFetcher(FetchLimits(), AddressGuard([allowed]), agent="levada-test/1", connections=4)


class TestMemory(FetcherContract):
    @pytest.fixture
    def site(self) -> Site:
        origin = "http://site.example"
        script = {origin + path: answer for path, answer in ANSWERS.items()}
        return Site(origin, lambda: MemoryFetcher({**script, f"{origin}/conditional": conditional}))


def test_memory_gives_scripted_answers_in_turn_and_remembers_the_requests() -> None:
    async def story() -> list[int]:
        url = "http://site.example/"
        fetcher = MemoryFetcher({url: [Response(url, 503), Response(url, 200)]})
        statuses = [(await fetcher.fetch(Request(url))).status for _ in range(3)]
        assert [request.url for request in fetcher.requests] == [url] * 3
        return statuses

    assert asyncio.run(story()) == [503, 200, 200]


def test_memory_refuses_a_script_without_answers() -> None:
    with pytest.raises(ValueError, match="no answer"):
        MemoryFetcher({"http://site.example/": []})
