"""Cookies of one site: taken from its answers, and sent back by the rules of browsers.

`http.cookiejar` has the rules: host-only, domain, path, secure and expiry. A jar belongs to one site, by its host and
port, and no other site gets anything of it, whatever domain a cookie names. What came over https goes over https
only, unless the rule of the site allows `plain_http`.

The jar of a collection is kept in `cookies/` of the data folder, in a file that only its user can read. It is part
of no export and no backup, and goes when its site is forgotten.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

import msgspec

log = logging.getLogger(__name__)

FOLDER = "cookies"
_BEFORE_MARK = "@"
_MOST_COOKIES = 200
_MOST_CHARACTERS = 8_192  # of one cookie
_MOST_BYTES = 4 * 1024 * 1024  # of a file


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cookie as it stands in the file."""

    name: str
    value: str | None
    domain: str
    domain_specified: bool
    path: str
    path_specified: bool
    secure: bool
    expires: int | None


class KeptSession(msgspec.Struct, frozen=True):
    """What the file of a session holds."""

    cookies: list[_Kept] = []
    login_found: list[str] = []  # where the address of the login form led


class SiteCookies:
    """The cookies of one site.

    >>> cookies = SiteCookies()
    >>> cookies.take("https://a.example/", [("set-cookie", "session=x; Path=/shop")])
    True
    >>> cookies.header("https://a.example/shop/1"), cookies.header("https://a.example/")
    ('session=x', '')
    """

    def __init__(self, *, plain_http: bool = False) -> None:
        self._plain_http = plain_http
        self._policy = DefaultCookiePolicy(
            netscape=True, rfc2965=False, strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain
        )
        self._jar = CookieJar(self._policy)

    def __len__(self) -> int:
        return len(self._jar)

    def header(self, url: str) -> str:
        """What goes into the Cookie header of a request; "" if nothing does."""
        if not len(self._jar):
            return ""
        asked = _CookieRequest(url)
        self._jar.add_cookie_header(cast(Any, asked))
        return asked.cookie

    def take(self, url: str, headers: Sequence[tuple[str, str]]) -> bool:
        """Take the cookies of an answer; returns whether it sets any."""
        told = [value for name, value in headers if name == "set-cookie"]
        if not told:
            return False
        asked = cast(Any, _CookieRequest(url))
        only_secure = url.startswith("https:") and not self._plain_http
        for cookie in self._jar.make_cookies(cast(Any, _CookieAnswer(told)), asked):
            size = len(cookie.name) + len(cookie.value or "") + len(cookie.path)
            if size > _MOST_CHARACTERS or not self._policy.set_ok(cookie, asked):
                continue
            cookie.secure = cookie.secure or only_secure
            if len(self._jar) < _MOST_COOKIES or any(each.name == cookie.name for each in self._jar):
                self._jar.set_cookie(cookie)
        return True

    def clear(self) -> None:
        self._jar.clear()

    def kept(self) -> list[_Kept]:
        """For the file. Those that end with a browser's session are kept too: a crawl is one long session."""
        self._jar.clear_expired_cookies()
        return [
            _Kept(
                each.name,
                each.value,
                each.domain,
                each.domain_specified,
                each.path,
                each.path_specified,
                each.secure,
                each.expires,
            )
            for each in self._jar
        ]

    def put(self, kept: Sequence[_Kept]) -> None:
        """Those of a file."""
        for each in kept[:_MOST_COOKIES]:
            self._jar.set_cookie(_cookie(each))
        self._jar.clear_expired_cookies()


def _cookie(kept: _Kept) -> Cookie:
    return Cookie(
        version=0,
        name=kept.name,
        value=kept.value,
        port=None,
        port_specified=False,
        domain=kept.domain,
        domain_specified=kept.domain_specified,
        domain_initial_dot=kept.domain.startswith("."),
        path=kept.path,
        path_specified=kept.path_specified,
        secure=kept.secure,
        expires=kept.expires,
        discard=kept.expires is None,
        comment=None,
        comment_url=None,
        rest={},
    )


class _CookieRequest:
    """A request as `http.cookiejar` wants it."""

    unverifiable = False

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = url
        self.type = parts.scheme
        self.host = parts.netloc
        self.origin_req_host = parts.hostname or ""
        self.cookie = ""

    def get_full_url(self) -> str:
        return self._url

    def has_header(self, _name: str) -> bool:
        return False

    def get_header(self, _name: str, default: str | None = None) -> str | None:
        return default

    def add_unredirected_header(self, name: str, value: str) -> None:
        if name == "Cookie":
            self.cookie = value


class _CookieAnswer:
    """An answer, and its headers, as `http.cookiejar` wants them."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def info(self) -> _CookieAnswer:
        return self

    def get_all(self, name: str, default: list[str]) -> list[str]:
        return self._told if name == "Set-Cookie" else default


def session_file(folder: Path, site: str, mark: str) -> Path:
    """Where a session with a site is kept; `folder` is the data folder of the collection, `mark` tells the login."""
    return folder / FOLDER / f"{quote(site, safe='')}{_BEFORE_MARK}{mark}.json"


def session_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The site of each file of a session, and the file."""
    for path in sorted((folder / FOLDER).glob("*")):
        yield unquote(path.name.partition(_BEFORE_MARK)[0]), path


def read_session(path: Path) -> KeptSession:
    """What is kept of a session; nothing if the file is not there."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=KeptSession)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError):
        log.warning("%s cannot be read: the site sets its cookies anew", path)
    return KeptSession()


def write_session(path: Path, session: KeptSession) -> None:
    """Keep it in this file, for its user alone. One that cannot be written costs a login later, and no more."""
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(session))
        fresh.replace(path)
    except OSError as error:
        log.warning("the cookies of the site cannot be kept in %s: %s", path, error.strerror)
