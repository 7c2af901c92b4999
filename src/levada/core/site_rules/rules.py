"""Compiled rules: which rule holds for an address.

The most specific table wins, key by key: an exact host before `*.example.org` before `*`, and of the same host the
longest path. Without rules, `rule_for` costs one look at an empty dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from levada.core.site_rules.credentials import credentials_of, overridden_ways, plain_headers
from levada.core.site_rules.extent import Extent, extent_of, path_of
from levada.core.site_rules.queries import QueryRule, query_rule
from levada.core.site_rules.reading import reading_rule
from levada.core.site_rules.rendering import render_rule
from levada.core.site_rules.routes import route_of
from levada.core.site_rules.section import RULE_TYPES, SiteSettings
from levada.core.site_rules.sessions import session_of
from levada.core.site_rules.visit import NO_RULE, RequestRule, VisitRule


class SiteRule(msgspec.Struct, frozen=True):
    """The rule of an address: every key of the most specific table that has it."""

    keys: SiteSettings | None = None  # None: no table matches
    matches: tuple[str, ...] = ()  # of the tables, the most specific first
    visit: VisitRule = NO_RULE
    sources: dict[str, str] = {}  # of each key: the match of its table
    extent: Extent | None = None  # None: every address
    queries: QueryRule | None = None  # None: every parameter counts


_NO_RULE = SiteRule()


class SiteRules:
    """The rules of all sites; replaced as a whole when one changes.

    >>> docs = SiteSettings(match="example.org/docs/", agent="b")
    >>> rules = SiteRules([SiteSettings(match="example.org", agent="a"), docs])
    >>> rules.rule_for("https://example.org/docs/intro").keys.agent
    'b'
    """

    def __init__(self, tables: Iterable[SiteSettings] = ()) -> None:
        self._by_site: dict[str, _Tree] = {}
        self._tables = tuple(tables)
        self._by_host: dict[str, list[SiteSettings]] = {}  # a crawl may have rules for thousands of sites
        self._wild: list[SiteSettings] = []
        for table in self._tables:
            host = _split(table.match)[0]
            (self._wild if host.startswith("*") else self._by_host.setdefault(host, [])).append(table)

    @property
    def tables(self) -> tuple[SiteSettings, ...]:
        return self._tables

    def __bool__(self) -> bool:
        return bool(self._tables)

    def rule_for(self, url: str) -> SiteRule:
        """The rule of a canonical URL."""
        if not self._tables:
            return _NO_RULE
        parts = url.split("/", 3)
        if len(parts) < 3:
            return _NO_RULE
        return self._tree(parts[2]).rule_for(parts[3] if len(parts) > 3 else "")

    def rule_of_site(self, site: str) -> SiteRule:
        """The rule of a whole site, without those of single paths."""
        return self._tree(site).whole if self._tables else _NO_RULE

    def matches_of_site(self, site: str) -> tuple[str, ...]:
        """The matches of all tables that concern this site or a path of it, the most specific first."""
        fitting = [table.match for table in self._fitting(site)]
        return tuple(sorted(fitting, key=lambda match: (_rank(_split(match)[0]), -len(match))))

    def limits(self, site: str) -> bool:
        """Whether some rule may keep a page of this site out."""
        if not self._tables:
            return False
        tree = self._tree(site)
        return any(rule.extent is not None or rule.queries is not None for rule in tree.rules())

    def whole_site_tables(self, site: str) -> list[SiteSettings]:
        """The tables for a whole site, the most specific first."""
        fitting = [table for table in self._fitting(site) if "/" not in table.match]
        return sorted(fitting, key=lambda table: _rank(table.match))

    def visit_rule(self, url: str) -> VisitRule:
        """What goes with a visit of this URL."""
        return self.rule_for(url).visit if self._tables else NO_RULE

    def kept_out(self, url: str, depth: int, *, named: bool = False, sitemap: bool = False) -> str:
        """The key of the rules that keeps a canonical URL out, at so many links from a start; "" if none does.

        `named`: a user named it as a start. A sitemap is no page: only `exclude` and `depth` concern it.
        """
        rule = self.rule_for(url)
        if rule.queries is not None and (key := rule.queries.key(url)):
            return key
        extent = rule.extent
        if extent is None:
            return ""
        if extent.depth is not None and depth > extent.depth and not named:
            return "depth"
        return extent.keeps_out(path_of(url), named=named or sitemap)

    def tidied(self, url: str) -> str:
        """A canonical URL without the parameters that do not count by its rule."""
        if not self._tables or "?" not in url:
            return url
        queries = self.rule_for(url).queries
        return url if queries is None else queries.tidied(url)

    def _fitting(self, site: str) -> list[SiteSettings]:
        """The tables for a site, or for paths of it."""
        return [*self._by_host.get(site, ()), *(table for table in self._wild if fits_site(table.match, site))]

    def _tree(self, site: str) -> _Tree:
        tree = self._by_site.get(site)
        if tree is None:
            if len(self._by_site) > _MOST_SITES:
                self._by_site.clear()
            tree = self._by_site[site] = _Tree(self._fitting(site), site)
        return tree


_MOST_SITES = 10_000  # with a rule at hand; a crawl of any site meets many


class _Tree:
    """The rules of one site, by path."""

    def __init__(self, tables: Sequence[SiteSettings], site: str) -> None:
        own = [(_split(table.match), table) for table in tables]
        fitting = [(_rank(host), path, table) for (host, path), table in own]
        paths = sorted({path for _, path, _ in fitting if path}, key=len, reverse=True)
        fitting.sort(key=_order)
        self.whole = _combined([table for _, path, table in fitting if not path], site)
        self._by_path = [
            (path, _combined([table for _, start, table in fitting if path.startswith(start)], site)) for path in paths
        ]

    def rules(self) -> list[SiteRule]:
        """Of the whole site, and of its paths."""
        return [self.whole, *(rule for _, rule in self._by_path)]

    def rule_for(self, path: str) -> SiteRule:
        for start, rule in self._by_path:
            if path.startswith(start):
                return rule
        return self.whole


def _split(match: str) -> tuple[str, str]:
    host, _, path = match.partition("/")
    return host, path


def fits_site(match: str, site: str) -> bool:
    """Whether this match is for a site, or for a path of it."""
    return _fits(_split(match)[0], site)


def _fits(host: str, site: str) -> bool:
    return host in ("*", site) or (host.startswith("*.") and site.endswith(host[1:]) and len(site) >= len(host))


def _rank(host: str) -> int:
    """The smallest is the most specific."""
    return 0 if not host.startswith("*") else 2_000 - len(host)


def _order(fitting: tuple[int, str, SiteSettings]) -> tuple[int, int]:
    rank, path, _ = fitting
    return rank, -len(path)


def _combined(tables: Sequence[SiteSettings], site: str) -> SiteRule:
    if not tables:
        return _NO_RULE
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for table in tables:
        for key in RULE_TYPES:
            if key not in values and (value := getattr(table, key)) is not None:
                values[key], sources[key] = value, table.match
    for key in overridden_ways(tables):
        values.pop(key, None)
        sources.pop(key, None)
    keys = SiteSettings(match=tables[0].match, **values)
    request, reading, render = _request_rule(keys, site), reading_rule(keys), render_rule(keys)
    matches = tuple(table.match for table in tables)
    visit = VisitRule(request, reading, render) if request or reading or render else NO_RULE
    return SiteRule(keys, matches, visit, sources, extent_of(keys), query_rule(keys))


def _request_rule(keys: SiteSettings, site: str) -> RequestRule | None:
    headers = plain_headers(keys)
    if keys.agent is not None:
        headers.append(("User-Agent", keys.agent))
    if keys.accept_language is not None:
        headers.append(("Accept-Language", keys.accept_language))
    rule = RequestRule(tuple(headers), credentials_of(keys, site), session_of(keys, site), route_of(keys, site))
    return rule if rule != _NOTHING else None


_NOTHING = RequestRule()


NO_RULES = SiteRules()
