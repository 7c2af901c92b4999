"""Login by OpenID Connect at a real provider on the loopback, and everything that can be wrong with it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener
from urllib.request import Request as HttpRequest

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from playwright.sync_api import expect
from starlette.testclient import TestClient

from levada.accounts.accounts import Accounts
from levada.accounts.openid import LoggedIn, OpenIdError, OpenIdLogin, Provider
from levada.collection.components import make_fetcher
from levada.core.errors import UsageError
from levada.core.folder import DataFolder
from levada.core.records import Request, Response
from levada.core.settings import Settings
from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.login import Login
from levada.serve.view import View
from tests.needs import missing
from tests.serve.browser_session import browser, chromium, open_page
from tests.serve.served import served
from tests.serve.test_rights import BY

CLIENT, REDIRECT = "levada", "http://127.0.0.1:8400/login/openid/callback"
BROWSER = {"accept": "text/html"}


_PROVIDER = """
import oidc_provider_mock, sys
people = [
    oidc_provider_mock.User(sub="subject-1", claims={"email": "ada@example.org", "email_verified": True}),
    oidc_provider_mock.User(sub="subject-2", claims={"email": "ada@example.org", "email_verified": False}),
]
with oidc_provider_mock.run_server_in_thread(user_claims=people) as server:
    print(server.server_port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider at which anybody logs in by saying who they are. It ends with its input."""
    command = [sys.executable, "-W", "ignore", "-c", _PROVIDER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=30)


def allowed(issuer: str) -> Settings:
    return Settings().replace({"guard.allow": [urlsplit(issuer).netloc]})


@contextmanager
def answering(data: Path, issuer: str, settings: Settings) -> Iterator[TestClient]:
    accounts = Accounts(data / "access.db")
    accounts.add_user("ada", "editor", BY, openid="ada@example.org")
    access = Access(Tokens(), frozenset(), lambda: 0.0, accounts)

    async def fetch(request: Request) -> Response:
        fetcher = make_fetcher(settings)  # on the loop of this request, which the test client ends with it
        try:
            return await fetcher.fetch(request)
        finally:
            await fetcher.close()

    login = Login(access, OpenIdLogin(Provider(issuer, CLIENT, "a secret"), fetch, lambda: 0.0), "the company")
    app = make_app(View(data, accounts=accounts), access, login=login)
    with TestClient(app, base_url="http://127.0.0.1:8400", follow_redirects=False) as client:
        yield client


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def at_provider(address: str, who: str, **more: str) -> str:
    """Log in there, or refuse to; the address to which the browser is sent back."""
    with pytest.raises(HTTPError) as sent:
        build_opener(_Stay).open(HttpRequest(address, urlencode({"sub": who, **more}).encode()), timeout=20)
    with sent.value as answer:
        return str(answer.headers["location"])


def test_somebody_logs_in_at_the_provider(data: Path, provider: str) -> None:
    with answering(data, provider, allowed(provider)) as client:
        page = client.get("/", headers=BROWSER)
        assert "Log in with the company" in page.text
        away = client.get("/login/openid?next=/")
        asked = parse_qs(urlsplit(away.headers["location"]).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["redirect_uri"] == [REDIRECT]
        back = at_provider(away.headers["location"], "subject-1")
        onward = client.get(back)
        assert (onward.status_code, 'content="0;url=/"' in onward.text) == (200, True)
        cookies = [value.lower() for value in onward.headers.get_list("set-cookie")]
        assert any("levada_session" in each and "samesite=strict" in each and "httponly" in each for each in cookies)
        assert client.get("/api/v1/me").json()["name"] == "ada"
        again = client.get(back, headers=BROWSER)
        assert "This login was not begun here, or took too long: begin again." in again.text


@pytest.mark.parametrize(("who", "why"), [("mallory", "mallory"), ("subject-2", "subject-2")])
def test_who_is_no_user_here_does_not_get_in(data: Path, provider: str, who: str, why: str) -> None:
    with answering(data, provider, allowed(provider)) as client:
        back = at_provider(client.get("/login/openid").headers["location"], who)
        answer = client.get(back, headers=BROWSER)
        assert answer.status_code == 403
        assert f"Nobody here has the identity {why}:" in answer.text  # an address that was not verified is none
        assert client.get("/api/v1/me").status_code == 401


def test_a_login_that_is_denied_says_so(data: Path, provider: str) -> None:
    with answering(data, provider, allowed(provider)) as client:
        back = at_provider(client.get("/login/openid").headers["location"], "subject-1", action="deny")
        state = parse_qs(urlsplit(client.get("/login/openid").headers["location"]).query)["state"][0]
        answer = client.get(f"{back}&state={state}" if "state=" not in back else back, headers=BROWSER)
        assert "The provider refused the login: access_denied" in answer.text


def test_another_browser_cannot_end_a_login(data: Path, provider: str) -> None:
    with answering(data, provider, allowed(provider)) as client:
        back = at_provider(client.get("/login/openid").headers["location"], "subject-1")
        client.cookies.clear()
        assert "This login was begun in another browser: begin again." in client.get(back, headers=BROWSER).text


def test_another_host_name_cannot_end_a_login(data: Path, provider: str) -> None:
    with answering(data, provider, allowed(provider)) as client:
        back = at_provider(client.get("/login/openid").headers["location"], "subject-1")
        cookie = client.cookies["levada_login"]
        headers = BROWSER | {"host": "localhost:8400", "cookie": f"levada_login={cookie}"}
        answer = client.get(back, headers=headers)
        assert "begin again" in answer.text
        assert "http://localhost:8400/login/openid/callback" in answer.text


def test_the_guard_holds_for_the_provider(data: Path, provider: str) -> None:
    with answering(data, provider, Settings()) as client:
        answer = client.get("/login/openid", headers=BROWSER)
        assert answer.status_code == 502
        assert "is not a public address: loopback" in answer.text


class Forger:
    """A provider that answers what a test wants, with a key of its own."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signs_with = self.key
        self.change: Callable[[dict[str, Any]], object] = lambda claims: None
        self.algorithm = "RS256"
        self.metadata: dict[str, Any] = {
            "issuer": "http://id.example",
            "authorization_endpoint": "http://id.example/authorize",
            "token_endpoint": "http://id.example/token",
            "jwks_uri": "http://id.example/keys",
        }
        self.nonce = ""

    async def fetch(self, request: Request) -> Response:
        return Response(request.url, 200, body=msgspec.json.encode(self.answer(urlsplit(request.url).path)))

    def answer(self, path: str) -> object:
        if path == "/keys":
            public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
            return {"keys": [{**public, "kid": "one", "use": "sig"}]}
        if path == "/token":
            now = time.time()
            claims = {"iss": "http://id.example", "sub": "ada", "aud": CLIENT, "iat": now, "exp": now + 300}
            claims["nonce"] = self.nonce
            self.change(claims)
            secret: Any = {"RS256": self.signs_with, "HS256": "x" * 32, "none": None}[self.algorithm]
            return {"id_token": jwt.encode(claims, secret, self.algorithm, {"kid": "one"})}
        return self.metadata

    def log_in(self) -> LoggedIn:
        async def whole() -> LoggedIn:
            login = OpenIdLogin(Provider("http://id.example", CLIENT), self.fetch, lambda: 0.0)
            address, browser = await login.begin(REDIRECT, "/")
            asked = parse_qs(urlsplit(address).query)
            self.nonce = asked["nonce"][0]
            return await login.finish({"state": asked["state"][0], "code": "c"}, browser, REDIRECT)

        return asyncio.run(whole())


def test_a_token_of_the_provider_is_accepted() -> None:
    assert Forger().log_in() == LoggedIn(("ada",), "/")


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "expired": (lambda claims: claims.update(exp=time.time() - 3600), "has expired"),
    "nonce": (lambda claims: claims.update(nonce="another"), "belongs to another login"),
    "no nonce": (lambda claims: claims.pop("nonce"), 'missing the "nonce" claim'),
    "audience": (lambda claims: claims.update(aud="another"), "made for another client"),
    "azp": (lambda claims: claims.update(aud=[CLIENT, "other"], azp="other"), "made for another client"),
    "issuer": (lambda claims: claims.update(iss="http://evil.example"), "comes from another provider"),
    "from the future": (lambda claims: claims.update(iat=time.time() + 3600), "cannot be accepted"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_token_that_is_wrong_is_refused_in_a_sentence(case: str) -> None:
    forger = Forger()
    forger.change, words = WRONG[case]
    with pytest.raises(OpenIdError, match=words):
        forger.log_in()


def test_a_token_that_somebody_else_signed_is_refused() -> None:
    forger = Forger()
    forger.signs_with = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(OpenIdError, match="the signature of the id_token is wrong"):
        forger.log_in()


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_a_token_without_the_providers_signature_is_refused(algorithm: str) -> None:
    forger = Forger()
    forger.algorithm = algorithm
    with pytest.raises(OpenIdError, match="which is not accepted"):
        forger.log_in()


def test_a_provider_of_another_name_is_refused() -> None:
    forger = Forger()
    forger.metadata["issuer"] = "http://evil.example"
    with pytest.raises(OpenIdError, match=re.escape("calls itself http://evil.example, not http://id.example")):
        forger.log_in()


@pytest.mark.parametrize(
    ("issuer", "client"), [("id.example", "levada"), ("ftp://id.example", "levada"), ("https://id.example", "")]
)
def test_a_provider_that_is_named_wrong_is_a_wrong_call(issuer: str, client: str) -> None:
    with pytest.raises(UsageError, match="--openid"):
        Provider(issuer, client)


@pytest.mark.timeout(180)
def test_somebody_logs_in_by_a_real_browser_from_another_site(data: Path, provider: str) -> None:
    """The provider is at `localhost`, another site than 127.0.0.1: strict cookies do not come along from there."""
    if chromium() is None:
        missing("no Chromium is installed: run tests/servers/install.sh as root, or install it yourself")
    port = urlsplit(provider).port
    DataFolder(data).save_settings(Settings().replace({"guard.allow": [f"127.0.0.1:{port}", f"[::1]:{port}"]}))
    accounts = Accounts(data / "access.db")
    accounts.add_user("ada", "editor", BY, openid="ada@example.org")
    options = ("--openid", f"http://localhost:{port}", "--openid-client", CLIENT)
    secret = {"LEVADA_OPENID_SECRET": "a secret"}
    with (
        served(data, *options, environment=secret) as address,
        browser() as opened,
        open_page(opened, "wide") as page,
    ):
        page.goto(address)
        page.get_by_role("link", name="Log in with localhost").click()
        page.get_by_role("button", name="subject-1").click()
        expect(page.locator("#me")).to_contain_text("ada")
        assert page.url.rstrip("/").startswith(address)
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("alert")).to_have_text("Log in to go on.")
    assert [line.action for line in accounts.log(2)] == ["log out", "log in by OpenID"]
    accounts.close()
