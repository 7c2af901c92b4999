"""Sessions with sites: a fetcher that keeps their cookies, and logs in where their rules say how.

A page of the login form is never an answer of this fetcher: not as the form itself, not in place of a page, not by a
redirect. It logs in, and asks once more. A login that fails says so, and the site rests; nothing is fetched from it
logged out. Each process logs in for itself. The cookies of a crawl are kept with its collection, so that the next one
goes on in the session.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from levada.core.protocols import Fetcher, Parser
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.core.site_rules.sessions import SessionRule
from levada.fetch.cookies import KeptSession, SiteCookies, read_session, session_file, write_session
from levada.fetch.credentials import refused, seen_openly, with_headers
from levada.fetch.login import Login, LoginFailure, logs_out
from levada.pages.urls import site_of

log = logging.getLogger(__name__)

_PAUSE = 30.0  # seconds after a login that failed; doubles
_LONGEST_PAUSE = 3_600.0
_MOST_VAIN = 5  # logins in a row that open no page, until there is a pause
_VAIN_PAUSE = 300.0
_WRITE_AFTER = 5.0  # seconds between two writes of cookies that change with each page
_MOST_SITES = 1_000
_MOST_CLOSED = 10_000


class _Session:
    """The session with one site."""

    def __init__(self, rule: SessionRule, parser: Parser | None, folder: Path | None) -> None:
        self.cookies = SiteCookies(plain_http=rule.plain_http)
        self.login = Login(rule, parser) if rule.url else None
        self.lock = asyncio.Lock()
        self.logins = 0  # that succeeded
        self.pause_until = 0.0  # no login before then
        self.failures = 0  # in a row: logins that failed, or opened no page
        self.said = Reason.LOGIN_FAILED, ""
        self.closed: set[str] = set()  # pages that ask for a login right after one
        self.changed = False
        self.written = 0.0
        self.path = session_file(folder, rule.site, _mark(rule)) if folder is not None else None
        if self.path is not None:
            kept = read_session(self.path)
            self.cookies.put(kept.cookies)
            if self.login is not None:
                self.login.found.update(kept.login_found)
        self.was_kept = len(self.cookies) > 0
        self.is_open = self.was_kept  # as far as is known

    def save(self, now: float, *, anew: bool = False) -> None:
        """Write the file; `anew`: also where it was deleted, as it is when its site is forgotten."""
        self.changed, self.written = False, now
        if self.path is None or (self.was_kept and not anew and not self.path.exists()):
            return
        found = sorted(self.login.found) if self.login is not None else []
        write_session(self.path, KeptSession(self.cookies.kept(), found))
        self.was_kept = True

    def pause(self, now: float) -> None:
        self.pause_until = now + min(_PAUSE * 2 ** min(self.failures, 20), _LONGEST_PAUSE)
        self.failures += 1


def _mark(rule: SessionRule) -> str:
    """Tells one login of a site from another: they do not share cookies."""
    login = (rule.site, rule.url, rule.fields)
    return hashlib.sha256(msgspec.json.encode(login)).hexdigest()[:16]


class SessionFetcher:
    """A `levada.core.protocols.Fetcher` around the one that adds credentials.

    Requests without a rule go to `plain`. `folder` is where the cookies are kept, `parser` evaluates selectors.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        plain: Fetcher,
        *,
        folder: Path | None = None,
        parser: Parser | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inner = fetcher
        self._plain = plain
        self._folder = folder
        self._parser = parser
        self._now = now
        self._sessions: dict[SessionRule, _Session] = {}

    async def fetch(self, request: Request) -> Response:
        if request.rule is None:
            return await self._plain.fetch(request)
        rule = request.rule.session
        if rule is None or site_of(request.url) != rule.site:
            return await self.inner.fetch(request)
        session = self._session(rule)
        if session.login is None:
            return _without_cookies(await self._sent(session, request))
        if not rule.plain_http and not request.url.startswith("https:"):
            return _without_cookies(seen_openly(request, await self.inner.fetch(request)))
        if session.login.is_only_form(request.url):
            return refused(request, Reason.RULE, "the login form of the site is no page to keep")
        if logs_out(request.url):
            return refused(request, Reason.RULE, "this address seems to log out: it is left alone")
        return _without_cookies(await self._logged_in(session, session.login, request))

    async def close(self) -> None:
        for session in self._sessions.values():
            if session.changed:
                session.save(self._now())
        await self.inner.close()

    def _session(self, rule: SessionRule) -> _Session:
        session = self._sessions.get(rule)
        if session is None:
            if len(self._sessions) >= _MOST_SITES:
                oldest = self._sessions.pop(next(iter(self._sessions)))
                if oldest.changed:
                    oldest.save(self._now())
            session = self._sessions[rule] = _Session(rule, self._parser, self._folder)
        return session

    async def _sent(self, session: _Session, request: Request) -> Response:
        """One exchange with the cookies of the session."""
        header = session.cookies.header(request.url)
        if header:
            request = with_headers(request, (("Cookie", header),))
        response = await self.inner.fetch(request)
        if session.cookies.take(request.url, response.headers):
            session.changed = True
            if self._now() - session.written > _WRITE_AFTER:
                session.save(self._now())
        return response

    async def _logged_in(self, session: _Session, login: Login, request: Request) -> Response:
        """The answer to whoever is logged in; a failure if there is none."""
        is_page = urlsplit(request.url).path != "/robots.txt"
        logins = session.logins
        if is_page and not (session.is_open and len(session.cookies)):
            if failure := await self._renewed(session, login, request, logins):
                return failure
            logins = session.logins
        response = await self._sent(session, request)
        if not await login.is_wanted(response, whole=is_page):
            session.closed.discard(request.url)
            return response
        if request.url not in session.closed:
            if failure := await self._renewed(session, login, request, logins, response):
                return failure
            response = await self._sent(session, request)
            if not await login.is_wanted(response, whole=is_page):
                session.failures = 0
                return response
            session.failures += 1  # of a page that no login opens; of many, the session may have ended in between
            if session.failures > _MOST_VAIN:
                session.pause_until = self._now() + _VAIN_PAUSE
            if len(session.closed) < _MOST_CLOSED:
                session.closed.add(request.url)
        said = f"{request.url} asks for a login right after one: its user may not see it, or the check does not fit it"
        return refused(request, Reason.LOGIN_FAILED, said, response)

    async def _renewed(
        self, session: _Session, login: Login, request: Request, logins: int, answer: Response | None = None
    ) -> Response | None:
        """Log in, unless another request has since `logins` were counted. A failure if that does not succeed.

        `answer` is what asks for it; without one, nothing was asked for yet.
        """
        async with session.lock:
            if session.logins != logins:
                return None
            if self._now() < session.pause_until:
                reason, said = session.said
                if said:
                    return refused(request, reason, said)
                return refused(request, reason, "the last login did not help: it is not tried again yet", answer)
            session.cookies.clear()
            session.is_open = False
            try:
                await login.log_in(request, lambda each: self._sent(session, each))
                if not len(session.cookies):
                    said = "the login succeeded, but the site set no cookie to know us by"
                    raise LoginFailure(Reason.LOGIN_FAILED, said)
            except LoginFailure as failure:
                session.said = failure.reason, str(failure)
                session.pause(self._now())
                log.warning("nothing is fetched from %s for now: %s", site_of(request.url), failure)
                return refused(request, failure.reason, str(failure))
            session.said = Reason.LOGIN_FAILED, ""
            session.is_open = True
            session.logins += 1
            session.save(self._now(), anew=True)
            log.info("logged in to %s", site_of(request.url))
            return None


def _without_cookies(response: Response) -> Response:
    if not any(name == "set-cookie" for name, _ in response.headers):
        return response
    return replace(response, headers=tuple(each for each in response.headers if each[0] != "set-cookie"))
