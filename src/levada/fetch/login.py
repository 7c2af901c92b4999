"""Login by a form: the form is fetched, filled in as its recipe says, and sent; and whether a page says "log in first".

The form's hidden fields, with tokens against forged requests, go along as they are. Everything stays on the site of
the rule: a form that sends elsewhere, or by GET, is not filled in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode, urljoin, urlsplit

from levada.core.errors import BadUrl, LevadaError, UsageError
from levada.core.patterns import compiled, glob_pattern
from levada.core.protocols import Parser
from levada.core.reasons import Reason
from levada.core.records import RawPage, Request, Response
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


class Login:
    """The recipe of one site."""

    def __init__(self, rule: SessionRule, parser: Parser | None) -> None:
        self._rule = rule
        self._parser = parser
        self._names = [name for name, _ in rule.fields]
        self._paths: set[str] = set()  # of the form, and where it sends

    def is_form(self, url: str) -> bool:
        """Whether this is the address of the form, with whatever query."""
        return _path(url) in self._paths or _path(url) == _path(urljoin(url, self._rule.url))

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

    async def log_in(self, url: str, rule_request: Request, send: Send) -> None:
        """Log in for a page of this address; `LoginFailure` says why it did not succeed."""
        place = canonical(urljoin(origin_of(url) + "/", self._rule.url))
        self._must_be_safe(place)
        page, addresses = await self._followed(Request(place, keep_bytes=_MOST_BYTES), rule_request, send)
        if page.reason is not None:
            raise LoginFailure(page.reason, f"the login form {page.url} cannot be fetched: {page.detail}")
        if not 200 <= page.status < 300:
            raise LoginFailure(Reason.LOGIN_FAILED, f"the login form {page.url} answers with status {page.status}")
        form, base = await self._form_of(page)
        action = _target(page, urljoin(base, form.action) if base and form.action else form.action) or page.url
        if site_of(action) != self._rule.site:
            raise LoginFailure(Reason.LOGIN_FAILED, f"the login form {page.url} sends to another site: {action}")
        self._must_be_safe(action)
        self._paths.update(map(_path, (*addresses, action)))
        sent = Request(action, _form_headers(page.url), _MOST_BYTES, await self._body(form))
        answer, addresses = await self._followed(sent, rule_request, send)
        await self._must_be_in(answer, addresses)

    def _must_be_safe(self, url: str) -> None:
        if not url.startswith("https:") and not self._rule.plain_http:
            said = f"the login form {url} is not on https: begin with an https address, or set plain_http = true"
            raise LoginFailure(Reason.CREDENTIALS, said)

    async def _body(self, form: Form) -> bytes:
        try:
            values = {name: (await read_reference(text)).removeprefix(PLAIN) for name, text in self._rule.fields}
        except UsageError as error:
            raise LoginFailure(Reason.CREDENTIALS, str(error)) from None
        return urlencode(form.filled(values)).encode()

    async def _form_of(self, page: Response) -> tuple[Form, str]:
        forms, base = await _forms(page)
        form = next((each for each in forms if each.has(self._names)), None)
        if form is None:
            found = [", ".join(field.name for field in each.fields[:20]) for each in forms[:5]]
            there = f"its forms have {'; '.join(found)}"[:300] if found else "it has no form"
            wanted = ", ".join(self._names)
            raise LoginFailure(
                Reason.LOGIN_FAILED, f"no form on {page.url} has the fields of the rule ({wanted}): {there}"
            )
        if form.method != "post":
            said = f"the login form {page.url} sends by GET, which would put the password into an address"
            raise LoginFailure(Reason.LOGIN_FAILED, said)
        return form, base

    async def _must_be_in(self, answer: Response, addresses: list[str]) -> None:
        """Raise unless this answer to the form says that one is logged in."""
        check, said = self._rule.check, ""
        names = ", ".join(self._names)
        if answer.reason is not None:
            raise LoginFailure(answer.reason, f"the login at {answer.url} broke off: {answer.detail}")
        if answer.status >= 400:
            said = f"the site answers the login with status {answer.status}: check the fields {names}"
        elif check.startswith(ADDRESS):
            matches = compiled(glob_pattern(check.removeprefix(ADDRESS)) + r"(?:[?#].*)?")
            if not any(matches.fullmatch(_of_host(each).encode()) for each in addresses):
                said = f"the login leads to {addresses[-1]}, which is not {check}: check the fields {names}"
        elif _is_html(answer) and await self._shows_form(answer):
            said = f"the site shows the login form again: check the fields {names}"
        elif answer.status in _REDIRECTS:
            pass  # to another site: the pages of this one will tell
        elif not await self._shows_check(answer):
            said = f"the page after the login, {answer.url}, does not show {check}: correct the check, or the fields"
        if said:
            raise LoginFailure(Reason.LOGIN_FAILED, said)

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
            if form.asks_password and self.is_form(action):
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
        except LevadaError:
            return False


def _ruled(request: Request, asked: Request) -> Request:
    assert asked.rule is not None
    headers = (*asked.rule.headers, *request.headers)
    return Request(request.url, headers, request.keep_bytes, request.body, asked.rule)


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


def _target(response: Response, location: str) -> str:
    """Where an address on this page leads; "" if nowhere."""
    try:
        return canonical(location, response.url) if location else ""
    except BadUrl:
        return ""


def _path(url: str) -> str:
    return urlsplit(url).path.rstrip("/")


def _of_host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
