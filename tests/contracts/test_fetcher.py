"""What holds for every `Fetcher`? One script, answered from memory and over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from levada.adapters.guard import AddressGuard
from levada.adapters.memory_web import Answer as Scripted
from levada.adapters.memory_web import MemoryFetcher
from levada.adapters.web import CurlFetcher, FetchLimits
from levada.ports import Fetcher
from levada.reasons import Reason
from levada.records import Request, Response
from tests.adapters.servers import Answer, Exchange, answer, web

SERVED: dict[str, Answer] = {
    "/": answer(b"front", "Content-Type: text/html", 'ETag: "v1"'),
    "/away": answer(b"", "Location: /", status="301 Moved Permanently"),
    "/gone": answer(b"", status="410 Gone"),
    "/long": answer(b"x" * 1000),
}
SCRIPT: dict[str, Scripted] = {
    "/": Response("", 200, (("content-type", "text/html"), ("etag", '"v1"')), b"front"),
    "/away": Response("", 301, (("location", "/"),)),
    "/gone": Response("", 410),
    "/long": Response("", 200, (), b"x" * 1000),
}


def conditional(exchange: Exchange) -> None:
    fresh = exchange.header("if-none-match") == '"v1"'
    exchange.send(answer(status="304 Not Modified") if fresh else answer(b"known"))


def conditional_from_memory(request: Request) -> Response:
    fresh = ("If-None-Match", '"v1"') in request.headers
    return Response("", 304) if fresh else Response("", 200, (), b"known")


@asynccontextmanager
async def closing(fetcher: Fetcher) -> AsyncIterator[Fetcher]:
    try:
        yield fetcher
    finally:
        await fetcher.close()


@contextmanager
def from_memory() -> Iterator[tuple[str, Callable[[], Fetcher]]]:
    origin = "http://site.example"
    script = {**SCRIPT, "/conditional": conditional_from_memory}
    yield origin, lambda: MemoryFetcher({origin + path: reply for path, reply in script.items()})


@contextmanager
def over_a_connection() -> Iterator[tuple[str, Callable[[], Fetcher]]]:
    with web({**SERVED, "/conditional": conditional}) as server:
        guard = AddressGuard([server.address])
        yield server.url, lambda: CurlFetcher(FetchLimits(), guard, agent="levada-test/1", connections=4)


class Web:
    def __init__(self, origin: str, make: Callable[[], Fetcher]) -> None:
        self.origin = origin
        self._make = make

    def use(self, story: Callable[[Fetcher], Awaitable[None]]) -> None:
        async def run() -> None:
            async with closing(self._make()) as fetcher:
                await story(fetcher)

        asyncio.run(run())

    def ask(self, path: str, headers: tuple[tuple[str, str], ...] = (), keep_bytes: int | None = None) -> Response:
        answers: list[Response] = []

        async def story(fetcher: Fetcher) -> None:
            url = path if ":" in path else self.origin + path
            answers.append(await fetcher.fetch(Request(url, headers, keep_bytes)))

        self.use(story)
        return answers[0]


@pytest.fixture(params=[from_memory, over_a_connection], ids=["memory", "curl"])
def site(request: pytest.FixtureRequest) -> Iterator[Web]:
    with request.param() as (origin, make):
        yield Web(origin, make)


def test_an_answer_names_the_url_that_was_asked(site: Web) -> None:
    response = site.ask("/")
    assert (response.url, response.status, response.body) == (f"{site.origin}/", 200, b"front")
    assert response.reason is None
    assert response.header("etag") == '"v1"'
    assert response.header("x-missing") is None


def test_a_redirect_is_answered_not_followed(site: Web) -> None:
    response = site.ask("/away")
    assert (response.status, response.header("location")) == (301, "/")


@pytest.mark.parametrize(("path", "status"), [("/gone", 410), ("/nowhere", 404)])
def test_a_status_is_no_reason(site: Web, path: str, status: int) -> None:
    response = site.ask(path)
    assert (response.status, response.reason) == (status, None)


def test_a_request_header_reaches_the_site(site: Web) -> None:
    assert site.ask("/conditional").status == 200
    assert site.ask("/conditional", (("If-None-Match", '"v1"'),)).status == 304


def test_only_the_beginning_is_kept_if_only_that_is_wanted(site: Web) -> None:
    response = site.ask("/long", keep_bytes=10)
    assert (response.status, response.body, response.reason) == (200, b"x" * 10, None)
    assert len(site.ask("/long").body) == 1000


def test_an_unknown_host_is_a_dns_failure_with_a_sentence(site: Web) -> None:
    response = site.ask("http://unknown.invalid/")
    assert (response.status, response.body, response.reason) == (0, b"", Reason.DNS)
    assert response.detail.endswith(".")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.example/", "data:text/html,hi", "javascript:x"])
def test_another_scheme_is_refused(site: Web, url: str) -> None:
    assert site.ask(url).reason is Reason.SCHEME


def test_many_are_asked_at_once_and_each_gets_its_own_answer(site: Web) -> None:
    async def story(fetcher: Fetcher) -> None:
        paths = ["/", "/gone", "/long", "/nowhere"] * 10
        responses = await asyncio.gather(*(fetcher.fetch(Request(site.origin + path)) for path in paths))
        assert [response.url for response in responses] == [site.origin + path for path in paths]
        assert [response.status for response in responses] == [200, 410, 200, 404] * 10

    site.use(story)


def test_a_closed_fetcher_answers_with_a_reason_and_may_be_closed_again(site: Web) -> None:
    async def story(fetcher: Fetcher) -> None:
        await fetcher.close()
        assert (await fetcher.fetch(Request(f"{site.origin}/"))).reason is Reason.CONNECT

    site.use(story)


def test_a_cancelled_fetch_disturbs_no_other(site: Web) -> None:
    async def story(fetcher: Fetcher) -> None:
        fetches = [asyncio.ensure_future(fetcher.fetch(Request(f"{site.origin}/"))) for _ in range(6)]
        await asyncio.sleep(0)
        for fetch in fetches[::2]:
            fetch.cancel()
        ended = await asyncio.gather(*fetches, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended[::2])
        assert [each.body for each in ended[1::2] if isinstance(each, Response)] == [b"front"] * 3

    site.use(story)


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
