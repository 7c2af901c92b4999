"""Reports on the sites of a collection: their pages, their rules, and what these keep out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from levada.core.configuration.values import masked
from levada.core.reasons import Reason
from levada.core.records import PageKind, PageRecord, PlanSelection, SiteRecord
from levada.core.site_rules.rules import SiteRules, fits_site
from levada.core.site_rules.section import SiteSettings
from levada.pages.change import is_read_by
from levada.store.reading import OpenedCollection

_MOST_COUNTED = 20_000  # pages of a site
_AT_ONCE = 1_000


class RuleReport(msgspec.Struct, frozen=True):
    """A rule of the collection: a `[[site]]` table. Secrets are masked.

    >>> changes = news.set_rule(start, exclude=["*.pdf"])
    >>> [rule.keys for rule in news.rules()]
    [{'exclude': ['*.pdf']}]
    """

    match: str
    keys: dict[str, Any]
    sites: int  # known ones that it matches
    note: str = ""  # that it matches nothing
    selected_on: int = 0  # pages whose last visit read them by its `select`
    no_match: int = 0  # pages among these on which that finds nothing
    no_match_example: str = ""  # one of them


class SiteReport(msgspec.Struct, frozen=True):
    """A site with its pages, the rules that hold for it, and what they keep out. Secrets are masked.

    >>> [report.pages > 0 for report in news.site_reports()][:1]
    [True]
    """

    site: str
    pages: int  # known ones
    admitted: bool  # a user asked for it
    dropped: bool  # it is visited no more
    matches: tuple[str, ...]  # of the rules, the most specific first
    keys: dict[str, Any]  # of the whole site, from all of these
    links_kept_out: int  # by these rules and earlier ones
    example: str  # one of these links


def rule_reports(collection: OpenedCollection) -> list[RuleReport]:
    """The rules of the collection, by what they match."""
    tables = collection.settings.site
    sites = [record.site for record in collection.store.sites()] if tables else []
    found = _selected(collection, sites)
    none = SelectCounts()
    return [_rule_report(table, sites, found.get(table.match, none)) for table in sorted(tables, key=_match)]


def _match(table: SiteSettings) -> str:
    return table.match


def _rule_report(table: SiteSettings, sites: Sequence[str], selected: SelectCounts) -> RuleReport:
    known = sum(fits_site(table.match, site) for site in sites)
    return RuleReport(
        match=table.match,
        keys=keys_of(table),
        sites=known,
        note="" if known else "matches no site that is known",
        selected_on=selected.read,
        no_match=selected.no_match,
        no_match_example=selected.example,
    )


class SelectCounts(msgspec.Struct):
    """What the visits say of one table's `select`."""

    read: int = 0
    no_match: int = 0
    example: str = ""


def _selected(collection: OpenedCollection, sites: Sequence[str]) -> dict[str, SelectCounts]:
    """By the match of each table with `select`: its pages, as far as they were visited since it was set."""
    tables = [table for table in collection.settings.site if table.select]
    rules, counts = SiteRules(collection.settings.site), dict[str, SelectCounts]()
    for site in (site for site in sites if any(fits_site(table.match, site) for table in tables)):
        for page in _visited(collection, site):
            rule = rules.rule_for(page.url)
            match = rule.sources.get("select")
            if match is None or page.kind is not PageKind.PAGE or not is_read_by(page.text_digest, rule.visit.reading):
                continue
            found = counts.setdefault(match, SelectCounts())
            found.read += 1
            if page.reason is Reason.NO_MATCH:
                found.no_match += 1
                found.example = found.example or page.url
    return counts


def _visited(collection: OpenedCollection, site: str) -> Iterator[PageRecord]:
    """The visited pages of a site, or the first of very many."""
    selection, after, count = PlanSelection(site), 0, 0
    while count < _MOST_COUNTED and (pages := collection.store.planned(selection, after, _AT_ONCE)):
        after, count = pages[-1].id, count + len(pages)
        yield from pages


def keys_of(rule: SiteSettings | None) -> dict[str, Any]:
    """The keys that a rule has, as plain data."""
    if rule is None:
        return {}
    plain = msgspec.to_builtins(rule)
    del plain["match"]
    return {key: masked(f"site.{rule.match}.{key}", value) for key, value in plain.items()}


def site_reports(collection: OpenedCollection, names: Sequence[str] = ()) -> list[SiteReport]:
    """Every known site, or those named, by name."""
    rules, store = SiteRules(collection.settings.site), collection.store
    if names:
        records = [record for name in names if (record := store.site(name.lower())) is not None]
    else:
        records = list(store.sites())
    return [_site_report(record, rules) for record in sorted(records, key=lambda record: record.site)]


def _site_report(record: SiteRecord, rules: SiteRules) -> SiteReport:
    counts = {reason: (n, example) for reason, n, example in record.refused}
    links, example = counts.get(Reason.RULE, (0, ""))
    return SiteReport(
        site=record.site,
        pages=record.pages,
        admitted=record.admitted,
        dropped=record.dropped,
        matches=rules.matches_of_site(record.site),
        keys=keys_of(rules.rule_of_site(record.site).keys),
        links_kept_out=links,
        example=example,
    )
