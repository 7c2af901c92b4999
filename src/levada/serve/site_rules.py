"""Rules of sites over HTTP: shown, tried and changed; a running crawl takes them up."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import msgspec

from levada.collection.commands import change_settings
from levada.collection.site_rules.changes import keys_of, removal, rule_changes, tidied_match
from levada.collection.site_rules.reports import rule_reports, site_reports
from levada.collection.site_rules.scope import key_kinds, out_of_scope, try_scope
from levada.core.durations import iso
from levada.core.errors import NotFound, UsageError
from levada.core.site_rules.credentials import reads_machine
from levada.core.site_rules.section import WHOLE_SITE_KEYS
from levada.serve.facts import SiteAsk
from levada.serve.operations import Nothing, Operations, facts_of
from levada.serve.view import View

RULES = Operations()
_SHOWN = 20  # pages
_Match = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]


class RuleAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: _Match  # a host, and the beginning of a path
    keys: Annotated[dict[str, Any], msgspec.Meta(min_length=1, max_length=100)]  # null ends a key


class RuleOfAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: _Match


class RuleFacts(msgspec.Struct, frozen=True):
    """A `[[site]]` table; secrets are masked."""

    match: str
    keys: dict[str, Any]
    sites: int  # known ones that it matches
    note: str  # that it matches nothing


class RuleKeyFacts(msgspec.Struct, frozen=True):
    """A key that a rule may have."""

    key: str
    kind: str  # list, number, count, text, flag or table
    closed: bool  # it is set on the machine, not over the API
    whole_site: bool  # the match has no path


class RulesAnswer(msgspec.Struct, frozen=True):
    rules: list[RuleFacts]
    keys: list[RuleKeyFacts]


class PageFacts(msgspec.Struct, frozen=True):
    """A known page that a rule keeps out."""

    url: str
    key: str
    match: str
    stored: bool  # a version of it is stored


class SiteRulesAnswer(msgspec.Struct, frozen=True):
    """The rules that concern a site, and what they keep out of it."""

    site: str
    keys: dict[str, Any]  # of the whole site, from all of its rules
    rules: list[RuleFacts]  # the most specific first
    links_kept_out: int
    out_of_scope: int  # known pages: they are not visited any more
    pages: list[PageFacts]  # the first of them
    opens_at: str | None  # when its active hours begin; null: it may be asked now
    note: str


class TriedRuleAnswer(msgspec.Struct, frozen=True):
    """What a rule would keep out that is not kept out now."""

    match: str
    sites: int  # known ones that it matches
    pages: int  # known ones that it would keep out
    looked_at: int
    is_least: bool  # there may be more: not all pages were looked at
    examples: list[PageFacts]


class ChangedRuleAnswer(msgspec.Struct, frozen=True):
    rule: RuleFacts | None  # null: there is none any more
    changed: int  # keys
    crawling: bool  # a crawl runs now, and takes it up within a second


@RULES.add("GET", "/rules", "The rules of sites, and the keys that they may have", errors=(404,))
def _rules(view: View, _ask: Nothing) -> RulesAnswer:
    keys = [
        RuleKeyFacts(key, kind, closed=reads_machine(key, None), whole_site=key in WHOLE_SITE_KEYS)
        for key, kind in key_kinds()
    ]
    return RulesAnswer([facts_of(RuleFacts, each) for each in rule_reports(view.collection_now())], keys)


@RULES.add("GET", "/site/rules", "The rules of one site, and what they keep out", errors=(404,))
def _site_rules(view: View, ask: SiteAsk) -> SiteRulesAnswer:
    collection = view.collection_now()
    report = next(iter(site_reports(collection, [ask.site])), None)
    if report is None:
        raise NotFound(f"no site {ask.site[:200]} is known")
    rules = {each.match: facts_of(RuleFacts, each) for each in rule_reports(collection)}
    kept_out = islice(out_of_scope(collection, report.site), _SHOWN) if report.out_of_scope else ()
    return facts_of(
        SiteRulesAnswer,
        report,
        rules=[rules[match] for match in report.matches],
        pages=[facts_of(PageFacts, each) for each in kept_out],
        opens_at=iso(report.opens_at),
    )


@RULES.add("POST", "/rules/try", "What a rule would keep out; nothing changes", errors=(404,))
def _try(view: View, ask: RuleAsk) -> TriedRuleAnswer:
    _check_open(ask.keys)
    trial = try_scope(view.collection_now(), ask.match, ask.keys)
    return facts_of(TriedRuleAnswer, trial, examples=[facts_of(PageFacts, each) for each in trial.examples])


@RULES.add("PUT", "/rules", "Set keys of a rule; a running crawl takes them up", errors=(404,))
def _set(view: View, ask: RuleAsk) -> ChangedRuleAnswer:
    _check_open(ask.keys)
    return _changed(view, ask.match, rule_changes(ask.match, ask.keys))


@RULES.add("DELETE", "/rules", "End a rule", errors=(404,))
def _remove(view: View, ask: RuleOfAsk) -> ChangedRuleAnswer:
    settings = view.collection_now().settings
    match = tidied_match(ask.match)
    table = next((each for each in settings.site if each.match == match), None)
    if table is not None:
        _check_open({key: getattr(table, key) for key in keys_of(table)})
    return _changed(view, match, removal(settings, match))


def _check_open(keys: dict[str, Any]) -> None:
    for key, value in keys.items():
        if reads_machine(key, value):
            raise UsageError(f"{key} does not change over the API: use 'levada sites set' on the machine")


def _changed(view: View, match: str, values: dict[str, Any]) -> ChangedRuleAnswer:
    changes = change_settings(view.folder, values, "the API")
    match = tidied_match(match)
    rule = next((each for each in rule_reports(view.collection_now()) if each.match == match), None)
    shown = facts_of(RuleFacts, rule) if rule is not None else None
    return ChangedRuleAnswer(shown, len(changes), view.live() is not None)
