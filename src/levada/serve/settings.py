"""Settings and rules of sites over HTTP: every value with its source, and changes that a running crawl takes up."""

from __future__ import annotations

from itertools import islice
from pathlib import PurePath
from typing import Annotated, Any

import msgspec

from levada.collection.commands import change_settings, commanded_budget
from levada.collection.site_rules.changes import keys_of, removal, rule_changes, tidied_match
from levada.collection.site_rules.reports import rule_reports, site_reports
from levada.collection.site_rules.scope import key_kinds, out_of_scope, try_scope
from levada.core.configuration.following import takes_effect_at_once
from levada.core.configuration.layers import SettingValue
from levada.core.durations import iso
from levada.core.errors import NotFound, UsageError
from levada.core.site_rules.credentials import reads_machine
from levada.core.site_rules.section import RULE_TYPES, WHOLE_SITE_KEYS, choices_of
from levada.serve.facts import SiteAsk
from levada.serve.operations import Nothing, Operations, facts_of
from levada.serve.view import View

SETTINGS, RULES = Operations(), Operations()
# What these say concerns the machine and its network, which an admin of the collection has no say in.
_CLOSED = frozenset({"browser", "fetch.ca_file", "fetch.proxy", "guard", "plugins", "store.engine", "store.servers"})


class SettingFacts(msgspec.Struct, frozen=True):
    """A setting; secrets are masked."""

    key: str
    value: Any
    default: Any
    source: str  # default, user file, collection, file, environment or flag
    where: str  # the name of the file or variable; of a kept value, who set it
    at: float | None  # of a kept value: when it was set
    at_once: bool  # a running crawl takes up a change within a second; else when it is started again


class SettingsAnswer(msgspec.Struct, frozen=True):
    settings: list[SettingFacts]
    commanded_per_hour: int | None  # the budget that a command set; null: that of the settings holds


class SettingsAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    values: Annotated[dict[str, Any], msgspec.Meta(min_length=1, max_length=200)]  # by section.key; null: no own value


class SettingChangeFacts(msgspec.Struct, frozen=True):
    key: str
    before: Any
    value: Any
    kept: bool
    at_once: bool


class ChangedSettingsAnswer(msgspec.Struct, frozen=True):
    changes: list[SettingChangeFacts]
    crawling: bool  # a crawl runs now


@SETTINGS.add("GET", "/settings", "Every setting, and where its value comes from", errors=(404,))
def _settings(view: View, _ask: Nothing) -> SettingsAnswer:
    view.folder.must_exist()
    report = view.folder.configuration().report()
    return SettingsAnswer([_facts(each) for each in report.values()], commanded_budget(view.folder))


def _is_closed(key: str, value: Any) -> bool:
    section, _, rest = key.partition(".")
    if section == "site":
        return reads_machine(rest.rpartition(".")[2], value)
    return key in _CLOSED or section in _CLOSED


def _facts(value: SettingValue) -> SettingFacts:
    given = {"source": value.source.value, "where": PurePath(value.where).name if value.where else ""}
    return facts_of(SettingFacts, value, **given, at_once=takes_effect_at_once(value.key))


@SETTINGS.add(
    "PUT", "/settings", "Change settings: the collection keeps them, a running crawl takes them up", errors=(404,)
)
def _change(view: View, ask: SettingsAsk) -> ChangedSettingsAnswer:
    if closed := [key for key, value in ask.values.items() if _is_closed(key, value)]:
        raise UsageError(f"{closed[0]} does not change over the API: use 'levada settings set' on the machine")
    changes = change_settings(view.folder, ask.values, "the API")
    facts = [facts_of(SettingChangeFacts, each, at_once=takes_effect_at_once(each.key)) for each in changes]
    return ChangedSettingsAnswer(facts, view.live() is not None)


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
    selected_on: int  # pages whose last visit read them by its `select`
    no_match: int  # pages among these on which that finds nothing
    no_match_example: str  # one of them


class RuleKeyFacts(msgspec.Struct, frozen=True):
    """A key that a rule may have."""

    key: str
    kind: str  # list, number, count, text, flag, choice or table
    choices: tuple[str, ...]  # the words that fit a choice
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
        RuleKeyFacts(
            key,
            kind,
            choices=choices_of(RULE_TYPES[key]),
            closed=reads_machine(key, None),
            whole_site=key in WHOLE_SITE_KEYS,
        )
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
    check_open(ask.keys)
    trial = try_scope(view.collection_now(), ask.match, ask.keys)
    return facts_of(TriedRuleAnswer, trial, examples=[facts_of(PageFacts, each) for each in trial.examples])


@RULES.add("PUT", "/rules", "Set keys of a rule; a running crawl takes them up", errors=(404,))
def _set(view: View, ask: RuleAsk) -> ChangedRuleAnswer:
    check_open(ask.keys)
    return _changed_rule(view, ask.match, rule_changes(ask.match, ask.keys))


@RULES.add("DELETE", "/rules", "End a rule", errors=(404,))
def _remove(view: View, ask: RuleOfAsk) -> ChangedRuleAnswer:
    settings = view.collection_now().settings
    match = tidied_match(ask.match)
    table = next((each for each in settings.site if each.match == match), None)
    if table is not None:
        check_open({key: getattr(table, key) for key in keys_of(table)})
    return _changed_rule(view, match, removal(settings, match))


def check_open(keys: dict[str, Any]) -> None:
    """`UsageError` for a key of a rule that does not change over the API."""
    for key, value in keys.items():
        if reads_machine(key, value):
            raise UsageError(f"{key} does not change over the API: use 'levada sites set' on the machine")


def _changed_rule(view: View, match: str, values: dict[str, Any]) -> ChangedRuleAnswer:
    changes = change_settings(view.folder, values, "the API")
    match = tidied_match(match)
    rule = next((each for each in rule_reports(view.collection_now()) if each.match == match), None)
    shown = facts_of(RuleFacts, rule) if rule is not None else None
    return ChangedRuleAnswer(shown, len(changes), view.live() is not None)
