"""The search box on a page of another site, in a real browser; its key, its origins, its limits; OpenSearch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from levada.accounts.accounts import Accounts, KeyOptions
from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.rights import NEEDS
from levada.serve.view import View
from tests.needs import missing
from tests.serve.browser_session import browser, chromium, open_page
from tests.serve.served import served
from tests.serve.test_rights import BY

BLOG, OTHER = "https://blog.example", "https://other.example"
_SCRIPT = files("levada.serve.embed") / "search.js"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>My blog</title>
<h1>My blog</h1><textarea id="note"></textarea>{box}<p>Text of the blog below the box.</p></html>"""
# Of a careful site: no inline scripts, no inline styles, and only this server for scripts and questions.
_POLICY = "default-src 'none'; script-src {server}; connect-src {server}; style-src 'none'"


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(data: Path) -> Accounts:
    made = Accounts(data / "access.db")
    made.add_user("ada", "admin", BY, openid="ada")
    return made


@pytest.fixture
def client(data: Path, accounts: Accounts, clock: Clock) -> Iterator[TestClient]:
    app = make_app(View(data, accounts=accounts), Access(Tokens(), frozenset(), clock, accounts, (data.name,)))
    with TestClient(app, base_url="http://127.0.0.1:8400", raise_server_exceptions=False) as opened:
        yield opened


def key(accounts: Accounts, name: str = "blog", **options: object) -> str:
    return accounts.add_key(name, KeyOptions(**{"origins": [BLOG], **options}), BY)[1]  # type: ignore[arg-type]


def test_pages_of_the_origin_of_the_key_may_read_the_answer_and_others_may_not(
    client: TestClient, accounts: Accounts
) -> None:
    path = f"/api/v1/search?q=vapur&key={key(accounts)}"
    answer = client.get(path, headers={"origin": BLOG})
    assert answer.status_code == 200
    assert answer.json()["total"] > 0
    assert answer.headers["access-control-allow-origin"] == BLOG
    assert "origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers
    refused = client.get(path, headers={"origin": OTHER})
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "origin-not-allowed"
    assert "levada keys add --origin" in refused.json()["error"]["message"]
    assert [name for name in refused.headers if name.startswith("access-control")] == []
    assert "access-control-allow-origin" not in client.get("/api/v1/health", headers={"origin": BLOG}).headers


def test_a_browser_that_asks_first_is_told_of_named_origins_only(client: TestClient, accounts: Accounts) -> None:
    secret = key(accounts)
    first = {"origin": BLOG, "access-control-request-method": "GET", "access-control-request-headers": "authorization"}
    told = client.options("/api/v1/search", headers=first)
    assert (told.status_code, told.headers["access-control-allow-origin"]) == (204, BLOG)
    assert "authorization" in told.headers["access-control-allow-headers"]
    asked = client.get("/api/v1/search?q=vapur", headers={"origin": BLOG, "authorization": f"Bearer {secret}"})
    assert asked.headers["access-control-allow-origin"] == BLOG
    for refused in (
        client.options("/api/v1/search", headers=first | {"origin": OTHER}),
        client.options("/api/v1/users", headers=first | {"access-control-request-method": "POST"}),
    ):
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers


def test_a_search_key_does_nothing_but_search(client: TestClient, accounts: Accounts) -> None:
    secret = key(accounts)
    may = {"/api/v1/search", "/api/v1/suggest", "/opensearch.xml"}
    for operation in NEEDS:
        method, path = operation.split()
        answers = [client.request(method, path, headers={"authorization": f"Bearer {secret}"})]
        answers += [client.request(method, path, params={"key": secret})]
        allowed = path in may or NEEDS[operation].value == "open"
        for answer in answers:
            assert allowed or answer.status_code in (401, 403), operation


def test_a_key_that_may_do_more_does_not_belong_into_an_address(client: TestClient, accounts: Accounts) -> None:
    secret = key(accounts, scopes=["read"])
    refused = client.get(f"/api/v1/search?q=vapur&key={secret}")
    assert refused.json()["error"]["message"] == (
        "the key 'blog' may do more than search, and does not belong into an address"
    )


def test_a_key_is_slowed_down_by_address_and_in_all(accounts: Accounts, data: Path, clock: Clock) -> None:
    secret = key(accounts, rate=3)
    door = Access(Tokens(), frozenset(), clock, accounts)

    def status(client: str) -> int:
        headers = {"host": "127.0.0.1:8400", "authorization": f"Bearer {secret}"}
        refused = door.decide("GET", "/api/v1/search", headers, client).refused
        return 200 if refused is None else refused.status

    assert [status("a") for _ in range(5)] == [200, 200, 200, 429, 429]
    assert status("b") == 200
    assert sorted({status(f"address {number}") for number in range(40)}) == [200, 429]  # thirty in all
    clock.at += 61.0
    assert status("a") == 200


def test_too_many_requests_are_told_to_the_page_with_a_time(client: TestClient, accounts: Accounts) -> None:
    path = f"/api/v1/search?q=vapur&key={key(accounts, rate=1)}"
    assert client.get(path, headers={"origin": BLOG}).status_code == 200
    slowed = client.get(path, headers={"origin": BLOG})
    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) > 0
    assert slowed.headers["access-control-allow-origin"] == BLOG


def test_a_key_reaches_only_so_many_results(client: TestClient, accounts: Accounts) -> None:
    path = f"/api/v1/search?q=vapur&key={key(accounts, results=5)}"
    assert client.get(f"{path}&limit=5").status_code == 200
    assert client.get(f"{path}&limit=3&offset=2").status_code == 200
    assert "the first 5 results" in client.get(f"{path}&limit=3&offset=3").json()["error"]["message"]


def test_an_expired_key_says_so(data: Path) -> None:
    now = Clock()
    accounts = Accounts(data / "access.db", now)
    secret = key(accounts, seconds=60.0)
    door = Access(Tokens(), frozenset(), lambda: 0.0, accounts, closed=True)
    headers = {"host": "127.0.0.1:8400", "authorization": f"Bearer {secret}"}
    assert door.decide("GET", "/api/v1/search", headers, "c").refused is None
    now.at = 60.0
    refused = door.decide("GET", "/api/v1/search", headers, "c").refused
    assert refused is not None
    assert (refused.status, refused.code) == (401, "expired-key")
    assert "expired at 1970-01-01T00:01:00.000Z: make another with 'levada keys add'" in refused.message


def test_browsers_can_add_the_collection_as_a_search_engine(client: TestClient, accounts: Accounts) -> None:
    secret = key(accounts)
    described = client.get(f"/opensearch.xml?key={secret}")
    assert described.headers["content-type"].startswith("application/opensearchdescription+xml")
    names = {"o": "http://a9.com/-/spec/opensearch/1.1/"}
    urls = ElementTree.fromstring(described.text).findall("o:Url", names)
    by_type = {each.get("type"): str(each.get("template")) for each in urls}
    suggested = client.get(by_type["application/x-suggestions+json"].replace("{searchTerms}", "vapur")).json()
    assert suggested[0] == "vapur"
    assert len(suggested[1]) == len(suggested[2]) == len(suggested[3]) > 0
    half = client.get(by_type["application/x-suggestions+json"].replace("{searchTerms}", "vapu")).json()
    assert set(suggested[3]) & set(half[3])
    for unfinished in ("%22", "-", "OR", "site:"):
        asked = client.get(by_type["application/x-suggestions+json"].replace("{searchTerms}", unfinished))
        assert (asked.status_code, asked.json()[1]) == (200, []), unfinished
    assert by_type["text/html"] == "http://127.0.0.1:8400/search?q={searchTerms}"
    assert client.get("/opensearch.xml").status_code == 401


def test_the_results_page_of_a_browsers_search_is_the_dashboards(data: Path, open_server: object) -> None:
    access = Access(Tokens(), frozenset(), lambda: 0.0)
    with TestClient(make_app(View(data), access), base_url="http://127.0.0.1:8400") as client:
        sent = client.get("/search?q=ferry%20%26%20bus", follow_redirects=False)
        assert sent.headers["location"] == "/#/search?q=ferry%20%26%20bus"
        assert 'rel="search"' in client.get("/").text


def test_the_script_is_one_small_file_without_unsafe_calls() -> None:
    script = _SCRIPT.read_text(encoding="utf-8")
    assert len(script.encode()) < 12_000
    for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import "):
        assert unsafe not in script


# In a browser


class _Blog(BaseHTTPRequestHandler):
    page, policy = "", ""

    def do_GET(self) -> None:
        body = self.page.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", self.policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def blog() -> Iterator[tuple[type[_Blog], str]]:
    """A site of another origin, and its address."""
    handler = type("Blog", (_Blog,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield handler, f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def levada(*words: str) -> dict[str, str]:
    command = [sys.executable, "-m", "levada", *words, "--json"]
    done: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return done


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    if chromium() is None:
        missing("no Chromium is installed: run tests/servers/install.sh as root, or install it yourself")
    with browser() as started:
        yield started


@contextmanager
def embedded(opened: Browser, data: Path, scheme: str, *, allowed: bool = True) -> Iterator[tuple[Page, list[str]]]:
    """The page of a blog that holds the box of a collection, as `levada embed` prints it."""
    with blog() as (handler, origin), served(data) as server, open_page(opened, "wide", scheme) as page:
        named = origin if allowed else OTHER
        made = levada("embed", "--origin", named, "--server", server, "--data", str(data), "--name", scheme)
        handler.page = _PAGE.replace("{box}", made["html"])
        handler.policy = _POLICY.replace("{server}", server)
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{origin}/post")
        yield page, complaints


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_somebody_searches_on_a_page_of_another_site(opened: Browser, data: Path, tmp_path: Path, scheme: str) -> None:
    with embedded(opened, data, scheme) as (page, complaints):
        box = page.get_by_role("combobox")
        page.keyboard.press("/")
        expect(box).to_be_focused()
        page.keyboard.type("vapur", delay=30)
        options = page.get_by_role("option")
        expect(options.first).to_be_visible()
        expect(page.locator("levada-search mark").first).to_have_text("vapur", ignore_case=True)
        expect(page.get_by_role("status")).to_contain_text("found")
        expect(box).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("ArrowDown")
        expect(options.first).to_have_attribute("aria-selected", "true")
        expect(box).to_have_attribute("aria-activedescendant", "hit-0")
        pictures = Path(os.environ.get("LEVADA_PICTURES") or tmp_path)
        page.screenshot(path=str(pictures / f"search-box-{scheme}.png"))
        background = page.locator("levada-search .panel").evaluate("each => getComputedStyle(each).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 33, 29)"}[scheme]
        page.keyboard.press("ArrowUp")
        expect(page.locator('[aria-selected="true"]')).to_have_count(0)
        page.keyboard.press("Escape")
        expect(box).to_have_attribute("aria-expanded", "false")
        page.locator("#note").focus()
        page.keyboard.type("1/2")
        assert page.locator("#note").input_value() == "1/2"  # who writes is not interrupted
        box.fill("vapu")
        expect(options.first).to_be_visible()  # the last word may be half typed
        expect(page.locator("levada-search mark").first).to_contain_text("vapu", ignore_case=True)
        box.fill("vapur zzzzz")
        expect(options.first).to_be_visible()  # the last word may be misspelt
        box.fill("zzzzz")
        expect(page.get_by_role("status")).to_have_text("Nothing found.")
        box.fill("vapur")
        expect(options.first).to_be_visible()
        wanted = page.locator("levada-search a").first.get_attribute("href")
        assert wanted is not None
        page.route(f"{wanted}**", lambda route: route.fulfill(body="the page that was found"))
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(wanted)
        assert complaints == []


@pytest.mark.timeout(120)
def test_on_a_site_that_the_key_does_not_name_the_box_finds_nothing(opened: Browser, data: Path) -> None:
    with embedded(opened, data, "light", allowed=False) as (page, complaints):
        page.get_by_role("combobox").fill("vapur")
        expect(page.get_by_role("status")).to_have_text("The search cannot be reached.")
        expect(page.get_by_role("option")).to_have_count(0)
        assert any("CORS" in each for each in complaints)
