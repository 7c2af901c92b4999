"""Users, keys, the audit log, and who you are, over HTTP."""

from __future__ import annotations

from typing import Annotated

import msgspec

from levada.accounts.accounts import Accounts, Actor, KeyOptions
from levada.accounts.records import AuditEntry, KeyInfo, UserInfo
from levada.core.errors import NotFound, UsageError
from levada.serve.access import ASKED_BY, ASKED_FROM
from levada.serve.operations import Nothing, Operations
from levada.serve.view import View

PEOPLE = Operations()
_DAY = 86_400.0
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
_Word = Annotated[str, msgspec.Meta(max_length=300)]
_Names = Annotated[list[_Word], msgspec.Meta(max_length=100)]


class MeAnswer(msgspec.Struct, frozen=True):
    name: str  # "" if nobody is logged in
    kind: str  # local, token, user, key or nobody
    role: str  # of a key: its scopes
    rights: list[str]
    collections: list[str]  # empty: all of the server


class UserAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: _Name
    role: _Word = "reader"
    password: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    openid: Annotated[_Word, msgspec.Meta(description="The mail address or subject at the OpenID provider.")] = ""
    collections: _Names = msgspec.field(default_factory=list)


class UserChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only what is given is changed."""

    name: _Name
    role: _Word | None = None
    password: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    collections: _Names | None = None


class NameAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: _Name


class KeyAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: _Name
    scopes: _Names = msgspec.field(default_factory=lambda: ["search"])
    days: Annotated[float, msgspec.Meta(gt=0, le=36_500, description="Until it expires; null: never.")] | None = None
    collections: _Names = msgspec.field(default_factory=list)
    origins: Annotated[_Names, msgspec.Meta(description="Sites whose pages may use it.")] = msgspec.field(
        default_factory=list
    )
    rate: Annotated[int, msgspec.Meta(ge=0, le=10**6, description="Requests a minute from one address.")] | None = None
    results: Annotated[int, msgspec.Meta(ge=0, le=10_000, description="Search results that it reaches.")] | None = None


class AuditAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    who: Annotated[str, msgspec.Meta(max_length=100, description="Only what this user or key did.")] = ""


class UsersAnswer(msgspec.Struct, frozen=True):
    users: list[UserInfo]


class KeysAnswer(msgspec.Struct, frozen=True):
    keys: list[KeyInfo]


class NewKeyAnswer(msgspec.Struct, frozen=True):
    key: KeyInfo
    secret: str  # shown only now


class AuditAnswer(msgspec.Struct, frozen=True):
    entries: list[AuditEntry]  # the newest first


@PEOPLE.add("GET", "/me", "Who you are here, and what you may do", quick=True)
def _me(_view: View, _ask: Nothing) -> MeAnswer:
    asker = ASKED_BY.get()
    rights = sorted(right.value for right in asker.rights)
    return MeAnswer(asker.name, asker.kind, asker.role, rights, list(asker.collections))


@PEOPLE.add("GET", "/users", "The users of the server", errors=(404,))
def _users(view: View, _ask: Nothing) -> UsersAnswer:
    return UsersAnswer(_accounts(view).users())


@PEOPLE.add(
    "POST", "/users", "Add a user, with a password or an identity for OpenID Connect", status=201, errors=(404,)
)
def _add_user(view: View, ask: UserAsk) -> UserInfo:
    accounts = _accounts(view)
    if ASKED_BY.get().kind == "local" and ask.role != "admin" and not accounts.has_users:
        raise UsageError("the first user must be an admin: with a user, the server is closed to everybody else")
    options = {"password": ask.password, "openid": ask.openid}
    return accounts.add_user(ask.name, ask.role, _by(), **options, collections=ask.collections)


@PEOPLE.add("PUT", "/users", "Change the role, the password or the collections of a user", errors=(404,))
def _change_user(view: View, ask: UserChange) -> UserInfo:
    accounts = _accounts(view)
    found = accounts.user(ask.name)
    if ask.role is not None:
        found = accounts.set_role(ask.name, ask.role, _by())
    if ask.collections is not None:
        found = accounts.set_collections(ask.name, ask.collections, _by())
    if ask.password is not None:
        found = accounts.set_password(ask.name, ask.password, _by())
    return found


@PEOPLE.add("DELETE", "/users", "Remove a user and end their sessions", errors=(404,))
def _remove_user(view: View, ask: NameAsk) -> UsersAnswer:
    _accounts(view).remove_user(ask.name, _by())
    return _users(view, Nothing())


@PEOPLE.add("GET", "/keys", "The keys of the server", errors=(404,))
def _keys(view: View, _ask: Nothing) -> KeysAnswer:
    return KeysAnswer(_accounts(view).keys())


@PEOPLE.add("POST", "/keys", "Add a key; its secret is shown only now", status=201, errors=(404,))
def _add_key(view: View, ask: KeyAsk) -> NewKeyAnswer:
    options = KeyOptions(
        scopes=ask.scopes,
        collections=ask.collections,
        origins=ask.origins,
        seconds=None if ask.days is None else ask.days * _DAY,
        rate=ask.rate,
        results=ask.results,
    )
    return NewKeyAnswer(*_accounts(view).add_key(ask.name, options, _by()))


@PEOPLE.add("DELETE", "/keys", "Revoke a key, at once", errors=(404,))
def _revoke_key(view: View, ask: NameAsk) -> KeysAnswer:
    _accounts(view).revoke_key(ask.name, _by())
    return _keys(view, Nothing())


@PEOPLE.add("GET", "/audit", "Who did what, from where, the newest first", errors=(404,))
def _audit(view: View, ask: AuditAsk) -> AuditAnswer:
    return AuditAnswer(_accounts(view).log(ask.limit, ask.who))


def _accounts(view: View) -> Accounts:
    if view.accounts is None:
        raise NotFound("this server keeps no users: it was started without an access file")
    return view.accounts


def _by() -> Actor:
    asker = ASKED_BY.get()
    return Actor(asker.name, asker.kind, ASKED_FROM.get())
