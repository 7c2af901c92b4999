"""Access control from the request head, and the login page.

On the loopback no token is needed, but the request must be meant for this address: the `Host` header stops pages
whose own name points at 127.0.0.1, the `Origin` header those that make a browser post here. On other addresses a
token is needed, for reading or for everything. Clients that guess are slowed down.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from ipaddress import ip_address
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
OPEN_PATHS = frozenset({"/api/v1/health"})
SESSION_COOKIE = "levada_session"
SESSION_SECONDS = 12 * 3600.0
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_SESSIONS = 1_000
_MOST_CLIENTS = 10_000
_FREE_FAILURES = 5.0
_SECONDS_PER_FAILURE = 10.0


class Role(IntEnum):
    NOBODY = 0
    READER = 1
    ADMIN = 2


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of the server; "" is none."""

    admin: str = ""
    reader: str = ""

    def role(self, token: str) -> Role:
        """The role of a token, found in the same time for any token."""
        role = Role.NOBODY
        given = sha256(token.encode("utf-8", "replace")).digest()
        for secret, granted in ((self.reader, Role.READER), (self.admin, Role.ADMIN)):
            same = compare_digest(given, sha256(secret.encode()).digest())
            if same and secret:
                role = max(role, granted)
        return role

    def __bool__(self) -> bool:
        return bool(self.admin or self.reader)


class AccessRefusal(msgspec.Struct, frozen=True):
    status: int
    code: str
    message: str
    retry_after: int = 0


_CROSS_SITE = AccessRefusal(403, "cross-site", "a page of another site may not change anything here")


class Access:
    """Decides which requests may go on; `names` are the host names of this server besides loopback addresses."""

    def __init__(self, tokens: Tokens, names: frozenset[str], now: Callable[[], float]) -> None:
        self.tokens = tokens
        self._names = names
        self._now = now
        self._failures = _Failures()
        self._sessions: OrderedDict[str, tuple[Role, float]] = OrderedDict()

    def refusal(self, method: str, path: str, headers: Mapping[str, str], client: str) -> AccessRefusal | None:
        """Why the request is refused; None if it may go on."""
        if not self._is_ours(headers.get("host", "")):
            return AccessRefusal(403, "foreign-host", "this server is not known by that host name: use its address")
        if path in OPEN_PATHS and method in _SAFE:
            return None
        if path == LOGIN_PATH and method == "POST":  # asks for a token itself
            return None if _is_same_origin(headers) else _CROSS_SITE
        token = _token_of(headers)
        if self.tokens and token is not None and (wait := self._failures.wait(client, self._now())):
            return _slow_down(wait)  # even if the token is right: guesses must not be confirmed
        role = self._session_role(headers) if token is None else self.tokens.role(token)
        if self.tokens and role is Role.NOBODY:
            return self._unknown(client, tried=token is not None)
        if method in _SAFE:
            return None
        if self.tokens and role is not Role.ADMIN and path != LOGOUT_PATH:
            return AccessRefusal(403, "read-only", "this token may only read: use the admin token")
        return None if _is_same_origin(headers) else _CROSS_SITE

    def log_in(self, token: str, client: str) -> str | AccessRefusal:
        """The name of a new session, or why it is refused."""
        if wait := self._failures.wait(client, self._now()):
            return _slow_down(wait)
        role = self.tokens.role(token)
        if role is Role.NOBODY:
            return self._unknown(client, tried=True)
        name = secrets.token_urlsafe(32)
        self._sessions[name] = (role, self._now() + SESSION_SECONDS)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return name

    def log_out(self, headers: Mapping[str, str]) -> None:
        self._sessions.pop(_session_of(headers), None)

    def _session_role(self, headers: Mapping[str, str]) -> Role:
        role, expires = self._sessions.get(_session_of(headers), (Role.NOBODY, 0.0))
        return role if expires > self._now() else Role.NOBODY

    def _unknown(self, client: str, tried: bool) -> AccessRefusal:
        now = self._now()
        if wait := self._failures.wait(client, now):
            return _slow_down(wait)
        if tried:
            self._failures.count(client, now)
            return AccessRefusal(401, "wrong-token", "that token is not right")
        return AccessRefusal(401, "token-needed", "a token is needed: send it as 'Authorization: Bearer TOKEN'")

    def _is_ours(self, host: str) -> bool:
        name = _host_name(host)
        return name in self._names or is_address(name) or name == "localhost"


class _Failures:
    """Wrong tokens, in a leaky bucket for each client; only so many clients are remembered."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> level, since

    def wait(self, client: str, now: float) -> float:
        """Seconds until this client may try again; 0 if it may now."""
        return max(0.0, (self._level(client, now) - _FREE_FAILURES + 1.0) * _SECONDS_PER_FAILURE)

    def count(self, client: str, now: float) -> None:
        self._levels[client] = (self._level(client, now) + 1.0, now)
        self._levels.move_to_end(client)
        while len(self._levels) > _MOST_CLIENTS:
            self._levels.popitem(last=False)

    def _level(self, client: str, now: float) -> float:
        level, since = self._levels.get(client, (0.0, now))
        return max(0.0, level - (now - since) / _SECONDS_PER_FAILURE)


def _slow_down(wait: float) -> AccessRefusal:
    return AccessRefusal(429, "too-many-tries", "too many wrong tokens from this address: wait", int(wait) + 1)


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether the request comes from our own pages, or from a program that is no browser."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host", "")


def _token_of(headers: Mapping[str, str]) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _session_of(headers: Mapping[str, str]) -> str:
    if "cookie" not in headers:
        return ""
    try:
        cookie = SimpleCookie(headers["cookie"]).get(SESSION_COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie else ""


def _host_name(host: str) -> str:
    """The host without its port, in lower case; an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().removesuffix(".")


@lru_cache(maxsize=256)
def is_address(name: str) -> bool:
    """Whether this is a numeric address, which no DNS entry can redirect."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    return name == "localhost" or (is_address(name) and ip_address(name).is_loopback)


_PAGE = (files(__package__) / "login.html").read_text(encoding="utf-8")
_STYLE = _PAGE.partition("<style>")[2].partition("</style>")[0]
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # by the policy of the other pages the form would be sent with `Origin: null`
}
_MOST_FIELDS = 4
_TOO_MANY_FIELDS = AccessRefusal(400, "usage-error", f"a form of at most {_MOST_FIELDS} fields is read here")


def login_page(refused: AccessRefusal) -> Response:
    words = "this server needs a token" if refused.code == "token-needed" else refused.message
    page = _PAGE.replace("{words}", f"{words[0].upper()}{words[1:]}.")
    return HTMLResponse(page, refused.status, _HEADERS)


def login_routes(access: Access) -> list[Route]:
    async def log_in(request: Request) -> Response:
        try:
            form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
        except ValueError:
            return login_page(_TOO_MANY_FIELDS)
        client = request.client.host if request.client else ""
        session = access.log_in(form.get("token", [""])[0], client)
        if isinstance(session, AccessRefusal):
            return login_page(session)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(SESSION_COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict")
        return answer

    async def log_out(request: Request) -> Response:
        access.log_out(request.headers)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(SESSION_COOKIE)
        return answer

    return [Route(LOGIN_PATH, log_in, methods=["POST"]), Route(LOGOUT_PATH, log_out, methods=["POST"])]
