"""Access control from the request head.

On the loopback nobody has to log in until there is a token or a user, but the request must be meant for this address:
the `Host` header stops pages whose own name points at 127.0.0.1, the `Origin` header those that make a browser post
here. On other addresses a token, a user or a key is needed. Clients that guess are slowed down.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qsl

import msgspec

from levada.accounts.accounts import KEY_MARK, SESSION_SECONDS, Accounts, Actor, ExpiredKey
from levada.accounts.records import LOCAL, NOBODY, ROLE_RIGHTS, Principal, Right, Role, role_for
from levada.core.errors import LevadaError
from levada.serve.rights import OF_THE_SERVER, right_for

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
SESSION_COOKIE = "levada_session"
KEY_FIELD = "key"  # of a query: a key that may only search, for pages of other sites and for browsers
ASKED_BY: ContextVar[Principal] = ContextVar("asked_by", default=LOCAL)
"""Who sent the present request."""
ASKED_FROM: ContextVar[str] = ContextVar("asked_from", default="")
"""The address of the client that sent it."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPENID_PATH = "/login/openid"
CALLBACK_PATH = "/login/openid/callback"
_LOGINS = frozenset({("POST", LOGIN_PATH), ("GET", OPENID_PATH), ("GET", CALLBACK_PATH)})
_MOST_SESSIONS = 1_000
_MOST_CLIENTS = 10_000
_FREE_FAILURES = 5.0
_SECONDS_PER_FAILURE = 10.0
_MINUTE = 60.0
_ADDRESSES = 10  # how many addresses with the full rate of a key it may have in all


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

    def principal(self, token: str) -> Principal:
        role = self.role(token)
        if role is Role.NOBODY:
            return NOBODY
        name = role.name.lower()
        return Principal("token", f"the {name} token", name, ROLE_RIGHTS[role])

    def __bool__(self) -> bool:
        return bool(self.admin or self.reader)


class AccessRefusal(msgspec.Struct, frozen=True):
    status: int
    code: str
    message: str
    retry_after: int = 0


class Decision(msgspec.Struct, frozen=True):
    """Whether a request may go on, who sends it, and the origin whose pages may read the answer."""

    asker: Principal
    refused: AccessRefusal | None = None
    origin: str = ""  # "": only our own pages
    preflight: bool = False  # a browser asks whether it may ask


_CROSS_SITE = AccessRefusal(403, "cross-site", "a page of another site may not change anything here")
_FOREIGN_HOST = AccessRefusal(403, "foreign-host", "this server is not known by that host name: use its address")
_WRONG_TOKEN = AccessRefusal(401, "wrong-token", "that token is not right")
_WRONG_KEY = AccessRefusal(401, "wrong-key", "that key is not known here: it was revoked, or is not whole")
_WRONG_LOGIN = AccessRefusal(401, "wrong-login", "that name or password is not right")
_TOKEN_NEEDED = AccessRefusal(401, "token-needed", "a token is needed: send it as 'Authorization: Bearer TOKEN'")


class Access:
    """Decides which requests may go on.

    `names` are the host names of this server besides loopback addresses. `collections` are the names of what is
    served: of several, each below its own prefix. With `closed`, nothing is open to those who are not known.
    """

    def __init__(
        self,
        tokens: Tokens,
        names: frozenset[str],
        now: Callable[[], float],
        accounts: Accounts | None = None,
        collections: tuple[str, ...] = (),
        *,
        closed: bool = False,
    ) -> None:
        self.tokens = tokens
        self.accounts = accounts
        self.collections = collections
        self.names = names
        self._now = now
        self._failures = _Failures()
        self._rates = _Rates()
        self._sessions: OrderedDict[str, tuple[Role, float]] = OrderedDict()  # of those who entered a token
        self._closed = closed or bool(tokens)

    @property
    def is_closed(self) -> bool:
        """Whether nobody is let in who is not known. A server that was closed once stays so until it ends."""
        if not self._closed and self.accounts is not None:
            self._closed = self.accounts.has_users
        return self._closed

    def refusal(self, method: str, path: str, headers: Mapping[str, str], client: str) -> AccessRefusal | None:
        """Why the request is refused; None if it may go on."""
        return self.decide(method, path, headers, client).refused

    def decide(self, method: str, path: str, headers: Mapping[str, str], client: str, query: str = "") -> Decision:
        """Who sends this request, and whether it may go on."""
        if not self._is_ours(headers.get("host", "")):
            return Decision(NOBODY, _FOREIGN_HOST)
        collection, inner = self.place_of(path)
        right = right_for(method, inner)
        if method == "OPTIONS" and "access-control-request-method" in headers:
            return self._preflight(inner, headers)
        if (method, path) in _LOGINS:  # they ask for a password themselves
            return Decision(NOBODY, None if method in _SAFE or _is_same_origin(headers) else _CROSS_SITE)
        key = _key_in(query) if right is Right.SEARCH and method in _SAFE else ""
        token = _token_of(headers) or key or None
        try:
            asker = self._asker(headers, token, client)
        except ExpiredKey as error:
            return Decision(NOBODY, AccessRefusal(401, "expired-key", str(error)))
        except LevadaError as error:
            return Decision(NOBODY, AccessRefusal(503, "store-error", str(error)))
        if isinstance(asker, AccessRefusal):
            return Decision(NOBODY, None if right is Right.OPEN and method in _SAFE else asker)
        origin = headers.get("origin", "")
        allowed = origin if origin in asker.origins else ""
        refused = self._refused(asker, right, method, collection, inner, headers, client)
        if key and not refused and asker.rights != {Right.SEARCH}:
            refused = AccessRefusal(
                403, "no-right", f"{asker.shown} may do more than search, and does not belong into an address"
            )
        return Decision(asker, refused, allowed)

    def _asker(self, headers: Mapping[str, str], token: str | None, client: str) -> Principal | AccessRefusal:
        """Who sends it, or why nobody may who cannot be told."""
        if token is None:
            known = self._of_session(headers)
            if known.rights:
                return known
            return self._unknown(client, _TOKEN_NEEDED, tried=False) if self.is_closed else LOCAL
        is_key = token.startswith(KEY_MARK)
        if not (self.is_closed or is_key):
            return LOCAL
        if wait := self._failures.wait(client, self._now()):
            return _slow_down(wait)  # even if the token is right: guesses must not be confirmed
        found = self.accounts.key(token) if is_key and self.accounts else self.tokens.principal(token)
        return found if found.rights else self._unknown(client, _WRONG_KEY if is_key else _WRONG_TOKEN, tried=True)

    def _refused(
        self,
        asker: Principal,
        right: Right,
        method: str,
        collection: str,
        path: str,
        headers: Mapping[str, str],
        client: str,
    ) -> AccessRefusal | None:
        origin = headers.get("origin", "")
        is_cross = bool(origin) and not _is_same_origin(headers)
        if is_cross and asker.origins and origin not in asker.origins:
            return AccessRefusal(
                403,
                "origin-not-allowed",
                f"{asker.shown} is not for pages of {origin[:200]}: make one with 'levada keys add --origin'",
            )
        if right is not Right.OPEN and right not in asker.rights:
            return _no_right(asker, right)
        if collection and not asker.sees(collection):
            return AccessRefusal(403, "no-right", f"{asker.shown} may not use the collection {collection[:100]}")
        if asker.collections and path in OF_THE_SERVER:
            return AccessRefusal(403, "no-right", f"{asker.shown} is for some collections, and this concerns all")
        if asker.rate and (wait := self._rates.wait(asker, client, self._now())):
            return AccessRefusal(429, "too-many-requests", f"{asker.shown} is used too often: wait", int(wait) + 1)
        if method in _SAFE or (origin and origin in asker.origins):
            return None
        return None if _is_same_origin(headers) else _CROSS_SITE

    def _preflight(self, path: str, headers: Mapping[str, str]) -> Decision:
        """A browser asks, without the key, whether a page of another site may send a request with one."""
        origin = headers.get("origin", "")
        method = headers["access-control-request-method"]
        try:
            known = self.accounts is not None and self.accounts.allows_origin(origin)
        except LevadaError:
            known = False
        if not known or right_for(method, path) is Right.ADMIN:
            refused = AccessRefusal(403, "origin-not-allowed", f"no key is for pages of {origin[:200]}")
            return Decision(NOBODY, refused)
        return Decision(NOBODY, None, origin, preflight=True)

    def place_of(self, path: str) -> tuple[str, str]:
        """The collection that a path is about, and the path within it."""
        is_alone = len(self.collections) == 1
        if self.collections and path.startswith("/c/"):
            name, slash, rest = path[3:].partition("/")
            if name in self.collections or not is_alone:
                return name, f"{slash}{rest}" or "/"
        return (self.collections[0], path) if is_alone else ("", path)

    def log_in(self, token: str, client: str) -> str | AccessRefusal:
        """The name of a new session for a token, or why it is refused."""
        if wait := self._failures.wait(client, self._now()):
            return _slow_down(wait)
        role = self.tokens.role(token)
        if role is Role.NOBODY:
            return self._unknown(client, _WRONG_TOKEN, tried=True)
        name = secrets.token_urlsafe(32)
        self._sessions[name] = (role, self._now() + SESSION_SECONDS)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return name

    def log_in_user(self, name: str, password: str, client: str) -> str | AccessRefusal:
        """The name of a new session for a user, or why it is refused. It takes a while: call it on a thread."""
        if wait := self._failures.wait(client, self._now()):
            return _slow_down(wait)
        self._failures.count(client, self._now())  # before the hash, so that tries at the same time count
        try:
            session = self.accounts.log_in(name, password, client) if self.accounts else None
        except LevadaError as error:
            return AccessRefusal(503, "store-error", str(error))
        if session is None:
            return _WRONG_LOGIN
        self._failures.take_back(client, self._now())
        return session

    def log_in_identity(self, identities: Sequence[str], client: str) -> str | None:
        """The name of a new session for a user with one of these OpenID identities; None if there is none."""
        return self.accounts.log_in_identity(identities, client) if self.accounts else None

    def log_out(self, headers: Mapping[str, str], client: str = "") -> None:
        session = _session_of(headers)
        if self._sessions.pop(session, None) is None and session and self.accounts:
            self.accounts.end_session(session, client)

    def record(self, asker: Principal, client: str, action: str, object: str, outcome: str) -> None:
        """Write a line into the audit log, if there is one."""
        if self.accounts:
            self.accounts.record(Actor(asker.name or "nobody", asker.kind, client), action, object, outcome)

    def _of_session(self, headers: Mapping[str, str]) -> Principal:
        session = _session_of(headers)
        if not session:
            return NOBODY
        role, expires = self._sessions.get(session, (Role.NOBODY, 0.0))
        if role and expires > self._now():
            return self.tokens.principal(self.tokens.admin if role is Role.ADMIN else self.tokens.reader)
        return self.accounts.user_of_session(session) if self.accounts else NOBODY

    def _unknown(self, client: str, why: AccessRefusal, tried: bool) -> AccessRefusal:
        now = self._now()
        if wait := self._failures.wait(client, now):
            return _slow_down(wait)
        if tried:
            self._failures.count(client, now)
        return why

    def _is_ours(self, host: str) -> bool:
        name = _host_name(host)
        return name in self.names or is_address(name) or name == "localhost"


def _no_right(asker: Principal, right: Right) -> AccessRefusal:
    if asker.kind == "key":
        return AccessRefusal(
            403, "no-right", f"{asker.shown} has the scope {asker.role}, and this needs the scope {right.value}"
        )
    if asker.kind == "token":
        return AccessRefusal(403, "read-only", "this token may only read: use the admin token")
    needed = f"{asker.shown} is {_article(asker.role)}, and this needs {_article(role_for(right))}"
    return AccessRefusal(403, "no-right", needed)


def _article(role: str) -> str:
    return f"an {role}" if role[:1] in "ae" else f"a {role}"


class _Levels:
    """Leaky buckets by name, which remember only so many."""

    def __init__(self, most: int = _MOST_CLIENTS) -> None:
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name -> level, since
        self._most = most

    def level(self, name: str, now: float, per_second: float) -> float:
        level, since = self._levels.get(name, (0.0, now))
        return max(0.0, level - (now - since) * per_second)

    def set(self, name: str, level: float, now: float) -> None:
        self._levels[name] = (level, now)
        self._levels.move_to_end(name)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)


class _Failures:
    """Wrong tokens and passwords, in a leaky bucket for each client."""

    def __init__(self) -> None:
        self._levels = _Levels()

    def wait(self, client: str, now: float) -> float:
        """Seconds until this client may try again; 0 if it may now."""
        return max(0.0, (self._level(client, now) - _FREE_FAILURES + 1.0) * _SECONDS_PER_FAILURE)

    def count(self, client: str, now: float) -> None:
        self._levels.set(client, self._level(client, now) + 1.0, now)

    def take_back(self, client: str, now: float) -> None:
        self._levels.set(client, max(0.0, self._level(client, now) - 1.0), now)

    def _level(self, client: str, now: float) -> float:
        return self._levels.level(client, now, 1.0 / _SECONDS_PER_FAILURE)


class _Rates:
    """Requests with a key, in a leaky bucket for each address, and one for all addresses together."""

    def __init__(self) -> None:
        self._levels = _Levels()

    def wait(self, key: Principal, client: str, now: float) -> float:
        """Seconds until this request may come; 0 if it may now, and is then counted."""
        buckets = ((f"{key.name} {client}", key.rate), (key.name, key.rate * _ADDRESSES))
        levels = [(name, self._levels.level(name, now, rate / _MINUTE), rate) for name, rate in buckets]
        wait = max((level + 1.0 - rate) / rate * _MINUTE for _, level, rate in levels)
        if wait > 0.0:
            return wait
        for name, level, _ in levels:
            self._levels.set(name, level + 1.0, now)
        return 0.0


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


def _key_in(query: str) -> str:
    if f"{KEY_FIELD}={KEY_MARK}" not in query:
        return ""
    try:
        return next((value for name, value in parse_qsl(query, max_num_fields=50) if name == KEY_FIELD), "")
    except ValueError:
        return ""


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
        name, bracket, rest = host[1:].partition("]")
        is_address = bracket and (not rest or rest.startswith(":"))
        return name.lower() if is_address else host  # `[::1].example.org` is a name
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
