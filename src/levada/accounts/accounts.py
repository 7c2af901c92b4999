"""Users, keys and sessions of a server, and the audit log of what they did.

Passwords are hashed with argon2id, which takes some 50 ms and 64 MiB on purpose: callers on an event loop use a
thread.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from levada.accounts.records import (
    NOBODY,
    ROLE_RIGHTS,
    ROLES,
    SCOPE_RIGHTS,
    AuditEntry,
    KeyInfo,
    Principal,
    UserInfo,
)
from levada.core.clock import SystemClock
from levada.core.durations import iso
from levada.core.errors import LevadaError, MissingExtra, NotFound, UsageError
from levada.store.access_file import AccessFile, AuditRow, KeyRow, UserRow

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SESSION_SECONDS = 12 * 3600.0
KEY_MARK = "lv_"  # how every key begins, so that one that leaked is recognized
LEAST_PASSWORD, _MOST_PASSWORD = 10, 1_000  # characters
SEARCH_RATE, SEARCH_RESULTS = 120, 50  # the limits of a key that may only search, unless others are named
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,62}")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_AT_ONCE = 2  # passwords that are hashed at the same time: each takes 64 MiB
_LONGEST_OBJECT = 200


class Actor(msgspec.Struct, frozen=True):
    """Who changes users and keys, for the audit log."""

    name: str
    kind: str
    origin: str


class ExpiredKey(LevadaError):
    """A key whose time is over."""


class KeyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a key may do. `rate` and `results` are None for the usual ones."""

    scopes: Sequence[str] = ("search",)
    collections: Sequence[str] = ()
    origins: Sequence[str] = ()
    seconds: float | None = None  # until it expires; None: never
    rate: int | None = None
    results: int | None = None


class Accounts:
    """The users, keys and audit log in one access file. The file is made when the first is added.

    Threads may share one.
    """

    def __init__(self, path: Path, now: Callable[[], float] | None = None) -> None:
        self.path = path
        self._now = now or SystemClock().now
        self._opened: AccessFile | None = None
        self._opening = Lock()
        self._hashing = BoundedSemaphore(_AT_ONCE)
        self._nobody = ""  # the hash of no password, which unknown names are compared with

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    @property
    def exist(self) -> bool:
        """Whether there is an access file."""
        return self._opened is not None or self.path.exists()

    @property
    def has_users(self) -> bool:
        return self.exist and bool(self._file().all_users())

    @property
    def has_keys(self) -> bool:
        return self.exist and bool(self._file().all_keys())

    # Users

    def users(self) -> list[UserInfo]:
        if not self.exist:
            return []
        sessions = self._file().sessions(self._now())
        return [_user_info(row, sessions.get(row.name, 0)) for row in self._file().all_users()]

    def user(self, name: str) -> UserInfo:
        row = self._file().user(name) if self.exist else None
        if row is None:
            raise self._no_user(name)
        return _user_info(row, self._file().sessions(self._now()).get(row.name, 0))

    def add_user(
        self,
        name: str,
        role: str,
        by: Actor,
        *,
        password: str = "",
        openid: str = "",
        collections: Sequence[str] = (),
    ) -> UserInfo:
        """Add somebody who logs in with a password, with an identity of the OpenID provider, or either."""
        _check_name(name, "user")
        _check_role(role)
        if not password and not openid:
            raise UsageError(f"{name} needs a password, or an identity for OpenID Connect")
        hashed = self._hash(_checked_password(password)) if password else ""
        row = UserRow(name, role, hashed, openid.strip(), tuple(collections), self._now())
        told = f"{name} ({role})"
        if not self._file().add_user(row, self._line(by, "user added", told)):
            if self._file().user(name) is None:
                raise UsageError(f"another user has the identity {openid} already: see 'levada users list'")
            raise UsageError(
                f"there is a user {name} already: change the role with 'levada users role', "
                "or the password with 'levada users password'"
            )
        return self.user(name)

    def remove_user(self, name: str, by: Actor) -> None:
        """Remove a user and end their sessions."""
        if not (self.exist and self._file().remove_user(name, self._line(by, "user removed", name))):
            raise self._no_user(name)

    def set_role(self, name: str, role: str, by: Actor) -> UserInfo:
        """Give a user another role, which counts from their next request on."""
        _check_role(role)
        line = self._line(by, "role changed", f"{name} ({role})")
        self._edit(name, "role", role, line, end_sessions=False)
        return self.user(name)

    def set_collections(self, name: str, collections: Sequence[str], by: Actor) -> UserInfo:
        """Limit a user to some collections; none named: all of them."""
        line = self._line(by, "collections changed", f"{name} ({', '.join(collections) or 'all'})")
        self._edit(name, "collections", msgspec.json.encode(collections).decode(), line, end_sessions=False)
        return self.user(name)

    def set_password(self, name: str, password: str, by: Actor) -> UserInfo:
        """Give a user another password, and end their sessions."""
        self.user(name)  # before the password is hashed
        hashed = self._hash(_checked_password(password))
        self._edit(name, "password", hashed, self._line(by, "password changed", name), end_sessions=True)
        return self.user(name)

    def _edit(self, name: str, column: str, value: str, line: AuditRow, *, end_sessions: bool) -> None:
        if not (self.exist and self._file().edit_user(name, column, value, line, end_sessions=end_sessions)):
            raise self._no_user(name)

    def _no_user(self, name: str) -> NotFound:
        known = ", ".join(each.name for each in self._file().all_users()) if self.exist else ""
        return NotFound(f"there is no user {name[:100]}: {f'there is {known}' if known else 'nobody was added yet'}")

    # Sessions

    def log_in(self, name: str, password: str, origin: str) -> str | None:
        """The secret of a new session; None if the name or the password is wrong, without saying which."""
        row = self._file().user(name) if self.exist else None
        if not self._is_right(row, password[:_MOST_PASSWORD]) or row is None:
            self.record(Actor(name[:63], "nobody", origin), "log in", "", "wrong name or password")
            return None
        return self._session(row, origin, "log in")

    def log_in_identity(self, identities: Sequence[str], origin: str) -> str | None:
        """The secret of a new session for the user with one of these OpenID identities."""
        for each in identities if self.exist else ():
            if row := self._file().user_of_identity(each):
                return self._session(row, origin, "log in by OpenID")
        self.record(
            Actor(identities[0][:100] if identities else "", "nobody", origin), "log in by OpenID", "", "no user"
        )
        return None

    def _session(self, row: UserRow, origin: str, action: str) -> str | None:
        secret, now = secrets.token_urlsafe(32), self._now()
        line = self._line(Actor(row.name, "user", origin), action, "")
        opened = self._file().add_session(_digest(secret), row.name, now, now + SESSION_SECONDS, line)
        return secret if opened else None

    def user_of_session(self, secret: str) -> Principal:
        """Who opened this session; `NOBODY` if it has ended."""
        row = self._file().user_of_session(_digest(secret), self._now()) if self.exist else None
        if row is None or row.role not in ROLES:
            return NOBODY
        return Principal("user", row.name, row.role, ROLE_RIGHTS[ROLES[row.role]], row.collections)

    def end_session(self, secret: str, origin: str) -> None:
        if self.exist:
            who = self.user_of_session(secret)
            self._file().end_session(_digest(secret), self._line(Actor(who.name, who.kind, origin), "log out", ""))

    # Keys

    def keys(self) -> list[KeyInfo]:
        return [self._key_info(row) for row in self._file().all_keys()] if self.exist else []

    def add_key(self, name: str, options: KeyOptions, by: Actor) -> tuple[KeyInfo, str]:
        """A new key and its secret, which is kept nowhere."""
        _check_name(name, "key")
        scopes = tuple(dict.fromkeys(options.scopes))
        _check_scopes(scopes)
        if options.seconds is not None and options.seconds <= 0:
            raise UsageError("a key expires in the future: name a duration such as 90d")
        is_public = scopes == ("search",)  # it stands in a web page, where everybody reads it
        secret = KEY_MARK + secrets.token_urlsafe(32)
        now = self._now()
        row = KeyRow(
            name,
            _digest(secret),
            scopes,
            tuple(options.collections),
            tuple(dict.fromkeys(map(checked_origin, options.origins))),
            options.rate if options.rate is not None else SEARCH_RATE if is_public else 0,
            options.results if options.results is not None else SEARCH_RESULTS if is_public else 0,
            now,
            None if options.seconds is None else now + options.seconds,
        )
        if not self._file().add_key(row, self._line(by, "key added", f"{name} ({', '.join(scopes)})")):
            raise UsageError(f"there is a key {name} already: choose another name, or revoke that one first")
        return self._key_info(row), secret

    def revoke_key(self, name: str, by: Actor) -> None:
        if not (self.exist and self._file().remove_key(name, self._line(by, "key revoked", name))):
            known = ", ".join(each.name for each in self.keys())
            raise NotFound(f"there is no key {name[:100]}: {f'there is {known}' if known else 'none was added yet'}")

    def key(self, secret: str) -> Principal:
        """Who sends this key: `NOBODY` if it is not known; `ExpiredKey` if its time is over."""
        row = self._file().key(_digest(secret)) if self.exist else None
        if row is None:
            return NOBODY
        if row.expires is not None and row.expires <= self._now():
            raise ExpiredKey(f"the key '{row.name}' expired at {iso(row.expires)}: make another with 'levada keys add'")
        rights = frozenset[Any]().union(*(SCOPE_RIGHTS.get(scope, ()) for scope in row.scopes))
        scopes = ",".join(row.scopes)
        return Principal("key", row.name, scopes, rights, row.collections, row.origins, row.rate, row.results)

    def allows_origin(self, origin: str) -> bool:
        """Whether any key may be used by pages of this origin."""
        if not self.exist:
            return False
        now = self._now()
        return any(
            origin in row.origins and (row.expires is None or row.expires > now) for row in self._file().all_keys()
        )

    def _key_info(self, row: KeyRow) -> KeyInfo:
        expired = row.expires is not None and row.expires <= self._now()
        lists = (list(row.scopes), list(row.collections), list(row.origins))
        return KeyInfo(row.name, *lists, row.rate, row.results, str(iso(row.created)), iso(row.expires), expired)

    # The audit log

    def record(self, by: Actor, action: str, object: str, outcome: str = "done") -> None:
        """Write a line, if there is an access file."""
        if self.exist:
            self._file().write_log(self._line(by, action, object, outcome))

    def log(self, limit: int = 100, who: str = "") -> list[AuditEntry]:
        """The newest lines, the newest first."""
        if not self.exist:
            return []
        return [
            AuditEntry(id, str(iso(row.at)), row.who, row.kind, row.action, row.object, row.origin, row.outcome)
            for id, row in self._file().log(limit, who)
        ]

    def _line(self, by: Actor, action: str, object: str, outcome: str = "done") -> AuditRow:
        return AuditRow(self._now(), by.name, by.kind, action, object[:_LONGEST_OBJECT], by.origin, outcome)

    # Passwords

    def _hash(self, password: str) -> str:
        with self._hashing:
            return str(_hasher().hash(password))

    def _is_right(self, row: UserRow | None, password: str) -> bool:
        """Whether this is the user's password; it takes as long for a name that nobody has."""
        from argon2.exceptions import InvalidHashError, VerificationError

        hasher = _hasher()
        if not self._nobody:
            self._nobody = self._hash(secrets.token_urlsafe(16))
        known = row.password if row and row.password else ""
        with self._hashing:
            try:
                hasher.verify(known or self._nobody, password)
            except (VerificationError, InvalidHashError):
                return False
        if row is not None and known and hasher.check_needs_rehash(known):
            with suppress(LevadaError):  # the next time, then
                self._file().replace_password(row.name, known, self._hash(password))
        return bool(known)

    def _file(self) -> AccessFile:
        with self._opening:
            if self._opened is None:
                self._opened = AccessFile(self.path)
            return self._opened


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError:
        raise MissingExtra("argon2-cffi", "accounts") from None
    return PasswordHasher()


def _digest(secret: str) -> bytes:
    """Of 256 random bits: a slow hash would add nothing."""
    return sha256(secret.encode("utf-8", "replace")).digest()


def _check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:70]!r} cannot name a {what}: use letters, digits and . _ - @ +, at most 63")


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError(f'there is no role "{role[:50]}": choose {", ".join(ROLES)}')


def _check_scopes(scopes: Sequence[str]) -> None:
    if not scopes:
        raise UsageError(f"a key needs a scope: {', '.join(SCOPE_RIGHTS)}")
    for each in scopes:
        if each not in SCOPE_RIGHTS:
            raise UsageError(f'there is no scope "{each[:50]}": choose from {", ".join(SCOPE_RIGHTS)}')


def _checked_password(password: str) -> str:
    if not LEAST_PASSWORD <= len(password) <= _MOST_PASSWORD:
        raise UsageError(
            f"a password has from {LEAST_PASSWORD} to {_MOST_PASSWORD:,} characters, not {len(password):,}"
        )
    return password


def checked_origin(text: str) -> str:
    """An origin as browsers send it: scheme, host in lower case, and a port that is not the usual one."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/") or parts.query or "@" in text:
        raise UsageError(f"{text[:200]!r} is no origin: write it like https://blog.example.org")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise UsageError(f"{text[:200]!r} is no origin: its host name cannot be written in ASCII") from None
    if not _HOST.fullmatch(host):
        raise UsageError(f"{text[:200]!r} is no origin: its host name holds signs that no host name has")
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}{'' if port in (None, usual) else f':{port}'}"


def _user_info(row: UserRow, sessions: int) -> UserInfo:
    shown = (list(row.collections), row.openid, bool(row.password), str(iso(row.created)))
    return UserInfo(row.name, row.role, *shown, sessions)
