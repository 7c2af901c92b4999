"""Contract suite of the fetcher: a site with scripted answers, fetched over a real connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.testing.common import in_loop

ANSWERS: dict[str, Response] = {
    "/": Response("", 200, (("content-type", "text/html"), ("etag", '"v1"')), b"front"),
    "/away": Response("", 301, (("location", "/"),)),
    "/gone": Response("", 410),
    "/long": Response("", 200, (), b"x" * 1000),
    "/conditional": Response("", 200, (), b"known"),  # 304 to a request with If-None-Match: "v1"
}
"""The answers of the suite's site by path; 404 for any other."""


class Site:
    """A site with these answers, and fetchers that can reach it."""

    def __init__(self, origin: str, make: Callable[[], Fetcher]) -> None:
        self.origin = origin
        self._make = make

    @asynccontextmanager
    async def fetcher(self) -> AsyncIterator[Fetcher]:
        """A new fetcher, closed at the end."""
        fetcher = self._make()
        try:
            yield fetcher
        finally:
            await fetcher.close()

    def get(self, path: str, headers: tuple[tuple[str, str], ...] = (), keep_bytes: int | None = None) -> Response:
        """Fetch a path of the site, or a whole URL."""

        async def fetch() -> Response:
            async with self.fetcher() as fetcher:
                return await fetcher.fetch(Request(path if ":" in path else self.origin + path, headers, keep_bytes))

        return asyncio.run(fetch())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        answer = ANSWERS.get(self.path, Response("", 404))
        if self.path == "/conditional" and self.headers["if-none-match"] == '"v1"':
            answer = Response("", 304)
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnects early is part of the suite."""


@contextmanager
def served_site() -> Iterator[str]:
    """The `host:port` of a loopback server with the answers of the suite."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class FetcherContract:
    """A fetcher answers every request with a `Response`; a failure is a reason in it.

    ```python
    class TestMyFetcher(FetcherContract):
        def make(self, allowed: str) -> Fetcher:
            return MyFetcher(allow=[allowed])
    ```
    """

    def make(self, allowed: str) -> Fetcher:
        """A new fetcher; `allowed` is the loopback `host:port` that it must be able to reach."""
        raise NotImplementedError

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with served_site() as address:
            yield Site(f"http://{address}", lambda: self.make(address))

    def test_a_response_names_the_requested_url(self, site: Site) -> None:
        response = site.get("/")
        assert (response.url, response.status, response.body) == (f"{site.origin}/", 200, b"front")
        assert response.reason is None
        assert response.header("etag") == '"v1"'
        assert response.header("x-missing") is None

    def test_a_redirect_is_answered_not_followed(self, site: Site) -> None:
        response = site.get("/away")
        assert (response.status, response.header("location")) == (301, "/")

    @pytest.mark.parametrize(("path", "status"), [("/gone", 410), ("/nowhere", 404)])
    def test_a_status_is_no_reason(self, site: Site, path: str, status: int) -> None:
        response = site.get(path)
        assert (response.status, response.reason) == (status, None)

    def test_a_request_header_reaches_the_site(self, site: Site) -> None:
        assert site.get("/conditional").status == 200
        assert site.get("/conditional", (("If-None-Match", '"v1"'),)).status == 304

    def test_only_the_start_of_a_body_is_kept_if_only_that_is_wanted(self, site: Site) -> None:
        response = site.get("/long", keep_bytes=10)
        assert (response.status, response.body, response.reason) == (200, b"x" * 10, None)
        assert len(site.get("/long").body) == 1000

    def test_an_unknown_host_is_a_dns_failure_with_a_sentence(self, site: Site) -> None:
        response = site.get("http://unknown.invalid/")
        assert (response.status, response.body, response.reason) == (0, b"", Reason.DNS)
        assert response.detail.endswith(".")

    @pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.example/", "data:text/html,hi", "javascript:x"])
    def test_another_scheme_is_refused(self, site: Site, url: str) -> None:
        assert site.get(url).reason is Reason.SCHEME

    @in_loop
    async def test_many_requests_at_once_get_their_own_responses(self, site: Site) -> None:
        async with site.fetcher() as fetcher:
            paths = ["/", "/gone", "/long", "/nowhere"] * 10
            responses = await asyncio.gather(*(fetcher.fetch(Request(site.origin + path)) for path in paths))
            assert [response.url for response in responses] == [site.origin + path for path in paths]
            assert [response.status for response in responses] == [200, 410, 200, 404] * 10

    @in_loop
    async def test_a_closed_fetcher_answers_with_a_reason_and_may_be_closed_again(self, site: Site) -> None:
        async with site.fetcher() as fetcher:
            await fetcher.close()
            assert (await fetcher.fetch(Request(f"{site.origin}/"))).reason is Reason.CONNECT

    @in_loop
    async def test_a_cancelled_fetch_disturbs_no_other(self, site: Site) -> None:
        async with site.fetcher() as fetcher:
            fetches = [asyncio.ensure_future(fetcher.fetch(Request(f"{site.origin}/"))) for _ in range(6)]
            await asyncio.sleep(0)
            for fetch in fetches[::2]:
                fetch.cancel()
            ended = await asyncio.gather(*fetches, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in ended[::2])
            assert [each.body for each in ended[1::2] if isinstance(each, Response)] == [b"front"] * 3
