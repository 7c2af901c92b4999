"""The access file of a server: users, sessions, keys and the audit log, in a small SQLite file.

It holds no secret in the clear. Passwords are kept as argon2id hashes, keys and sessions as SHA-256 of 256 random
bits. Only its owner may read it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from levada.core.errors import StoreDamaged, StoreError
from levada.store.rows import Row
from levada.store.sqlite.small_file import SmallFile

_KEPT = 100_000  # lines of the audit log
_PRUNED_EVERY = 1_000


class UserRow(msgspec.Struct, frozen=True):
    name: str
    role: str
    password: str  # an argon2id hash; "" is none
    openid: str
    collections: tuple[str, ...]
    created: float


class KeyRow(msgspec.Struct, frozen=True):
    name: str
    hash: bytes
    scopes: tuple[str, ...]
    collections: tuple[str, ...]
    origins: tuple[str, ...]
    rate: int
    results: int
    created: float
    expires: float | None


class AuditRow(msgspec.Struct, frozen=True):
    at: float
    who: str
    kind: str
    action: str
    object: str
    origin: str
    outcome: str


class AccessFile(SmallFile):
    """The tables of an access file. Threads may share one; other processes open their own.

    Whatever changes users or keys takes the line for the audit log too: both are written, or neither.
    """

    application_id = 0x4C764163  # "LvAc"
    schema = (
        "CREATE TABLE users (name TEXT PRIMARY KEY COLLATE NOCASE, role TEXT NOT NULL, password TEXT NOT NULL,"
        " openid TEXT NOT NULL COLLATE NOCASE, collections TEXT NOT NULL, created REAL NOT NULL)",
        "CREATE UNIQUE INDEX users_openid ON users (openid) WHERE openid <> ''",
        "CREATE TABLE sessions (hash BLOB PRIMARY KEY, user TEXT NOT NULL COLLATE NOCASE, expires REAL NOT NULL)",
        "CREATE TABLE keys (name TEXT PRIMARY KEY COLLATE NOCASE, hash BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL,"
        " collections TEXT NOT NULL, origins TEXT NOT NULL, rate INTEGER NOT NULL, results INTEGER NOT NULL,"
        " created REAL NOT NULL, expires REAL)",
        "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL,"
        " kind TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, origin TEXT NOT NULL,"
        " outcome TEXT NOT NULL)",
    )
    holds = "users and keys"
    durable = True

    def __init__(self, path: Path) -> None:
        with self._named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            path.chmod(0o600)  # the log beside it gets the same mode from SQLite
            super().__init__(path)

    def all_users(self) -> list[UserRow]:
        return [_user(row) for row in self._rows(f"SELECT {_USER} FROM users ORDER BY name")]

    def user(self, name: str) -> UserRow | None:
        return next(map(_user, self._rows(f"SELECT {_USER} FROM users WHERE name = ?", (name,))), None)

    def user_of_identity(self, openid: str) -> UserRow | None:
        """The user with this identity at the OpenID provider."""
        found = self._rows(f"SELECT {_USER} FROM users WHERE openid = ? AND openid <> ''", (openid,))
        return next(map(_user, found), None)

    def add_user(self, user: UserRow, line: AuditRow) -> bool:
        """False if there is one of this name or identity already."""
        with self._transaction() as run:
            done = run.execute(
                f"INSERT INTO users ({_USER}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (user.name, user.role, user.password, user.openid, _encode(user.collections), user.created),
            )
            if done.rowcount:
                _write(run, line)
            return bool(done.rowcount)

    def edit_user(self, name: str, column: str, value: str, line: AuditRow, *, end_sessions: bool) -> bool:
        """Set one column; False if there is no such user."""
        with self._transaction() as run:
            assert column in ("role", "password", "openid", "collections")
            done = run.execute(f"UPDATE users SET {column} = ? WHERE name = ?", (value, name))
            if done.rowcount:
                if end_sessions:
                    run.execute("DELETE FROM sessions WHERE user = ?", (name,))
                _write(run, line)
            return bool(done.rowcount)

    def replace_password(self, name: str, before: str, after: str) -> None:
        """The same password under newer parameters, unless it was changed meanwhile."""
        with self._transaction() as run:
            run.execute("UPDATE users SET password = ? WHERE name = ? AND password = ?", (after, name, before))

    def remove_user(self, name: str, line: AuditRow) -> bool:
        with self._transaction() as run:
            done = run.execute("DELETE FROM users WHERE name = ?", (name,))
            if done.rowcount:
                run.execute("DELETE FROM sessions WHERE user = ?", (name,))
                _write(run, line)
            return bool(done.rowcount)

    def add_session(self, hash: bytes, user: str, now: float, expires: float, line: AuditRow) -> bool:
        """Open a session; False if the user is gone."""
        with self._transaction() as run:
            run.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            done = run.execute(
                "INSERT INTO sessions SELECT ?, name, ? FROM users WHERE name = ?",
                (hash, expires, user),
            )
            if done.rowcount:
                _write(run, line)
            return bool(done.rowcount)

    def user_of_session(self, hash: bytes, now: float) -> UserRow | None:
        asked = f"SELECT {_USER_OF} FROM sessions s JOIN users u ON u.name = s.user WHERE s.hash = ? AND s.expires > ?"
        return next(map(_user, self._rows(asked, (hash, now))), None)

    def end_session(self, hash: bytes, line: AuditRow) -> None:
        with self._transaction() as run:
            if run.execute("DELETE FROM sessions WHERE hash = ?", (hash,)).rowcount:
                _write(run, line)

    def sessions(self, now: float) -> dict[str, int]:
        """How many are open, by user."""
        rows = self._rows("SELECT user, COUNT(*) FROM sessions WHERE expires > ? GROUP BY user", (now,))
        return {str(user): int(count) for user, count in rows}

    def all_keys(self) -> list[KeyRow]:
        return [_key(row) for row in self._rows(f"SELECT {_KEY} FROM keys ORDER BY name")]

    def key(self, hash: bytes) -> KeyRow | None:
        return next(map(_key, self._rows(f"SELECT {_KEY} FROM keys WHERE hash = ?", (hash,))), None)

    def add_key(self, key: KeyRow, line: AuditRow) -> bool:
        """False if there is one of this name already."""
        with self._transaction() as run:
            lists = (_encode(key.scopes), _encode(key.collections), _encode(key.origins))
            done = run.execute(
                f"INSERT INTO keys ({_KEY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (key.name, key.hash, *lists, key.rate, key.results, key.created, key.expires),
            )
            if done.rowcount:
                _write(run, line)
            return bool(done.rowcount)

    def remove_key(self, name: str, line: AuditRow) -> bool:
        with self._transaction() as run:
            done = run.execute("DELETE FROM keys WHERE name = ?", (name,))
            if done.rowcount:
                _write(run, line)
            return bool(done.rowcount)

    def write_log(self, line: AuditRow) -> None:
        with self._transaction() as run:
            _write(run, line)

    def reword_log(self, reworded: Callable[[str], str]) -> None:
        """Let each line of the audit log say of its object what `reworded` returns for it."""
        with self._transaction() as run:
            for (known,) in run.execute("SELECT DISTINCT object FROM log WHERE object <> ''").fetchall():
                if (told := reworded(known)) != known:
                    run.execute("UPDATE log SET object = ? WHERE object = ?", (told, known))

    def log(self, limit: int, who: str = "") -> list[tuple[int, AuditRow]]:
        """The newest lines, the newest first."""
        rows = self._rows(
            f"SELECT id, {_LINE} FROM log WHERE ?1 = '' OR who = ?1 ORDER BY id DESC LIMIT ?2", (who, limit)
        )
        return [(int(row[0]), AuditRow(*row[1:])) for row in rows]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with self._named(self.path), super()._translated():
            yield

    @contextmanager
    def _named(self, path: Path) -> Iterator[None]:
        """Say what a damaged file means here: whoever cannot be looked up is not let in."""
        try:
            yield
        except StoreDamaged:
            raise StoreDamaged(
                f"{path} is damaged, and nobody can log in: restore a copy, or move it away and add the users again"
            ) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be used ({error.strerror}): name another file with --access") from None


_USER = "name, role, password, openid, collections, created"
_USER_OF = ", ".join(f"u.{column}" for column in _USER.split(", "))
_KEY = "name, hash, scopes, collections, origins, rate, results, created, expires"
_LINE = "at, who, kind, action, object, origin, outcome"


def _encode(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode()


def _names(text: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.MsgspecError:
        raise StoreDamaged("a list of names cannot be read") from None


def _user(row: Row) -> UserRow:
    name, role, password, openid, collections, created = row
    return UserRow(name, role, password, openid, _names(collections), created)


def _key(row: Row) -> KeyRow:
    name, hash, scopes, collections, origins, rate, results, created, expires = row
    return KeyRow(name, hash, _names(scopes), _names(collections), _names(origins), rate, results, created, expires)


def _write(run: sqlite3.Connection, line: AuditRow) -> None:
    done = run.execute(
        f"INSERT INTO log ({_LINE}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (line.at, line.who, line.kind, line.action, line.object, line.origin, line.outcome),
    )
    if done.lastrowid is not None and done.lastrowid % _PRUNED_EVERY == 0:
        run.execute("DELETE FROM log WHERE id <= ?", (done.lastrowid - _KEPT,))
