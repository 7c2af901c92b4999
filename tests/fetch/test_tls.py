"""A certificate that does not verify is never accepted."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from levada.core.errors import SettingsError
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.curl import trusted_certificates
from tests.fetch.certificates import Authority
from tests.fetch.fetching import fetch, with_fetcher
from tests.fetch.servers import WebServer, answer, web
from tests.needs import package

HOME = {"/": answer(b"safe")}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def ask(context: ssl.SSLContext, ca_file: str | None, host: str = "127.0.0.1") -> Response:
    with web(HOME, context) as server:
        return fetch(f"https://{host}:{server.port}/", [server.address], ca_file=ca_file)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "news.localhost"])
def test_a_good_certificate_is_accepted(authority: Authority, host: str) -> None:
    response = ask(authority.server(host), authority.ca_file, host)
    assert (response.status, response.body, response.reason) == (200, b"safe", None)


def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    assert_refused(ask(authority.server("127.0.0.1", ended=True), authority.ca_file))


def test_a_certificate_for_another_host_is_refused(authority: Authority) -> None:
    assert_refused(ask(authority.server("other.example", "127.0.0.2"), authority.ca_file))


def test_a_wildcard_does_not_cover_two_labels(authority: Authority) -> None:
    assert_refused(ask(authority.server("*.localhost"), authority.ca_file, "a.b.localhost"))


def test_a_self_signed_certificate_is_refused(authority: Authority) -> None:
    assert_refused(ask(authority.server("127.0.0.1", self_signed=True), authority.ca_file))


def test_an_authority_that_nobody_trusts_is_refused(authority: Authority, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    assert_refused(ask(stranger.server("127.0.0.1"), authority.ca_file))


def test_our_own_authority_is_not_trusted_by_default(authority: Authority) -> None:
    assert_refused(ask(authority.server("127.0.0.1"), None))


def test_a_missing_authority_file_is_a_wrong_setting(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.pem cannot be read"):
        ask(authority.server("127.0.0.1"), str(tmp_path / "missing.pem"))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_an_old_tls_version_is_refused(authority: Authority) -> None:
    context = authority.server("127.0.0.1")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert_refused(ask(context, authority.ca_file))


class PlainServer(WebServer):
    def talk(self, connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(answer(b"plain", status="400 Bad Request"))


def test_plain_http_on_a_tls_port_is_refused(authority: Authority) -> None:
    with web(HOME, kind=PlainServer) as server:
        assert_refused(fetch(f"https://{server.address}/", [server.address], ca_file=authority.ca_file))


def test_a_handshake_that_does_not_end_is_a_failed_connection(authority: Authority) -> None:
    with web(HOME) as server:  # waits for a request in plain text
        limits = FetchLimits(connect_seconds=0.2)
        response = fetch(f"https://{server.address}/", [server.address], limits, authority.ca_file)
    assert (response.status, response.reason) == (0, Reason.CONNECT)


def test_the_machines_own_store_is_found_by_the_environment(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca_file)
    assert trusted_certificates() == authority.ca_file
    assert ask(authority.server("127.0.0.1"), None).body == b"safe"


def test_http_1_is_spoken_where_http_2_is_not_offered(authority: Authority) -> None:
    response = ask(authority.server("127.0.0.1", protocols=("http/1.1",)), authority.ca_file)
    assert (response.body, response.http_version) == (b"safe", "1.1")


def ask_http2(authority: Authority, *paths: str, limits: FetchLimits | None = None) -> tuple[list[Response], int]:
    package("h2")
    from tests.fetch.http2 import Http2Server

    async def together(fetcher: CurlFetcher) -> list[Response]:
        first = await fetcher.fetch(Request(server.url + paths[0]))
        return [first, *await asyncio.gather(*(fetcher.fetch(Request(server.url + path)) for path in paths[1:]))]

    context = authority.server("127.0.0.1", protocols=("h2",))
    with web({}, context, kind=Http2Server) as server:
        return with_fetcher(together, [server.address], limits, authority.ca_file), server.connections


def test_http_2_is_negotiated_and_shares_one_connection(authority: Authority) -> None:
    responses, connections = ask_http2(authority, *["/"] * 5, "/long")
    assert {response.http_version for response in responses} == {"2"}
    assert {response.reason for response in responses} == {None}
    assert responses[0].body == b"over http/2 "
    assert len(responses[-1].body) == 12_000
    assert responses[0].headers == (("content-type", "text/html"), ("x-kind", "h2"))
    assert connections == 1


def test_an_endless_http_2_stream_stops_at_the_cap_and_spares_its_neighbours(authority: Authority) -> None:
    responses, _ = ask_http2(authority, "/", "/endless", "/", limits=FetchLimits(max_bytes=300_000, seconds=10))
    assert [response.reason for response in responses] == [None, Reason.BYTES, None]


def assert_refused(response: Response) -> None:
    assert (response.status, response.body, response.reason) == (0, b"", Reason.TLS), response
    assert response.detail
