"""Credentials on requests: what a site gets, what others do not get, and what is said where something is missing."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.core.secrets import read_secret
from levada.core.settings import parse_settings
from levada.core.site_rules.rules import SiteRules
from levada.crawl.distributed.messages import ToFetch
from levada.crawl.visits import request_for
from levada.fetch import CredentialFetcher
from tests.scripted_web import MemoryFetcher

SECRET = "kept-to-ourselves"


def basic(pair: str) -> str:
    return "Basic " + b64encode(pair.encode()).decode()


def rules(text: str) -> SiteRules:
    return SiteRules(parse_settings(f'[[site]]\nmatch = "a.test"\n{text}\n', "the test").site)


def asked(url: str, text: str, answer: Response | None = None) -> tuple[Response, list[Request]]:
    """What came of a request by this rule, and what was sent."""
    web = MemoryFetcher({url: answer or Response(url, 200, (("content-type", "text/html"),), b"a page")})
    request = request_for(url, rules(text).visit_rule(url).request)
    return asyncio.run(CredentialFetcher(web).fetch(request)), web.requests


def sent(url: str, text: str) -> dict[str, str]:
    _, requests = asked(url, text)
    return dict(requests[0].headers)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", SECRET)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (
            'user = "me"\npassword = "env:A_SECRET"',
            "Authorization",
            basic(f"me:{SECRET}"),
        ),
        ('user = "env:A_SECRET"', "Authorization", basic(f"{SECRET}:")),
        ('bearer = "env:A_SECRET"', "Authorization", f"Bearer {SECRET}"),
        ('headers = { X-Key = "env:A_SECRET" }', "X-Key", SECRET),
        ('headers = { Cookie = "env:A_SECRET" }', "Cookie", SECRET),
        ('headers = { Cookie = "text:consent=yes" }', "Cookie", "consent=yes"),
    ],
)
def test_a_site_gets_what_its_rule_says(text: str, name: str, value: str) -> None:
    assert sent("https://a.test/", text)[name] == value


def test_credentials_go_to_their_own_site_only() -> None:
    own = rules('bearer = "env:A_SECRET"').visit_rule("https://a.test/").request
    for url in ("https://b.test/", "https://a.test:8443/", "https://x.a.test/", "https://a.test.b.test/"):
        assert rules('bearer = "env:A_SECRET"').visit_rule(url).request is None
        web = MemoryFetcher({url: Response(url, 200)})
        asyncio.run(CredentialFetcher(web).fetch(request_for(url, own)))  # even if the rule is of another site
        assert web.requests[0].headers == ()


def test_credentials_of_a_path_stay_there() -> None:
    found = SiteRules(parse_settings('[[site]]\nmatch = "a.test/x/"\nbearer = "env:A_SECRET"\n', "").site)
    assert found.visit_rule("https://a.test/y").request is None
    assert found.visit_rule("https://a.test/x/y").request is not None


def test_nothing_secret_goes_over_plain_http() -> None:
    page, requests = asked("http://a.test/", 'bearer = "env:A_SECRET"')
    assert (page.reason, page.body, requests[0].headers) == (Reason.CREDENTIALS, b"", ())
    moved = Response("http://a.test/", 301, (("location", "https://a.test/"),))
    assert asked("http://a.test/", 'bearer = "env:A_SECRET"', moved)[0].status == 301
    assert asked("http://a.test/robots.txt", 'bearer = "env:A_SECRET"')[0].reason is None
    assert sent("http://a.test/", 'bearer = "env:A_SECRET"\nplain_http = true')["Authorization"] == f"Bearer {SECRET}"


def test_a_refused_password_is_no_content(caplog: pytest.LogCaptureFixture) -> None:
    no = Response("https://a.test/", 401, (("content-type", "text/html"),), b"log in first")
    page, _ = asked("https://a.test/", 'user = "me"\npassword = "env:A_SECRET"', no)
    assert (page.reason, page.body) == (Reason.LOGIN_FAILED, b"")
    assert "does not accept the user and password" in page.detail
    assert SECRET not in caplog.text + page.detail


def test_the_cookies_of_an_answer_are_not_kept() -> None:
    told = Response("https://a.test/", 200, (("set-cookie", "session=x"), ("content-type", "text/html")), b"a page")
    page, _ = asked("https://a.test/", 'bearer = "env:A_SECRET"', told)
    assert page.headers == (("content-type", "text/html"),)


def test_a_missing_secret_is_said_once_and_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    web = MemoryFetcher({"https://a.test/": Response("https://a.test/", 200)})
    fetcher, request = (
        CredentialFetcher(web),
        request_for("https://a.test/", rules('bearer = "env:NO_SUCH_VARIABLE"').visit_rule("https://a.test/").request),
    )

    async def twice() -> Response:
        await fetcher.fetch(request)
        return await fetcher.fetch(request)

    with caplog.at_level(logging.WARNING):
        page = asyncio.run(twice())
    assert page.reason is Reason.CREDENTIALS
    assert page.detail == "the variable NO_SUCH_VARIABLE is not set: set it for the process that fetches"
    assert len(caplog.records) == 1
    assert web.requests == []


class _Ring(KeyringBackend):
    priority = 1.0

    def get_password(self, service: str, username: str) -> str | None:
        return SECRET if (service, username) == ("levada", "a.test") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


def test_a_secret_comes_from_the_environment_a_file_or_the_keyring(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    before = keyring.get_keyring()
    keyring.set_keyring(_Ring())  # type: ignore[no-untyped-call]
    try:
        for reference in ("env:A_SECRET", f"file:{tmp_path}/secret", "keyring:levada/a.test"):
            assert read_secret(reference) == SECRET
            assert sent("https://a.test/", f'bearer = "{reference}"')["Authorization"] == f"Bearer {SECRET}"
        with pytest.raises(Exception, match="store it with 'keyring set levada b'"):
            read_secret("keyring:levada/b")
    finally:
        keyring.set_keyring(before)


def _empty(path: Path) -> str:
    path.write_text("\n")
    return "is empty"


def _folder(path: Path) -> str:
    path.mkdir()
    return "cannot be read"


def _lines(path: Path) -> str:
    path.write_text(f"{SECRET}\n{SECRET}\n")
    return "has several lines"


def _nothing(path: Path) -> str:
    return "cannot be read: No such file or directory"


@pytest.mark.parametrize("make", [_empty, _folder, _lines, _nothing])
def test_a_file_without_a_secret_says_what_is_wrong(make: Callable[[Path], str], tmp_path: Path) -> None:
    said = make(tmp_path / "secret")
    page, requests = asked("https://a.test/", f'bearer = "file:{tmp_path}/secret"')
    assert page.reason is Reason.CREDENTIALS
    assert said in page.detail
    assert SECRET not in page.detail
    assert requests == []


def test_a_secret_that_is_no_header_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sch\u00f6n-geheim")
    page, _ = asked("https://a.test/", f'bearer = "file:{tmp_path}/secret"')
    assert page.detail == "the secret for bearer cannot stand in a header: it must be one line of ASCII"


def test_a_message_to_a_worker_holds_the_reference_and_not_the_secret() -> None:
    import msgspec

    rule = rules('user = "me"\npassword = "env:A_SECRET"').visit_rule("https://a.test/")
    body = msgspec.msgpack.encode(ToFetch(collection="c", leases=(), rules={1: rule}))
    assert b"env:A_SECRET" in body
    assert SECRET.encode() not in body
    assert msgspec.msgpack.decode(body, type=ToFetch).rules == {1: rule}
