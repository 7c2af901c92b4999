"""Reports on the sites of a collection: their pages, their rules, and what these keep out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from levada.core.configuration.values import masked
from levada.core.reasons import Reason
from levada.core.records import SiteRecord
from levada.core.site_rules.rules import SiteRules, fits_site
from levada.core.site_rules.section import SiteSettings
from levada.store.reading import OpenedCollection


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
    return [_rule_report(table, sites) for table in sorted(tables, key=lambda table: table.match)]


def _rule_report(table: SiteSettings, sites: Sequence[str]) -> RuleReport:
    known = sum(fits_site(table.match, site) for site in sites)
    return RuleReport(table.match, keys_of(table), known, "" if known else "matches no site that is known")


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
