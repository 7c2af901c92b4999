"""Client certificates, at a real nginx that asks for one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.collection.components import make_fetcher
from levada.core.reasons import Reason
from levada.core.records import Response
from levada.core.settings import parse_settings
from levada.core.site_rules.rules import SiteRules
from levada.crawl.visits import request_for
from tests.fetch.certificates import Authority
from tests.fetch.servers import WebServer, answer, web
from tests.servers.forward_proxies import tinyproxy
from tests.servers.nginx import nginx

PASSWORD = "hush-of-the-key"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def site(tmp_path: Path, authority: Authority) -> Iterator[int]:
    """It tells whose certificate it was shown."""
    own = authority.files("127.0.0.1")
    block = (
        f"ssl_certificate {own};\nssl_certificate_key {own};\n"
        f"ssl_client_certificate {authority.ca_file};\nssl_verify_client on;\n"
        'location / { default_type text/plain; return 200 "hello $ssl_client_s_dn"; }\n'
    )
    with nginx(tmp_path / "nginx", block, tls=True) as port:
        yield port


def fetched(tmp_path: Path, rule: str, *urls: str, allow: tuple[str, ...], proxy: str = "") -> list[Response]:
    fetch = f'[fetch]\nca_file = "{tmp_path}/authority.pem"\nproxy = {[proxy] if proxy else []}\n'
    given = parse_settings(f"[guard]\nallow = {list(allow)}\n{fetch}[[site]]\n{rule}\n", "the test")

    async def run() -> list[Response]:
        fetcher, rules = make_fetcher(given), SiteRules(given.site)
        try:
            return [await fetcher.fetch(request_for(url, rules.visit_rule(url).request)) for url in urls]
        finally:
            await fetcher.close()

    return asyncio.run(run())


def rule_for(site: int, certificate: Path, key: Path | str, more: str = 'client_key_password = "env:KEY"') -> str:
    where = f'match = "127.0.0.1:{site}"\nclient_certificate = "{certificate}"\n'
    return f'{where}client_key = "{key}"\n{more}'


def test_a_site_is_shown_the_certificate(
    tmp_path: Path, site: int, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", PASSWORD)
    rule = rule_for(site, *authority.client("me", PASSWORD))
    allow = (f"127.0.0.1:{site}",)
    pages = fetched(tmp_path, rule, *[f"https://127.0.0.1:{site}/"] * 2, allow=allow)
    assert [page.body for page in pages] == [b"hello CN=me"] * 2
    with tinyproxy(tmp_path / "proxy") as proxy:
        through = f"http://127.0.0.1:{proxy.port}"
        (page,) = fetched(tmp_path, rule, f"https://127.0.0.1:{site}/", allow=allow, proxy=through)
        assert page.body == b"hello CN=me"
        assert proxy.asked()


def test_no_other_site_is_shown_it(tmp_path: Path, site: int, authority: Authority) -> None:
    other = f'match = "127.0.0.1:1"\nclient_certificate = "{authority.files("me")}"'
    (page,) = fetched(tmp_path, other, f"https://127.0.0.1:{site}/", allow=(f"127.0.0.1:{site}",))
    assert (page.status, b"No required SSL certificate was sent" in page.body) == (400, True)


@pytest.mark.parametrize(
    ("password", "reason", "said"),
    [
        ("wrong", Reason.CREDENTIALS, "the client certificate or its key cannot be used"),
        (None, Reason.CREDENTIALS, "the variable KEY is not set"),
    ],
)
def test_a_key_that_does_not_open_is_said(
    password: str | None,
    reason: Reason,
    said: str,
    tmp_path: Path,
    site: int,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if password:
        monkeypatch.setenv("KEY", password)
    rule = rule_for(site, *authority.client("me", PASSWORD))
    (page,) = fetched(tmp_path, rule, f"https://127.0.0.1:{site}/", allow=(f"127.0.0.1:{site}",))
    assert page.reason is reason
    assert said in page.detail


def test_a_certificate_that_is_not_there_is_said(tmp_path: Path, site: int) -> None:
    rule = rule_for(site, tmp_path / "nothing.pem", tmp_path / "nothing.key", "")
    (page,) = fetched(tmp_path, rule, f"https://127.0.0.1:{site}/", allow=(f"127.0.0.1:{site}",))
    assert (page.status, page.reason) == (0, Reason.CREDENTIALS)
    assert f"{tmp_path}/nothing.pem cannot be read" in page.detail


def test_a_certificate_that_the_site_does_not_accept_is_no_content(tmp_path: Path, site: int) -> None:
    strangers = tmp_path / "strangers"
    strangers.mkdir()
    stranger = Authority(strangers, "stranger").files("me")
    rule = rule_for(site, stranger, stranger, "")
    (page,) = fetched(tmp_path, rule, f"https://127.0.0.1:{site}/", allow=(f"127.0.0.1:{site}",))
    assert (page.status, page.reason, page.body) == (0, Reason.LOGIN_FAILED, b"")
    assert "does not accept the client certificate" in page.detail


def test_nothing_of_it_goes_over_plain_http(tmp_path: Path, authority: Authority) -> None:
    with web({"/": answer(b"open")}) as plain:
        server: WebServer = plain
        rule = f'match = "{server.address}"\nclient_certificate = "{authority.files("me")}"'
        (page,) = fetched(tmp_path, rule, f"{server.url}/", allow=(server.address,))
        assert (page.reason, page.body) == (Reason.CREDENTIALS, b"")
