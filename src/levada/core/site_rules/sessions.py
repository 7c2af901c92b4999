"""Sessions of a site: the cookies that it sets, and the form that one logs in with.

The rule holds the recipe of the login, with references in place of secrets; the fetcher fills in the form
(`levada.fetch.login`) and keeps the cookies (`levada.fetch.cookies`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from levada.core.patterns import check_pattern, glob_pattern
from levada.core.secrets import check_reference, is_reference, sounds_secret
from levada.core.selectors import Language, check_selector, language_of

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings

PLAIN = "text:"
"""Before a value with the name of a secret that is none; and before a text that `check` looks for."""

ADDRESS = "url:"
"""Before the glob of an address in `check`."""

_MOST_FIELDS = 50


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The form that one logs in with, what is written into it, and how to tell that one is logged in."""

    url: Annotated[str, Meta(min_length=1, max_length=2_000)]  # of the form, on the same host
    fields: dict[str, str]  # by the name of the field
    check: Annotated[str, Meta(max_length=1_000)] = ""  # what a page shows to whoever is logged in


class SessionRule(msgspec.Struct, frozen=True, array_like=True):
    """Whose cookies are kept, and how one logs in there."""

    site: str  # host, with its port if it is not the default one
    plain_http: bool = False
    url: str = ""  # of the form; "": there is no login
    fields: tuple[tuple[str, str], ...] = ()
    check: str = ""


def check_login(table: SiteSettings) -> None:
    """ValueError, without any value of a field, if the recipe is wrong."""
    login = table.login
    if login is None:
        return
    parts, host = urlsplit(login.url), table.match.partition("/")[0]
    is_path = login.url.startswith("/") and not parts.netloc
    if not is_path and (parts.scheme not in ("http", "https") or parts.netloc.lower() != host):
        raise ValueError(f'login.url takes the path of the form, as in "/login", or its address on {host}')
    if not login.fields or len(login.fields) > _MOST_FIELDS:
        raise ValueError('login.fields names the fields of the form, as in { user = "me", password = "env:PASSWORD" }')
    for name, text in login.fields.items():
        if is_reference(text):
            check_reference(f"login.fields: {name[:100]}", text)
        elif sounds_secret(name) and not text.startswith(PLAIN):
            raise ValueError(
                f'login.fields: {name[:100]} sounds like a secret: write where it lies, as in "env:NAME" or '
                f'"file:/path", or "{PLAIN}..." if it is none'
            )
    if not any(map(is_reference, login.fields.values())):
        raise ValueError('login.fields: no field is a secret: write where the password lies, as in "env:NAME"')
    _check_check(login.check)


def _check_check(check: str) -> None:
    kind, separator, text = check.partition(":")
    if separator and kind in ("text", "url"):
        if not text.strip():
            raise ValueError(f"login.check: nothing stands after {kind}:")
        if kind == "url":
            check_pattern(glob_pattern(text))
        return
    if check:
        if language_of(check)[0] is Language.JSONPATH:
            raise ValueError('login.check takes a CSS selector, an XPath, "text:..." or "url:..."')
        try:
            check_selector(check)
        except ValueError as error:
            raise ValueError(f"login.check: {error}") from None


def session_of(table: SiteSettings, site: str) -> SessionRule | None:
    """The session with this site; None if no cookies are kept."""
    login, plain_http = table.login, bool(table.plain_http)
    if login is None:
        return SessionRule(site, plain_http) if table.cookies else None
    return SessionRule(site, plain_http, login.url, tuple(login.fields.items()), login.check)
