"""Credentials of a site: the keys of its rule, checked, and what goes to the fetcher.

They are bound to one site, by its host and port, and go nowhere else. The rule holds references to secrets
(`levada.core.secrets`), which the fetcher resolves; so messages to workers on other machines hold no secret either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from levada.core.secrets import check_reference, is_reference, sounds_secret
from levada.core.site_rules.sessions import PLAIN

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings


class Credentials(msgspec.Struct, frozen=True, array_like=True):
    """What goes with each request to one site, and to no other. Values are references, or plain text."""

    site: str  # host, with its port if it is not the default one
    plain_http: bool = False  # also over http
    user: str = ""
    password: str = ""
    bearer: str = ""
    headers: tuple[tuple[str, str], ...] = ()  # those whose values are references


_OF_ONE_SITE = ("user", "password", "bearer", "client_certificate", "client_key", "client_key_password", "login")
_CLOSED = frozenset({*_OF_ONE_SITE, "plain_http", "proxy"})


def reads_machine(key: str, value: object) -> bool:
    """Whether this key of a rule reads or trusts something of the machine, so that only its owner may set it."""
    if key == "headers" and isinstance(value, dict):
        return any(isinstance(text, str) and is_reference(text) for text in value.values())
    return key in _CLOSED


def check_credentials(table: SiteSettings) -> None:
    """ValueError, without the value, if a key of this table is wrong."""
    for key in ("password", "bearer"):
        if (text := getattr(table, key)) is not None:
            check_reference(key, text)
    if table.user is not None:
        if is_reference(table.user):
            check_reference("user", table.user)
        elif ":" in table.user:
            raise ValueError("user: a user name has no colon")
    if table.bearer is not None and (table.user is not None or table.password is not None):
        raise ValueError("bearer: a site takes either a bearer token, or a user and a password")
    for name, text in (table.headers or {}).items():
        if is_reference(text) or (sounds_secret(name) and not text.startswith(PLAIN)):
            _check_header(name, text)
    if "*" in table.match:
        for key in _OF_ONE_SITE:
            if getattr(table, key) is not None:
                raise ValueError(_one_site(key))
        if any(is_reference(text) for text in (table.headers or {}).values()):
            raise ValueError(_one_site("a header with a secret"))


def _check_header(name: str, text: str) -> None:
    if not is_reference(text):
        raise ValueError(
            f'headers: {name} sounds like a secret: write where it lies, as in "env:NAME" or "file:/path", '
            f'or "{PLAIN}..." if it is none'
        )
    check_reference(f"headers: {name}", text)


def _one_site(what: str) -> str:
    return f'{what} goes to one site only: write its host, as in match = "example.org"'


def references_of(table: SiteSettings) -> tuple[str, ...]:
    """Where the secrets of this table lie; those of proxies are another matter."""
    named = [table.user, table.password, table.bearer, table.client_key_password, *(table.headers or {}).values()]
    named += table.login.fields.values() if table.login is not None else ()
    return tuple(dict.fromkeys(text for text in named if text and is_reference(text)))


def overridden_ways(tables: Sequence[SiteSettings]) -> tuple[str, ...]:
    """Of a bearer token and a password that stand in several tables, the keys that a more specific one overrides."""
    first = next((table for table in tables if table.bearer or table.user or table.password), None)
    if first is None:
        return ()
    return ("user", "password") if first.bearer else ("bearer",)


def plain_headers(table: SiteSettings) -> list[tuple[str, str]]:
    """The headers that hold no secret."""
    headers = (table.headers or {}).items()
    return [(name, text.removeprefix(PLAIN)) for name, text in headers if not is_reference(text)]


def credentials_of(table: SiteSettings, site: str) -> Credentials | None:
    """What goes with the requests to this site; None if there is nothing."""
    headers = tuple((name, text) for name, text in (table.headers or {}).items() if is_reference(text))
    if not (headers or table.user or table.password or table.bearer):
        return None
    return Credentials(
        site=site,
        plain_http=bool(table.plain_http),
        user=table.user or "",
        password=table.password or "",
        bearer=table.bearer or "",
        headers=headers,
    )
