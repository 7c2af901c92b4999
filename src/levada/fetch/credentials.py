"""Credentials on requests: a fetcher that adds what a site asks for, to its own site only.

The rule of a request names secrets by reference. They are read here, in the process that makes the request, and go
into its headers; an answer that leaves this fetcher holds none of them. Each request has the rule of its own
address, and no fetcher follows redirects, so nothing follows a redirect to another site either.

Without credentials in its rule, a request passes by at the cost of one comparison.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from urllib.parse import urlsplit

from msgspec.structs import replace

from levada.core.errors import UsageError
from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.core.secrets import is_reference, is_slow, read_secret
from levada.core.site_rules.credentials import Credentials
from levada.pages.urls import site_of

log = logging.getLogger(__name__)

_MOST_TOLD = 1_000
_NOT_OPENLY = "credentials go over https only: begin with an https address, or set plain_http = true in the rule"


class CredentialFetcher:
    """A `levada.core.protocols.Fetcher` around another one."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.inner = fetcher
        self._told: dict[str, str] = {}  # by site, what was last said of it in the log

    async def fetch(self, request: Request) -> Response:
        if request.rule is None or request.rule.credentials is None:
            return await self.inner.fetch(request)
        credentials = request.rule.credentials
        if site_of(request.url) != credentials.site:
            return await self.inner.fetch(request)
        if not credentials.plain_http and not request.url.startswith("https:"):
            return self._checked(request, seen_openly(request, await self.inner.fetch(request)), credentials)
        try:
            headers = await headers_of(credentials)
        except UsageError as error:
            return self._checked(request, refused(request, Reason.CREDENTIALS, str(error)), credentials)
        response = await self.inner.fetch(with_headers(request, headers))
        if response.status == 401 and (credentials.user or credentials.password or credentials.bearer):
            what = "bearer token" if credentials.bearer else "user and password"
            said = f"{credentials.site} does not accept the {what} (status 401): check them and {credentials.site}"
            response = refused(request, Reason.LOGIN_FAILED, said, response)
        return self._checked(request, response, credentials)

    async def close(self) -> None:
        await self.inner.close()

    def _checked(self, request: Request, response: Response, credentials: Credentials) -> Response:
        """The answer, without cookies unless they are kept; a failure is told in the log, once."""
        site = credentials.site
        if response.reason in (Reason.CREDENTIALS, Reason.LOGIN_FAILED):
            if self._told.get(site) != response.detail:
                if len(self._told) > _MOST_TOLD:
                    self._told.clear()
                self._told[site] = response.detail
                log.warning("nothing is fetched from %s for now: %s", site, response.detail)
        elif response.status and site in self._told:
            del self._told[site]
        in_session = request.rule is not None and request.rule.session is not None
        if not in_session and any(name == "set-cookie" for name, _ in response.headers):
            kept = tuple(each for each in response.headers if each[0] != "set-cookie")
            response = replace(response, headers=kept)
        return response


def seen_openly(request: Request, response: Response) -> Response:
    """The answer over http, where nothing secret was sent: only a redirect, mostly to https, is no page."""
    if response.reason is not None or 300 <= response.status < 500:
        return response
    if urlsplit(request.url).path == "/robots.txt":
        return response
    return refused(request, Reason.CREDENTIALS, _NOT_OPENLY, response)


def with_headers(request: Request, headers: tuple[tuple[str, str], ...]) -> Request:
    """The request with further headers; cookies go into one."""
    own = list(request.headers)
    for name, value in headers:
        place = next((at for at, (each, _) in enumerate(own) if name == "Cookie" and each.lower() == "cookie"), None)
        if place is None:
            own.append((name, value))
        else:
            own[place] = name, f"{own[place][1]}; {value}"
    return replace(request, headers=tuple(own))


async def headers_of(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    """The headers with the secrets; `UsageError` says what is missing."""
    headers = [(name, _line(name, await read_reference(text))) for name, text in credentials.headers]
    if credentials.bearer:
        headers.append(("Authorization", "Bearer " + _line("bearer", await read_reference(credentials.bearer))))
    elif credentials.user or credentials.password:
        pair = f"{await read_reference(credentials.user)}:{await read_reference(credentials.password)}"
        headers.append(("Authorization", "Basic " + b64encode(pair.encode()).decode()))
    return tuple(headers)


async def read_reference(text: str) -> str:
    """What a reference names; other text is itself."""
    if not is_reference(text):
        return text
    return await asyncio.to_thread(read_secret, text) if is_slow(text) else read_secret(text)


def _line(name: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"the secret for {name} cannot stand in a header: it must be one line of ASCII")
    return value


def refused(request: Request, reason: Reason, detail: str, answer: Response | None = None) -> Response:
    """A response without content; `answer` is the one in whose place it stands."""
    if answer is None:
        return Response(request.url, 0, reason=reason, detail=detail)
    return replace(answer, body=b"", headers=(), reason=reason, detail=detail)
