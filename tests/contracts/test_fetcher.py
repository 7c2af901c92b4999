"""The fetcher contract, run on every fetcher."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.core.protocols import Fetcher
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.guard import AddressGuard
from levada.fetch.proxies import RouteFetcher
from levada.testing import FetcherContract
from levada.testing.fetcher import ANSWERS, Site
from tests.scripted_web import MemoryFetcher
from tests.servers.forward_proxies import socks_proxy, tinyproxy


def conditional(request: Request) -> Response:
    fresh = ("If-None-Match", '"v1"') in request.headers
    return Response("", 304) if fresh else ANSWERS["/conditional"]


class TestCurl(FetcherContract):
    def make(self, allowed: str) -> Fetcher:
        return CurlFetcher(FetchLimits(), AddressGuard([allowed]), agent="levada-test/1", connections=4)


class _ThroughProxy(FetcherContract):
    """The same through a proxy, which gives none of it away."""

    proxy: str

    def make(self, allowed: str) -> Fetcher:
        guard = AddressGuard([allowed])
        inner = CurlFetcher(FetchLimits(), guard, agent="levada-test/1", connections=4)
        return RouteFetcher(inner, guard, [self.proxy])


class TestThroughHttpProxy(_ThroughProxy):
    @pytest.fixture(autouse=True)
    def through(self, tmp_path: Path) -> Iterator[None]:
        with tinyproxy(tmp_path / "proxy") as proxy:
            self.proxy = f"http://127.0.0.1:{proxy.port}"
            yield


class TestThroughSocksProxy(_ThroughProxy):
    @pytest.fixture(autouse=True)
    def through(self, tmp_path: Path) -> Iterator[None]:
        with socks_proxy(tmp_path / "proxy") as proxy:
            self.proxy = f"socks5://127.0.0.1:{proxy.port}"
            yield


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
