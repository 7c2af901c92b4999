"""Requests through real proxies: what these are told, what happens when one does not work, and what the guard says."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from levada.collection.components import make_fetcher
from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.core.settings import Settings, parse_settings
from levada.core.site_rules.rules import SiteRules
from levada.crawl.visits import request_for
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.guard import AddressGuard
from levada.fetch.proxies import RouteFetcher
from tests.fetch.certificates import Authority
from tests.fetch.servers import WebServer, answer, canary, web
from tests.fetch.test_guard import SPELLINGS
from tests.scripted_web import MemoryFetcher
from tests.servers.forward_proxies import ForwardProxy, socks_proxy, tinyproxy
from tests.servers.private import free_ports

PAGE = answer(b"a page", "Content-Type: text/plain")
PASSWORD = "hush-of-the-proxy"


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web({"/": PAGE}) as server:
        yield server


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[WebServer]:
    with web({"/": PAGE}, Authority(tmp_path, "authority").server("localhost")) as server:
        yield server


@pytest.fixture
def http_proxy(tmp_path: Path) -> Iterator[ForwardProxy]:
    with tinyproxy(tmp_path / "tinyproxy") as proxy:
        yield proxy


@pytest.fixture
def socks(tmp_path: Path) -> Iterator[ForwardProxy]:
    with socks_proxy(tmp_path / "socks") as proxy:
        yield proxy


def settings(proxies: list[str], *servers: WebServer, tmp_path: Path | None = None, more: str = "") -> Settings:
    allow = [f"127.0.0.1:{each.port}" for each in servers]
    ca = f'ca_file = "{tmp_path}/authority.pem"\n' if tmp_path else ""
    return parse_settings(f"[guard]\nallow = {allow}\n[fetch]\nproxy = {proxies}\n{ca}{more}", "the test")


def fetched(given: Settings, *urls: str) -> list[Response]:
    """The answers to these, one after the other."""

    async def run() -> list[Response]:
        fetcher, rules = make_fetcher(given), SiteRules(given.site)
        try:
            return [await fetcher.fetch(request_for(url, rules.visit_rule(url).request)) for url in urls]
        finally:
            await fetcher.close()

    return asyncio.run(run())


def by_name(server: WebServer) -> str:
    return f"{server.url.partition(':')[0]}://localhost:{server.port}/"


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_is_told_the_address_that_was_checked(
    scheme: str, http_proxy: ForwardProxy, socks: ForwardProxy, site: WebServer, secure: WebServer, tmp_path: Path
) -> None:
    proxy = http_proxy if scheme == "http" else socks
    given = settings([f"{scheme}://127.0.0.1:{proxy.port}"], site, secure, tmp_path=tmp_path)
    for server in (site, secure):
        (page,) = fetched(given, by_name(server))
        assert (page.status, page.body, page.address) == (200, b"a page", "127.0.0.1"), page
        assert server.exchanges[0].header("host") == f"localhost:{server.port}"
        assert f"127.0.0.1:{server.port}" in proxy.asked()[-1]
    assert not any("localhost" in each for each in proxy.asked())


@pytest.mark.parametrize("scheme", ["httph", "socks5h"])
def test_a_proxy_that_resolves_names_is_told_the_name_and_warned_of(
    scheme: str, http_proxy: ForwardProxy, socks: ForwardProxy, site: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = http_proxy if scheme == "httph" else socks
    given = settings([f"{scheme}://127.0.0.1:{proxy.port}"], site, more="")
    given = given.replace({"guard.allow": [f"127.0.0.1:{site.port}", f"[::1]:{site.port}"]})
    with caplog.at_level(logging.WARNING):
        pages = fetched(given, by_name(site), by_name(site))
    assert [page.body for page in pages] == [b"a page"] * 2
    assert "localhost" in proxy.asked()[-1]
    assert len([each for each in caplog.messages if "resolves names itself" in each]) == 1


def test_no_proxy_is_asked_for_what_the_guard_refuses(http_proxy: ForwardProxy, socks: ForwardProxy) -> None:
    inside = (
        "http://127.0.0.1:8/",
        "http://localhost:8080/",
        "http://169.254.169.254/",
        "https://[::1]/",
        "http://10.0.0.1/",
    )
    for scheme, proxy in (("http", http_proxy), ("socks5", socks), ("httph", http_proxy), ("socks5h", socks)):
        pages = fetched(settings([f"{scheme}://127.0.0.1:{proxy.port}"]), *inside)
        assert [page.reason for page in pages] == [Reason.ADDRESS] * len(inside)
        assert proxy.asked() == []


def test_proxies_take_turns_and_a_dead_one_is_left_out(
    http_proxy: ForwardProxy, socks: ForwardProxy, site: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    (nobody,) = free_ports(1)
    names = [f"http://127.0.0.1:{http_proxy.port}", f"socks5://127.0.0.1:{nobody}", f"socks5://127.0.0.1:{socks.port}"]
    pages = fetched(settings(names, site), *[f"{site.url}/"] * 6)
    assert [page.status for page in pages] == [200] * 6
    assert http_proxy.asked()
    assert socks.asked()
    told = [each for each in caplog.messages if f"127.0.0.1:{nobody}" in each]
    assert told == [
        f"the proxy socks5://127.0.0.1:{nobody} does not work: it cannot be reached; "
        "it is left out, and tried again in 30 s"
    ]


def test_a_dead_proxy_is_tried_again(tmp_path: Path, site: WebServer) -> None:
    (port,) = free_ports(1)
    now, given = [0.0], settings([f"http://127.0.0.1:{port}"], site)

    async def run() -> None:
        fetcher = RouteFetcher(_curl(given), AddressGuard(given.guard.allow), given.fetch.proxy, now=lambda: now[0])
        try:
            page = await fetcher.fetch(Request(f"{site.url}/"))
            assert page.reason is Reason.PROXY
            assert page.detail == f"the proxy leads nowhere (http://127.0.0.1:{port}: it cannot be reached)"
            with tinyproxy(tmp_path / "late", port=port):
                assert (await fetcher.fetch(Request(f"{site.url}/"))).reason is Reason.PROXY  # it is left out
                now[0] = 31.0
                assert (await fetcher.fetch(Request(f"{site.url}/"))).status == 200
        finally:
            await fetcher.close()

    asyncio.run(run())


def _curl(given: Settings) -> Fetcher:
    return CurlFetcher(FetchLimits(), AddressGuard(given.guard.allow), agent="levada")


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_the_password_of_a_proxy_comes_by_reference(
    kind: str, tmp_path: Path, site: WebServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = tinyproxy if kind == "http" else socks_proxy
    with server(tmp_path / "proxy", login=f"me {PASSWORD}") as proxy:
        given = settings(["env:A_PROXY"], site)
        monkeypatch.setenv("A_PROXY", f"{kind}://me:{PASSWORD}@127.0.0.1:{proxy.port}")
        assert fetched(given, f"{site.url}/")[0].status == 200
        assert "roxy" not in site.exchanges[0].head
        monkeypatch.setenv("A_PROXY", f"{kind}://me:wrong-{PASSWORD}@127.0.0.1:{proxy.port}")
        (page,) = fetched(given, f"{site.url}/")
        assert page.reason is Reason.PROXY
        assert "user and password" in page.detail
        assert "env:A_PROXY" in page.detail
        for wrong in (f"me:{PASSWORD}@proxy", f"http://me:{PASSWORD}@proxy", f"ftp://me:{PASSWORD}@proxy:1"):
            monkeypatch.setenv("A_PROXY", wrong)
            assert "what env:A_PROXY holds is no address of a proxy" in fetched(given, f"{site.url}/")[0].detail
    assert len(site.exchanges) == 1
    assert PASSWORD not in caplog.text + page.detail


def test_a_site_that_a_proxy_does_not_open_is_no_dead_proxy(
    tmp_path: Path, site: WebServer, secure: WebServer, socks: ForwardProxy
) -> None:
    with tinyproxy(tmp_path / "strict", ports=str(secure.port)) as strict:
        only = f"http://127.0.0.1:{strict.port}"
        given = settings([only], site, secure, tmp_path=tmp_path)
        refused, page = fetched(given, f"{site.url}/", by_name(secure))
        assert refused.reason is Reason.PROXY
        assert "it does not connect to the site (status 403)" in refused.detail
        assert page.status == 200
        both = settings([only, f"socks5://127.0.0.1:{socks.port}"], site, secure)
        assert [page.status for page in fetched(both, f"{site.url}/", f"{site.url}/")] == [200, 200]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_site_that_is_down_is_not_the_fault_of_the_proxy(
    scheme: str, http_proxy: ForwardProxy, socks: ForwardProxy, site: WebServer
) -> None:
    proxy = http_proxy if scheme == "http" else socks
    (nobody,) = free_ports(1)
    given = settings([f"{scheme}://127.0.0.1:{proxy.port}"], site)
    given = given.replace({"guard.allow": [*given.guard.allow, f"127.0.0.1:{nobody}"]})
    down, page = fetched(given, f"http://127.0.0.1:{nobody}/", f"{site.url}/")
    assert down.reason is Reason.CONNECT
    assert page.status == 200


def test_a_site_has_proxies_of_its_own_or_none(http_proxy: ForwardProxy, site: WebServer) -> None:
    (nobody,) = free_ports(1)
    match = f'[[site]]\nmatch = "{site.address}"\n'
    directly = settings([f"http://127.0.0.1:{nobody}"], site, more=f"{match}proxy = []")
    assert fetched(directly, f"{site.url}/")[0].status == 200
    assert http_proxy.asked() == []
    through = settings([], site, more=f'{match}proxy = ["http://127.0.0.1:{http_proxy.port}"]')
    assert fetched(through, f"{site.url}/")[0].status == 200
    assert len(http_proxy.asked()) == 1


def test_a_session_keeps_to_one_proxy(http_proxy: ForwardProxy, socks: ForwardProxy, site: WebServer) -> None:
    names = [f"http://127.0.0.1:{http_proxy.port}", f"socks5://127.0.0.1:{socks.port}"]
    given = settings(names, site, more=f'[[site]]\nmatch = "{site.address}"\ncookies = true')
    fetched(given, *[f"{site.url}/"] * 4)
    assert not (http_proxy.asked() and socks.asked())


def test_a_connection_through_a_proxy_is_used_again(http_proxy: ForwardProxy, site: WebServer) -> None:
    given = settings([f"http://127.0.0.1:{http_proxy.port}"], site)
    assert [page.status for page in fetched(given, *[f"{site.url}/"] * 5)] == [200] * 5
    assert site.connections == 1


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x05\xff", b"\x00" * 100])
def test_what_is_no_proxy_is_left_out(scheme: str, said: bytes, site: WebServer) -> None:
    class Other(WebServer):
        def talk(self, connection: socket.socket) -> None:
            connection.recv(65536)
            connection.sendall(said)

    with web({}, kind=Other) as other:
        (page,) = fetched(settings([f"{scheme}://{other.address}"], site), f"{site.url}/")
    assert page.reason is Reason.PROXY, page
    assert site.exchanges == []


class _Lost(WebServer):
    """A proxy that reaches nothing."""

    def talk(self, connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")


def test_a_proxy_that_reaches_no_site_is_left_out(site: WebServer, http_proxy: ForwardProxy) -> None:
    with web({}, kind=_Lost) as lost:
        given = settings([f"http://{lost.address}"], site)
        pages = fetched(given, *[f"{site.url}/"] * 6)
        assert [page.reason for page in pages] == [*[Reason.CONNECT] * 4, Reason.PROXY, Reason.PROXY]
        both = settings([f"http://{lost.address}", f"http://127.0.0.1:{http_proxy.port}"], site)
        pages = fetched(both, *[f"{site.url}/"] * 20)
        assert [page.reason for page in pages[9:]] == [None] * 11


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_site_that_breaks_off_is_not_the_fault_of_the_proxy(
    scheme: str, http_proxy: ForwardProxy, socks: ForwardProxy
) -> None:
    proxy = http_proxy if scheme == "http" else socks
    with web({"/": PAGE, "/reset": lambda exchange: exchange.reset(), "/nothing": lambda exchange: None}) as site:
        given = settings([f"{scheme}://127.0.0.1:{proxy.port}"], site)
        urls = [f"{site.url}/{path}" for path in ("", "reset", "nothing", "reset", "")]
        reasons = [page.reason for page in fetched(given, *urls)]
    assert reasons == [None, Reason.PROTOCOL, Reason.PROTOCOL, Reason.PROTOCOL, None]


def test_a_proxy_may_be_reached_by_tls(tmp_path: Path, http_proxy: ForwardProxy) -> None:
    class Tunnel(WebServer):
        def talk(self, connection: socket.socket) -> None:
            with socket.create_connection(("127.0.0.1", http_proxy.port)) as inner:
                self._start(_copied, inner, connection)
                _copied(connection, inner)

    authority = Authority(tmp_path, "authority")
    with (
        web({"/": PAGE}, authority.server("localhost")) as site,
        web({}, authority.server("127.0.0.1"), kind=Tunnel) as tunnel,
        web({}, authority.server("elsewhere.test"), kind=Tunnel) as other,
    ):
        (page,) = fetched(settings([f"https://{tunnel.address}"], site, tmp_path=tmp_path), by_name(site))
        assert page.body == b"a page", page
        assert f"CONNECT 127.0.0.1:{site.port}" in http_proxy.asked()[-1]
        (page,) = fetched(settings([f"https://{other.address}"], site, tmp_path=tmp_path), by_name(site))
        assert page.reason is Reason.PROXY
        assert len(site.exchanges) == 1


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


def test_a_fetcher_that_takes_no_routes_sends_nothing(site: WebServer) -> None:
    memory = MemoryFetcher({f"{site.url}/": Response(f"{site.url}/", 200)})
    fetcher = RouteFetcher(memory, AddressGuard(), ("http://127.0.0.1:3128",), takes_routes=False)
    page = asyncio.run(fetcher.fetch(Request(f"{site.url}/")))
    assert page.reason is Reason.PROXY
    assert memory.requests == []


def test_a_proxy_is_told_an_address_that_the_guard_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a name with good and bad addresses a checked one is told; a proxy that resolves it may not have the name."""
    answers = {"mixed.test": ["10.0.0.1", "2606:4700::1111", "93.184.215.14"], "six.test": ["2606:4700::1111"]}

    def resolved(host: str, port: int, *_rest: object, **_named: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in answers[host]]

    told: list[str] = []

    class Noting:
        async def fetch(self, request: Request) -> Response:
            assert request.route is not None
            told.append(request.route.address)
            return Response(request.url, 200)

        async def close(self) -> None:
            pass

    async def asked(proxy: str, host: str) -> Reason | None:
        fetcher = RouteFetcher(Noting(), AddressGuard(), (proxy,))
        return (await fetcher.fetch(Request(f"https://{host}/"))).reason

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert [asyncio.run(asked("http://p:1", host)) for host in answers] == [None, None]
    assert told == ["93.184.215.14", "2606:4700::1111"]
    assert asyncio.run(asked("socks5h://p:1", "mixed.test")) is Reason.ADDRESS
    assert asyncio.run(asked("socks5h://p:1", "six.test")) is None


@pytest.mark.parametrize("scheme", ["http", "socks5", "httph", "socks5h"])
def test_no_spelling_of_a_private_address_reaches_a_listener_through_a_proxy(
    scheme: str, http_proxy: ForwardProxy, socks: ForwardProxy
) -> None:
    proxy = http_proxy if scheme.startswith("http") else socks
    given = settings([f"{scheme}://127.0.0.1:{proxy.port}"])
    with canary() as (port, reached):
        pages = fetched(given, *[f"{kind}://{host}:{port}/" for host in SPELLINGS for kind in ("http", "https")])
        assert reached() == 0
    assert {page.status for page in pages} <= {0}
    if scheme in ("http", "socks5"):
        assert proxy.asked() == []


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_that_says_nothing_is_left_out_in_the_end(scheme: str, site: WebServer) -> None:
    class Silent(WebServer):
        def talk(self, connection: socket.socket) -> None:
            self.ending.wait(30)

    with web({}, kind=Silent) as silent:
        given = settings([f"{scheme}://{silent.address}"], site).replace({"fetch.connect_seconds": 0.1})
        pages = fetched(given, *[f"{site.url}/"] * 6)
    assert [page.reason for page in pages][4:] == [Reason.PROXY] * 2
    assert {page.reason for page in pages[:4]} <= {Reason.CONNECT, Reason.PROXY}
