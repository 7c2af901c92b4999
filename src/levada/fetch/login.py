"""Login by a form: the form is fetched, filled in as its recipe says, and sent; and whether a page says "log in first".

The form's hidden fields, with tokens against forged requests, go along as they are. Everything stays on the site of
the rule: a form that sends elsewhere, or by GET, is not filled in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from levada.core.errors import BadUrl, ParserDied, UsageError
from levada.core.patterns import compiled, glob_pattern
from levada.core.protocols import Parser
from levada.core.reasons import Reason
from levada.core.records import RawPage, Request, Response
from levada.core.site_rules.extent import path_of
from levada.core.site_rules.sessions import ADDRESS, PLAIN, SessionRule
from levada.core.site_rules.visit import ReadingRule
from levada.fetch.credentials import read_reference
from levada.fetch.forms import Form, forms_of
from levada.pages.charset import decode
from levada.pages.urls import canonical, origin_of, site_of

Send = Callable[[Request], Awaitable[Response]]
"""Makes an exchange in the session: with its cookies, and taking those of the answer."""

_MOST_BYTES = 1024 * 1024  # of a page of the login
_REDIRECTS = (301, 302, 303, 307, 308)
_SENT_AGAIN = (307, 308)
_MOST_REDIRECTS = 5
_LARGE = 64 * 1024
_LOGS_OUT = r"(?i:(?:^|[/?&=._-])(?:log|sign)[-_]?(?:out|off)(?:$|[/?&=.;_-]))"


class LoginFailure(Exception):
    """A login that did not succeed: the reason, and a sentence without any secret."""

    def __init__(self, reason: Reason, said: str) -> None:
        super().__init__(said)
        self.reason = reason


def logs_out(url: str) -> bool:
    """Whether a link of this address probably ends the session.

    >>> logs_out("https://a.example/account/log-out"), logs_out("https://a.example/blog/logouts")
    (True, False)
    """
    return compiled(_LOGS_OUT).search(url.partition("://")[2].partition("/")[2].encode()) is not None


class _Place:
    """An address by its path and its query, without what the query says about coming back."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path.rstrip("/")
        self._query = {pair for pair in parse_qsl(parts.query, keep_blank_values=True) if "/" not in pair[1]}

    def is_at(self, url: str) -> bool:
        parts = urlsplit(url)
        at_path = parts.path.rstrip("/") == self._path
        return at_path and self._query.issubset(parse_qsl(parts.query, keep_blank_values=True))


class Login:
    """The recipe of one site."""

    def __init__(self, rule: SessionRule, parser: Parser | None) -> None:
        self._rule = rule
        self._parser = parser
        self._names = [name for name, _ in rule.fields]
        self._own = _Place(rule.url)
        self._sends_to: list[_Place] = []
        self.found: set[str] = set()  # addresses to which that of the rule leads

    def is_form(self, url: str) -> bool:
        """Whether this is the address of the form."""
        return self._own.is_at(url) or any(_Place(each).is_at(url) for each in self.found)

    def is_only_form(self, url: str) -> bool:
        """Whether it is that, and no page besides: a front page may be a form at one time and a page at another."""
        return self.is_form(url) and path_of(url) != "/"

    async def is_wanted(self, response: Response, *, whole: bool = True) -> bool:
        """Whether this answer says "log in first". `whole`: it is a page, and `check` concerns it."""
        if response.reason is not None:
            return False
        if response.status == 401:
            return True
        if response.status in _REDIRECTS:
            target = _target(response, response.header("location") or "")
            return target != "" and site_of(target) == self._rule.site and self.is_form(target)
        if not (200 <= response.status < 300 or response.status == 403) or not _is_html(response):
            return False
        if await self._shows_form(response):
            return True
        return whole and not self._rule.check.startswith(ADDRESS) and not await self._shows_check(response)

    async def log_in(self, asked: Request, send: Send) -> None:
        """Log in for this request; `LoginFailure` says why it did not succeed."""
        place = canonical(urljoin(origin_of(asked.url) + "/", self._rule.url))
        self._must_be_safe(place)
        page, addresses = await self._followed(Request(place, keep_bytes=_MOST_BYTES), asked, send)
        shown = _shown(page.url)
        if page.reason is not None:
            raise LoginFailure(page.reason, f"the login form {shown} cannot be fetched: {page.detail}")
        if site_of(addresses[-1]) != self._rule.site:
            raise _failure(f"the login form {shown} leads to another site, {_shown(addresses[-1])}")
        if not 200 <= page.status < 300:
            raise _failure(f"the login form {shown} answers with status {page.status}")
        forms, base = await _forms(page)
        form = next((each for each in forms if each.has(self._names)), None)
        if form is None:
            found = [", ".join(field.name for field in each.fields[:20]) for each in forms[:5]]
            there = f"its forms have {'; '.join(found)}"[:300] if found else "it has no form"
            raise _failure(f"no form on {shown} has the fields of the rule ({', '.join(self._names)}): {there}")
        if form.method != "post":
            raise _failure(f"the login form {shown} sends by GET, which would put the password into an address")
        action = _target(page, form.action, base) or page.url
        if site_of(action) != self._rule.site:
            raise _failure(f"the login form {shown} sends to another site, {_shown(action)}")
        self._must_be_safe(action)
        self.found.update(addresses[1:])
        self._sends_to = [_Place(action)]
        sent = Request(action, _form_headers(page.url), _MOST_BYTES, await self._body(form))
        answer, addresses = await self._followed(sent, asked, send)
        if answer.reason is not None:
            raise LoginFailure(answer.reason, f"the login at {_shown(answer.url)} broke off: {answer.detail}")
        if said := await self._refusal(answer, addresses):
            raise _failure(said)

    def _must_be_safe(self, url: str) -> None:
        if not url.startswith("https:") and not self._rule.plain_http:
            said = "is not on https: begin with an https address, or set plain_http = true"
            raise LoginFailure(Reason.CREDENTIALS, f"the login form {_shown(url)} {said}")

    async def _body(self, form: Form) -> bytes:
        try:
            values = {name: (await read_reference(text)).removeprefix(PLAIN) for name, text in self._rule.fields}
        except UsageError as error:
            raise LoginFailure(Reason.CREDENTIALS, str(error)) from None
        return urlencode(form.filled(values)).encode()

    async def _refusal(self, answer: Response, addresses: list[str]) -> str:
        """What this answer to the form says against being logged in; "" if nothing."""
        check, fields = self._rule.check, f"check the fields {', '.join(self._names)}"
        if answer.status >= 400:
            return f"the site answers the login with status {answer.status}: {fields}"
        if check.startswith(ADDRESS):
            pattern = compiled(glob_pattern(check.removeprefix(ADDRESS)) + r"(?:\?.*)?")
            if not any(pattern.fullmatch(path_of(each).encode()) for each in addresses):
                return f"the login leads to {_shown(addresses[-1])}, which is not {check}: {fields}"
        elif answer.status in _REDIRECTS:
            return ""  # to another site: the pages of this one will tell
        elif _is_html(answer) and await self._shows_form(answer):
            return f"the site shows the login form again: {fields}"
        elif not await self._shows_check(answer):
            return f"the page after the login, {_shown(answer.url)}, does not show {check}: correct it, or the fields"
        return ""

    async def _followed(self, request: Request, asked: Request, send: Send) -> tuple[Response, list[str]]:
        """The last answer after redirects on the site, and all addresses on the way."""
        addresses = [request.url]
        assert asked.rule is not None
        response = await send(_ruled(request, asked))
        for _ in range(_MOST_REDIRECTS):
            location = response.header("location")
            if response.reason is not None or response.status not in _REDIRECTS or not location:
                break
            target = _target(response, location)
            addresses.append(target or location)
            if site_of(target) != self._rule.site:
                break
            self._must_be_safe(target)
            body = request.body if response.status in _SENT_AGAIN else None
            headers = request.headers if body is not None else ()
            request = Request(target, headers, _MOST_BYTES, body)
            response = await send(_ruled(request, asked))
        return response, addresses

    async def _shows_form(self, response: Response) -> bool:
        body = response.body
        if b"<form" not in body[:_MOST_BYTES].lower():
            return False
        for form in (await _forms(response))[0]:
            if form.has(self._names):
                return True
            action = _target(response, form.action) or response.url
            if form.asks_password and (self.is_form(action) or any(each.is_at(action) for each in self._sends_to)):
                return True  # another form of the login, such as one that knows the user
        return False

    async def _shows_check(self, response: Response) -> bool:
        check = self._rule.check
        if not check or check.startswith(ADDRESS):
            return True
        if check.startswith(PLAIN):
            wanted = check.removeprefix(PLAIN).strip().encode()
            return wanted in decode(response.body, response.header("content-type") or "").utf8
        if self._parser is None:
            return True  # such a process fetches no pages, only robots.txt
        raw = RawPage(
            response.url, response.body, response.header("content-type") or "", rule=ReadingRule(select=(check,))
        )
        try:
            return (await self._parser.parse(raw)).reason is not Reason.NO_MATCH
        except ParserDied:
            return True  # it will kill the next child too, and be recorded as what it is


def _failure(said: str) -> LoginFailure:
    return LoginFailure(Reason.LOGIN_FAILED, said)


def _ruled(request: Request, asked: Request) -> Request:
    assert asked.rule is not None
    headers = (*asked.rule.headers, *request.headers)
    render = asked.render if request.body is None else None
    return Request(request.url, headers, request.keep_bytes, request.body, asked.rule, render=render)


def _form_headers(page: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Origin", origin_of(page)),
        ("Referer", page),
    )


async def _forms(response: Response) -> tuple[list[Form], str]:
    html = decode(response.body, response.header("content-type") or "").utf8
    return forms_of(html) if len(html) < _LARGE else await asyncio.to_thread(forms_of, html)


def _is_html(response: Response) -> bool:
    kind = (response.header("content-type") or "").lower()
    return "html" in kind or (not kind and b"<" in response.body[:1_000])


def _target(response: Response, location: str, base: str = "") -> str:
    """Where an address on this page leads; "" if nowhere. `base` is that of its `<base>`."""
    try:
        return canonical(location, canonical(base, response.url) if base else response.url) if location else ""
    except BadUrl:
        return ""


def _shown(url: str) -> str:
    """An address without its query, which may hold what a session is known by."""
    return url.partition("?")[0]
