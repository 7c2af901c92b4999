"""Reports on the sites of a collection: their pages, their rules, and what these keep out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from levada.collection.site_rules.changes import keys_of
from levada.collection.site_rules.scope import MOST_LOOKED_AT, MOST_OF_A_SITE, kept_out_now, urls_of
from levada.core.reasons import Reason
from levada.core.records import PageKind, PlanSelection, SiteRecord
from levada.core.site_rules.pace import Pace, SitePaces
from levada.core.site_rules.rules import SiteRules, fits_site
from levada.core.site_rules.section import SiteSettings
from levada.pages.change import is_read_by
from levada.store.reading import OpenedCollection

_MOST_SELECTED = 10_000  # pages that are looked at for what `select` finds, in all
_MOST_SELECTED_OF_A_SITE = 2_000
_QUESTION = 20  # pages that could be looked at in place of asking for those of another site


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
    out_of_scope: int = 0  # known pages that the rules keep out now: they are not visited
    out_of_scope_is_least: bool = False  # there may be more: not all pages were looked at
    opens_at: float | None = None  # when its active hours begin; None: it may be asked now
    note: str = ""  # that it has more pages than its rule wants


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
    """By the match of each table with `select`: its pages, as far as they were visited since it was set.

    Where there are very many, the first pages of the first sites are looked at.
    """
    tables = [table for table in collection.settings.site if table.select]
    rules, counts = SiteRules(collection.settings.site), dict[str, SelectCounts]()
    left = _MOST_SELECTED
    for site in (site for site in sites if any(fits_site(table.match, site) for table in tables)):
        if left <= 0:
            break
        left -= _QUESTION
        for page in collection.store.planned(PlanSelection(site), 0, min(_MOST_SELECTED_OF_A_SITE, max(left, 1))):
            left -= 1
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


def site_reports(collection: OpenedCollection, names: Sequence[str] = ()) -> list[SiteReport]:
    """Every known site, or those named, by name. Without names not all pages are looked at, if there are many."""
    rules, store = SiteRules(collection.settings.site), collection.store
    if names:
        records = [record for name in names if (record := store.site(name.lower())) is not None]
    else:
        records = list(store.sites())
    paces, now = SitePaces.of(collection.settings), collection.clock.now()
    left = MOST_OF_A_SITE if names else MOST_LOOKED_AT
    reports = []
    for record in sorted(records, key=lambda record: record.site):
        report = _site_report(record, rules, paces(record.site), now)
        if rules.limits(record.site):
            urls = list(islice(urls_of(store, record.site, left), left))
            count = sum(kept_out_now(rules, store, url) is not None for url in urls)
            left -= len(urls)
            report = replace(report, out_of_scope=count, out_of_scope_is_least=len(urls) < record.pages)
        reports.append(report)
    return reports


def _site_report(record: SiteRecord, rules: SiteRules, pace: Pace, now: float) -> SiteReport:
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
        opens_at=opens_at if (opens_at := pace.opens_at(now)) > now else None,
        note=f"more than its max_pages, {pace.most_pages:,}: no page is added" if _is_over(record, rules, pace) else "",
    )


def _is_over(record: SiteRecord, rules: SiteRules, pace: Pace) -> bool:
    keys = rules.rule_of_site(record.site).keys
    return keys is not None and keys.max_pages is not None and record.pages > pace.most_pages
