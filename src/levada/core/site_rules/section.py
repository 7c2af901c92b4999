"""`[[site]]`: one table of rules for the sites and paths that it matches.

A key that a table does not have is left to less specific tables, and to the sections of the settings after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from levada.core.site_rules.credentials import check_credentials
from levada.core.site_rules.hours import active_hours
from levada.core.site_rules.paths import check_patterns
from levada.core.site_rules.queries import check_parameters
from levada.core.site_rules.reading import check_ignored, check_selectors
from levada.core.site_rules.rendering import check_rendering
from levada.core.site_rules.routes import check_certificate, check_proxies
from levada.core.site_rules.sessions import LoginSettings, check_login
from levada.core.site_rules.triggers import check_triggers

_Seconds = Annotated[float, Meta(gt=0, le=1e10)]
_SecondsOrNone = Annotated[float, Meta(ge=0, le=1e10)]
_Count = Annotated[int, Meta(ge=1)]
_CountOrNone = Annotated[int, Meta(ge=0)]
_Reference = Annotated[str, Meta(min_length=1, max_length=1_000)]
_Texts = tuple[Annotated[str, Meta(min_length=1, max_length=2_000)], ...]
_Patterns = Annotated[_Texts, Meta(max_length=200)]
_HOST = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?(?::[0-9]{1,5})?|\[[0-9a-f:.]+\](?::[0-9]{1,5})?|\*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = {  # what else sets them
    "accept-language": "accept_language",
    "user-agent": "agent",
}
_NEVER = frozenset({"connection", "content-length", "host", "transfer-encoding", "upgrade"})


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rules of the sites and paths that `match` names; None leaves a key to others."""

    match: Annotated[str, Meta(min_length=1, max_length=2_000)]  # a host, and the beginning of a path

    # Which of its pages are crawled.
    include: _Patterns | None = None
    exclude: _Patterns | None = None
    folders: _Texts | None = None
    depth: _CountOrNone | None = None
    keep_query: _Patterns | None = None
    drop_query: _Patterns | None = None
    max_pages: _Count | None = None

    # How fast and when they are asked for.
    delay: _SecondsOrNone | None = None
    per_hour: _CountOrNone | None = None
    hours: _Texts | str | None = None
    floor: _SecondsOrNone | None = None
    ceiling: _Seconds | None = None

    # How its pages are asked for.
    agent: Annotated[str, Meta(min_length=1, max_length=300)] | None = None
    accept_language: Annotated[str, Meta(min_length=1, max_length=300)] | None = None
    headers: dict[str, str] | None = None

    # What it asks for at the door.
    user: Annotated[str, Meta(min_length=1, max_length=300)] | None = None
    password: _Reference | None = None
    bearer: _Reference | None = None
    client_certificate: _Reference | None = None
    client_key: _Reference | None = None
    client_key_password: _Reference | None = None
    cookies: bool | None = None
    login: LoginSettings | None = None
    plain_http: bool | None = None

    # Through whom they are asked for.
    proxy: Annotated[tuple[_Reference, ...], Meta(max_length=1_000)] | None = None

    # Whether a browser renders its pages.
    render: Literal["never", "auto", "always"] | None = None
    wait_for: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    screenshot: bool | None = None
    render_media: bool | None = None

    # What counts on its pages.
    select: _Patterns | None = None
    remove: _Patterns | None = None
    ignore: _Patterns | None = None
    trigger: Annotated[_Texts, Meta(max_length=50)] | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "match", tidy_match(self.match))
        self._check_extent()
        self._check_pace()
        for name, text in (("agent", self.agent), ("accept_language", self.accept_language)):
            if text is not None:
                _check_line(name, text)
        for name, text in (self.headers or {}).items():
            if not _HEADER.fullmatch(name):
                raise ValueError(f"headers: {name[:100]!r} is no name of a header")
            if name.lower() in _OWN_HEADERS:
                raise ValueError(f"headers: write {_OWN_HEADERS[name.lower()]} = ... instead of {name}")
            if name.lower() in _NEVER:
                raise ValueError(f"headers: {name} is set by the fetcher: leave it out")
            _check_line(f"headers: {name}", text)
        check_credentials(self)
        check_login(self)
        check_certificate(self)
        check_proxies(self.proxy or ())
        check_rendering(self)
        check_selectors("select", self.select or ())
        check_selectors("remove", self.remove or ())
        check_ignored(self.ignore or ())
        check_triggers(self.trigger or ())

    def _check_extent(self) -> None:
        check_patterns("include", self.include)
        check_patterns("exclude", self.exclude)
        for folder in self.folders or ():
            if not (folder.startswith("/") and folder.endswith("/")) or any(mark in folder for mark in "*?#"):
                raise ValueError(f'folders takes paths such as "/docs/", not {folder[:100]!r}')
        check_parameters("keep_query", self.keep_query)
        check_parameters("drop_query", self.drop_query)

    def _check_pace(self) -> None:
        if self.hours is not None:
            texts = (self.hours,) if isinstance(self.hours, str) else self.hours
            msgspec.structs.force_setattr(self, "hours", texts)
            active_hours(texts)
        host, slash, _ = self.match.partition("/")
        for key in WHOLE_SITE_KEYS:
            if slash and getattr(self, key) is not None:
                raise ValueError(f'{key} holds for a whole site: write it in a table with match = "{host}"')
        if self.floor is not None and self.ceiling is not None and self.floor > self.ceiling:
            raise ValueError(f"floor must not be more than ceiling, {self.ceiling:g} seconds")


WHOLE_SITE_KEYS = ("max_pages", "delay", "per_hour", "hours")
"""Keys that hold for a whole site, and not for a part of it."""


def _check_line(name: str, text: str) -> None:
    if not text.isascii() or not text.isprintable():
        raise ValueError(f"{name} must be one line of ASCII")


_OF_PLANS = (
    *("include", "exclude", "folders", "depth", "keep_query", "drop_query"),
    *WHOLE_SITE_KEYS,
    *("floor", "ceiling"),
)


def planning_tables(tables: Iterable[SiteSettings]) -> tuple[SiteSettings, ...]:
    """What these tables say about which pages are visited, and when."""
    plans = [SiteSettings(match=table.match, **{key: getattr(table, key) for key in _OF_PLANS}) for table in tables]
    return tuple(table for table in plans if any(getattr(table, key) is not None for key in _OF_PLANS))


RULE_TYPES: dict[str, Any] = {
    field.name: field.type for field in msgspec.structs.fields(SiteSettings) if field.name != "match"
}
"""The type of every key of a rule, in the order of the documentation."""


def choices_of(kind: Any) -> tuple[str, ...]:
    """The words that fit this type; none, if it is not one of a few words.

    >>> choices_of(RULE_TYPES["render"]), choices_of(RULE_TYPES["agent"])
    (('never', 'auto', 'always'), ())
    """
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for each in get_args(kind) if (found := choices_of(each))), ())


def tidy_match(typed: str) -> str:
    """A match as it is kept: a host in lower case, and a path; ValueError if it is none."""
    text = typed.strip()
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        text = rest
    host, slash, path = text.partition("/")
    host = _ascii(host.lower())
    if not _HOST.fullmatch(host) or any(mark in path for mark in "*?#") or not path.isprintable():
        raise ValueError(
            f'match takes a host and the beginning of a path, such as "example.org/docs/" or "*.example.org", '
            f"not {typed[:100]!r}"
        )
    return host + slash + path if path else host


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def doubled(matches: Iterable[str]) -> str:
    """A match that stands twice; "" if none does."""
    seen: set[str] = set()
    return next((match for match in matches if match in seen or seen.add(match)), "")  # type: ignore[func-returns-value]
