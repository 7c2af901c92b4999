"""Rights, roles and scopes, and the records of users, keys and the audit log.

A right is what an operation needs. A role is a set of rights for a person, a scope one for a program. Nothing is
allowed that is not listed here.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Literal

import msgspec


class Right(Enum):
    """What an operation needs. `OPEN` needs nothing."""

    OPEN = "open"
    SEARCH = "search"  # what a search box needs
    READ = "read"
    METRICS = "metrics"
    CONTROL = "control"  # what an editor does: add, check, pause, budget, notifications
    ADMIN = "admin"  # what shows or takes secrets, or cannot be undone


class Role(IntEnum):
    """The role of a person; each may do what those before it may."""

    NOBODY = 0
    READER = 1
    EDITOR = 2
    ADMIN = 3


_READING = frozenset({Right.SEARCH, Right.READ, Right.METRICS})
EVERYTHING = frozenset(Right)
ROLE_RIGHTS = {
    Role.NOBODY: frozenset[Right](),
    Role.READER: _READING,
    Role.EDITOR: _READING | {Right.CONTROL},
    Role.ADMIN: EVERYTHING,
}
SCOPE_RIGHTS = {
    "search": frozenset({Right.SEARCH}),
    "read": _READING,
    "metrics": frozenset({Right.METRICS}),
    "control": frozenset({Right.CONTROL}),
    "admin": EVERYTHING,
}
ROLES = {role.name.lower(): role for role in Role if role}
"""The roles that a user may have, by name."""


def role_for(right: Right) -> str:
    """The least role that has this right, by name."""
    return next(name for name, role in ROLES.items() if right in ROLE_RIGHTS[role])


class Principal(msgspec.Struct, frozen=True):
    """Who sends a request, and what they may do."""

    kind: Literal["nobody", "local", "token", "user", "key"] = "nobody"
    name: str = ""
    role: str = ""
    rights: frozenset[Right] = frozenset()
    collections: tuple[str, ...] = ()  # empty: every collection of the server
    origins: tuple[str, ...] = ()  # of a key: the sites whose pages may use it
    rate: int = 0  # of a key: requests a minute from one address; 0: any number
    results: int = 0  # of a key: search results that it reaches; 0: all

    @property
    def shown(self) -> str:
        """The name in sentences and in the log."""
        return f"the key '{self.name}'" if self.kind == "key" else self.name

    def sees(self, collection: str) -> bool:
        return not self.collections or collection in self.collections


NOBODY = Principal()
LOCAL = Principal("local", "this machine", "admin", EVERYTHING)


class UserInfo(msgspec.Struct, frozen=True):
    """A user, as shown: no password, no hash."""

    name: str
    role: str
    collections: list[str]  # empty: all of the server
    openid: str  # the identity at the OpenID provider; "" is none
    password: bool  # whether there is one
    created: str
    sessions: int  # that are open now


class KeyInfo(msgspec.Struct, frozen=True):
    """A key, as shown: no secret, no hash."""

    name: str
    scopes: list[str]
    collections: list[str]  # empty: all of the server
    origins: list[str]  # sites whose pages may use it
    rate: int  # requests a minute from one address; 0: any number
    results: int  # search results that it reaches; 0: all
    created: str
    expires: str | None
    expired: bool


class AuditEntry(msgspec.Struct, frozen=True):
    """One line of the audit log: who did what to which object, from where, and whether it was done."""

    id: int
    at: str
    who: str
    kind: str  # user, key, token, local, command line or nobody
    action: str
    object: str
    origin: str  # the address of the client, or the command line
    outcome: str  # done, or why not
