"""Sessions with sites: cookies, the login form, and when one is filled in."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import ParserDied
from levada.core.protocols import Parser
from levada.core.reasons import Reason
from levada.core.records import ParsedPage, RawPage, Request, Response
from levada.core.settings import parse_settings
from levada.core.site_rules.rules import SiteRules
from levada.crawl.visits import request_for
from levada.fetch import CredentialFetcher
from levada.fetch.login import logs_out
from levada.fetch.sessions import SessionFetcher
from levada.testing.common import properties

PASSWORD = "kept & to/ourselves"
SITE = "https://a.test"
Answer = Callable[[Request], Response]


def page(url: str, body: str = "a page", *headers: tuple[str, str], status: int = 200) -> Response:
    return Response(url, status, (("content-type", "text/html"), *headers), body.encode())


def moved(url: str, to: str, *headers: tuple[str, str]) -> Response:
    return Response(url, 302, (("location", to), *headers))


def form(action: str = "", method: str = "post", more: str = "") -> str:
    return (
        f'<form action="{action}" method="{method}"><input type=hidden name=token value="t&amp;1"><input name=user>'
        f"<input name=password type=password><button name=go value=in>Log in</button></form>{more}"
    )


class Site:
    """A site with a login, as answers to requests; its session can be ended."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.sessions = self.asked = 0
        self.lasts = 1_000  # requests
        self.valid = ""
        self.password = PASSWORD
        self.form = form("/login")
        self.pages: dict[str, Answer] = {}
        self.lost: Answer = lambda request: moved(request.url, f"/login?next={request.url}")

    async def fetch(self, request: Request) -> Response:
        await asyncio.sleep(0)
        self.requests.append(request)
        path = request.url.removeprefix(SITE).partition("?")[0]
        if path == "/login" and request.body is None:
            return page(request.url, self.form)
        if path == "/login":
            given = parse_qs((request.body or b"").decode(), keep_blank_values=True)
            if given != {"token": ["t&1"], "go": ["in"], "user": ["me"], "password": [self.password]}:
                return page(request.url, self.form + "wrong")
            self.sessions += 1
            self.valid, self.asked = f"s{self.sessions}", 0
            return moved(request.url, "/", ("set-cookie", f"session={self.valid}; Path=/; Secure; HttpOnly"))
        if path in self.pages:
            return self.pages[path](request)
        self.asked += 1
        if f"session={self.valid}" != dict(request.headers).get("Cookie") or not self.valid or self.asked > self.lasts:
            return self.lost(request)
        return page(request.url, f"the page {path} <a class=out>Log out</a>")

    async def close(self) -> None:
        pass

    def end_sessions(self) -> None:
        self.valid = ""


class Member:
    """Somebody with a rule, asking for pages."""

    def __init__(
        self, site: Site, more: str = "", folder: Path | None = None, login: str = "", parser: Parser | None = None
    ) -> None:
        fields = '{ user = "me", password = "env:A_SECRET" }'
        login = login or f'login = {{ url = "/login", fields = {fields} {more} }}'
        self.rules = SiteRules(parse_settings(f'[[site]]\nmatch = "a.test"\n{login}', "the test").site)
        self.now = 0.0
        self.fetcher = SessionFetcher(CredentialFetcher(site), site, folder=folder, parser=parser, now=lambda: self.now)

    async def fetch(self, path: str) -> Response:
        url = path if "://" in path else SITE + path
        return await self.fetcher.fetch(request_for(url, self.rules.visit_rule(url).request))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", PASSWORD)


def test_one_logs_in_before_the_first_page_and_again_when_the_session_ends() -> None:
    async def story() -> None:
        site = Site()
        me = Member(site)
        assert b"the page /a" in (await me.fetch("/a")).body
        assert b"the page /b" in (await me.fetch("/b")).body
        assert site.sessions == 1
        site.end_sessions()
        assert b"the page /c" in (await me.fetch("/c")).body
        assert site.sessions == 2

    asyncio.run(story())


def test_many_pages_share_one_login() -> None:
    async def story() -> None:
        site = Site()
        me = Member(site)
        for round in (1, 2):
            answers = await asyncio.gather(*(me.fetch(f"/{number}") for number in range(20)))
            assert all(b"the page" in answer.body for answer in answers)
            assert site.sessions == round
            site.end_sessions()

    asyncio.run(story())


LOST: list[Answer] = [
    lambda request: moved(request.url, "/login"),
    lambda request: moved(request.url, f"{SITE}/login/?next=%2Fa"),
    lambda request: page(request.url, form("/login")),
    lambda request: page(request.url, form("/elsewhere")),
    lambda request: page(request.url, "<form action=/login><input type=password name=again></form>"),
    lambda request: page(request.url, form("/login"), status=403),
    lambda request: page(request.url, "<form>who are you?</form>", status=401),
]
"""How a site says that one has to log in."""


@pytest.mark.parametrize("lost", LOST)
def test_a_session_that_ended_is_noticed(lost: Answer) -> None:
    async def story() -> None:
        site = Site()
        site.lost = lost
        me = Member(site)
        await me.fetch("/a")
        site.end_sessions()
        assert b"the page /b" in (await me.fetch("/b")).body
        assert site.sessions == 2

    asyncio.run(story())


def test_a_text_that_every_page_shows_tells_who_is_logged_in() -> None:
    async def story() -> None:
        site = Site()
        site.lost = lambda request: page(request.url, "the public part")
        me = Member(site, ', check = "text:Log out"')
        await me.fetch("/a")
        site.end_sessions()
        assert b"the page /b" in (await me.fetch("/b")).body
        assert site.sessions == 2
        site.pages["/bare"] = lambda request: page(request.url, "nothing of it")
        bare = await me.fetch("/bare")
        assert (bare.reason, bare.body, bare.status) == (Reason.LOGIN_FAILED, b"", 200)
        assert (await me.fetch("/b")).reason is None

    asyncio.run(story())


def test_where_the_login_leads_tells_too() -> None:
    async def story() -> None:
        good = await Member(Site(), ', check = "url:/"').fetch("/a")
        assert b"the page /a" in good.body
        bad = await Member(Site(), ', check = "url:/account/*"').fetch("/a")
        assert bad.detail == (
            "the login leads to https://a.test/, which is not url:/account/*: check the fields user, password"
        )

    asyncio.run(story())


def test_a_page_that_no_login_opens_does_not_keep_others_out() -> None:
    async def story() -> None:
        site = Site()
        site.pages["/vault"] = lambda request: moved(request.url, "/login")
        me = Member(site)
        for _ in range(10):
            vault = await me.fetch("/vault")
            assert (vault.reason, vault.body) == (Reason.LOGIN_FAILED, b"")
            assert vault.status  # it says nothing about the site
        assert site.sessions == 2
        assert (await me.fetch("/a")).reason is None

    asyncio.run(story())


@pytest.mark.parametrize("path", ["/login", "/login/?next=%2Fa", "/logout", "/account/sign-off?x=1", "/?do=logout"])
def test_the_form_and_the_way_out_are_not_fetched(path: str) -> None:
    async def story() -> None:
        site = Site()
        answer = await Member(site).fetch(path)
        assert (answer.reason, answer.body) == (Reason.RULE, b"")
        assert site.requests == []

    asyncio.run(story())


def test_an_address_that_only_looks_like_it_is_fetched() -> None:
    for path in ("/blog/logouts", "/catalogue", "/blogout", "/sign-offices", "/login-help"):
        assert not logs_out(SITE + path)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (
            "<p>nothing</p>",
            "no form on https://a.test/login has the fields of the rule (user, password): it has no",
        ),
        (form().replace("name=user", "name=mail"), "its forms have token, mail, password, go"),
        (form(method="get"), "sends by GET, which would put the password into an address"),
        (form("https://b.test/login"), "sends to another site, https://b.test/login"),
        (form("http://a.test/login"), "the login form http://a.test/login is not on https"),
        ("<base href='https://b.test/'>" + form("login"), "sends to another site, https://b.test/login"),
    ],
)
def test_a_form_that_is_not_the_one_of_the_rule_is_not_filled_in(shown: str, said: str) -> None:
    async def story() -> None:
        site = Site()
        site.form = shown
        answer = await Member(site).fetch("/a")
        assert said in answer.detail
        assert answer.status == 0  # so the site rests at once
        assert [each.body for each in site.requests if each.body] == []

    asyncio.run(story())


def test_a_login_that_fails_is_not_tried_for_every_page() -> None:
    async def story() -> None:
        site = Site()
        site.password = "another"
        me = Member(site)
        answers = await asyncio.gather(*(me.fetch(f"/{number}") for number in range(20)))
        assert {each.reason for each in answers} == {Reason.LOGIN_FAILED}
        assert {each.detail for each in answers} == {
            "the site shows the login form again: check the fields user, password"
        }
        assert PASSWORD not in repr(answers)
        assert len([each for each in site.requests if each.body]) == 1
        site.password = PASSWORD
        me.now = 31.0
        assert (await me.fetch("/a")).reason is None

    asyncio.run(story())


def test_a_site_that_cannot_be_reached_is_not_told_as_a_failed_login() -> None:
    async def story() -> None:
        site = Site()

        async def down(request: Request) -> Response:
            return Response(request.url, 0, reason=Reason.CONNECT, detail="refused")

        site.fetch = down  # type: ignore[method-assign]
        assert (await Member(site).fetch("/a")).reason is Reason.CONNECT

    asyncio.run(story())


def test_robots_txt_is_fetched_without_a_login_where_the_site_allows_it() -> None:
    async def story() -> None:
        site = Site()
        site.pages["/robots.txt"] = lambda request: Response(request.url, 200, (("content-type", "text/plain"),), b"")
        assert (await Member(site).fetch("/robots.txt")).status == 200
        assert site.sessions == 0
        del site.pages["/robots.txt"]
        assert b"the page /robots.txt" in (await Member(site).fetch("/robots.txt")).body

    asyncio.run(story())


def test_nothing_of_a_session_goes_over_plain_http_or_to_other_sites() -> None:
    async def story() -> None:
        site = Site()
        site.pages["http://a.test/"] = lambda request: page(request.url)
        me = Member(site)
        await me.fetch("/a")
        begun = len(site.requests)
        assert (await me.fetch("http://a.test/")).reason in (Reason.CREDENTIALS, None)
        rule = me.rules.visit_rule(f"{SITE}/").request
        await me.fetcher.fetch(request_for("https://b.test/", rule))
        assert all("Cookie" not in dict(each.headers) for each in site.requests[begun:])

    asyncio.run(story())


def test_a_form_that_is_the_front_page_does_not_hide_the_front_page() -> None:
    async def story() -> None:
        site = Site()
        site.lost = lambda request: page(request.url, form("/login"))
        fields = '{ user = "me", password = "env:A_SECRET" }'
        me = Member(site, login=f'login = {{ url = "/", fields = {fields} }}')
        assert b"the page /" in (await me.fetch("/")).body

    asyncio.run(story())


def test_a_form_that_is_told_by_its_query_does_not_hide_the_other_pages() -> None:
    async def story() -> None:
        site = Site()
        site.lost = lambda request: page(request.url, form("/login"))
        fields = '{ user = "me", password = "env:A_SECRET" }'
        me = Member(site, login=f'login = {{ url = "/index.php?title=Login", fields = {fields} }}')
        assert (await me.fetch("/index.php?title=Main")).reason is None
        assert (await me.fetch("/index.php?title=Login&returnto=Main")).reason is Reason.RULE

    asyncio.run(story())


def test_a_session_is_kept_for_the_next_crawl_in_a_closed_file(tmp_path: Path) -> None:
    async def story() -> None:
        site = Site()
        first = Member(site, folder=tmp_path)
        await first.fetch("/a")
        await first.fetcher.close()
        second = Member(site, folder=tmp_path)
        await second.fetch("/b")
        assert site.sessions == 1
        (file,) = (tmp_path / "cookies").iterdir()
        assert file.name.startswith("a.test@")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        other = Member(site, ', check = "text:Log out"', tmp_path)
        await other.fetch("/b")
        assert site.sessions == 1  # the same user: the check is no part of it
        fields = '{ user = "env:A_USER", password = "env:A_SECRET" }'
        stranger = Member(site, folder=tmp_path, login=f'login = {{ url = "/login", fields = {fields} }}')
        assert (await stranger.fetch("/b")).reason is Reason.CREDENTIALS

    asyncio.run(story())


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"cookies": [{"name": 1}]}', b"\xff"])
def test_a_file_that_cannot_be_read_costs_a_login(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        site = Site()
        await Member(site, folder=tmp_path).fetch("/a")
        (file,) = (tmp_path / "cookies").iterdir()
        file.write_bytes(content)
        assert (await Member(site, folder=tmp_path).fetch("/a")).reason is None
        assert site.sessions == 2
        assert "cannot be read: the site sets its cookies anew" in caplog.text

    asyncio.run(story())


def test_cookies_are_kept_where_a_rule_says_so_and_are_no_part_of_the_answer() -> None:
    async def story() -> None:
        site = Site()
        site.pages["/"] = lambda request: page(request.url, "a page", ("set-cookie", "seen=1; Path=/"))
        site.pages["/next"] = lambda request: page(request.url, dict(request.headers).get("Cookie", "none"))
        me = Member(site, login="cookies = true\nheaders = { Cookie = 'text:consent=yes' }")
        assert (await me.fetch("/")).headers == (("content-type", "text/html"),)
        assert (await me.fetch("/next")).body == b"consent=yes; seen=1"
        without = Member(site, login='agent = "x"')
        await without.fetch("/")
        assert (await without.fetch("/next")).body == b"none"

    asyncio.run(story())


@properties(150)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.sampled_from(LOST)), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_no_answer_is_ever_the_login_form(steps: list[tuple[int, bool, Answer]], lasts: int) -> None:
    """Whenever sessions end, and however many pages are asked for at once: each is a page, or has a reason."""

    async def story() -> None:
        site = Site()
        site.lasts = lasts
        me = Member(site)
        for at_once, ends, lost in steps:
            site.lost = lost
            if ends:
                site.end_sessions()
            paths = [f"/{number}" for number in range(at_once)]
            for path, answer in zip(paths, await asyncio.gather(*map(me.fetch, paths)), strict=True):
                if answer.reason is None:
                    assert (answer.status, f"the page {path}".encode() in answer.body) == (200, True)
                else:
                    assert (answer.reason, answer.body) == (Reason.LOGIN_FAILED, b"")
            me.now += 10_000.0
        assert len(site.requests) <= 8 * sum(at_once for at_once, _, _ in steps)

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("A_SECRET", PASSWORD)
        asyncio.run(story())


def test_a_page_that_kills_the_parser_is_no_sign_of_a_session_that_ended() -> None:
    class Killed:
        async def parse(self, page: RawPage) -> ParsedPage:
            raise ParserDied("it took too long", "parse-seconds")

        async def close(self) -> None:
            pass

    async def story() -> None:
        site = Site()
        me = Member(site, ', check = "a.out"', parser=Killed())
        assert (await me.fetch("/a")).reason is None
        assert site.sessions == 1

    asyncio.run(story())
