"""Changes to the rules of sites, as commands and programs ask for them: as changes of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from levada.core.configuration.values import masked
from levada.core.errors import UsageError
from levada.core.records import FoundUrl
from levada.core.settings import Settings
from levada.core.site_rules.extent import folder_of
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import RULE_TYPES, SiteSettings, tidy_match
from levada.core.suggestions import near_names

_ADDED_TO = ("include", "exclude", "folders")
"""Keys whose values are added to those that a rule has, where an address is added with them."""

THIS_FOLDER, WHOLE_SITE = "folder", "site"
"""The scopes that are no path."""


def rule_changes(match: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that make this rule; `UsageError` for a key that there is not."""
    for key in keys:
        if key not in RULE_TYPES:
            raise UsageError(f"a rule has no key {key[:100]!r}: {near_names(key, RULE_TYPES)}")
    return {f"site.{tidied_match(match)}.{key}": _listed(value) for key, value in keys.items()}


def removal(settings: Settings, match: str, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The settings that end a rule, or these keys of it."""
    named, tidy = list(keys), tidied_match(match)
    table = next((table for table in settings.site if table.match == tidy), None)
    if table is None:
        matches = [table.match for table in settings.site]
        raise UsageError(f"no rule has match = {tidy!r}: {near_names(tidy, matches) if matches else 'there is none'}")
    return rule_changes(match, dict.fromkeys(named or keys_of(table)))


def rules_for_starts(settings: Settings, start: Sequence[FoundUrl], keys: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that give these keys to the sites of start URLs; patterns are added to those that a site has.

    A scope "folder" in `folders` stands for the folder of each start URL, "site" for no folders at all.
    """
    changes: dict[str, Any] = {}
    held = {table.match: table for table in settings.site}
    for each in start:
        own = {key: _listed(value) for key, value in keys.items()}
        if (folders := own.get("folders")) is not None:
            if WHOLE_SITE in folders:
                own["folders"] = None
            else:
                own["folders"] = [folder_of(each.url) if name == THIS_FOLDER else name for name in folders]
        for key, value in rule_changes(each.site, own).items():
            name = key.rpartition(".")[2]
            before = changes.get(key, getattr(held.get(each.site), name, None))
            if name in _ADDED_TO and value is not None and before:
                value = list(dict.fromkeys([*before, *value]))
            changes[key] = value
    return changes


def by_match(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The keys of each rule that these settings change.

    >>> by_match({"site.example.org.depth": 2, "site.example.org/a.b/.select": ["h1"]})
    {'example.org': {'depth': 2}, 'example.org/a.b/': {'select': ['h1']}}
    """
    found: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        match, _, key = name.removeprefix("site.").rpartition(".")
        found.setdefault(match, {})[key] = value
    return found


def notes_on_starts(settings: Settings, start: Sequence[FoundUrl]) -> list[str]:
    """Sentences about start URLs outside their own rules; `UsageError` for one that they exclude."""
    rules, notes = SiteRules(settings.site), []
    for each in start:
        if key := rules.kept_out(each.url, 0, named=True):
            match = rules.rule_for(each.url).sources[key]
            raise UsageError(f"the rule of {match} excludes {each.url} itself: change its {key}, or leave this one out")
        if key := rules.kept_out(each.url, 0):
            told = f"{key} of the rule of {rules.rule_for(each.url).sources[key]}"
            notes.append(f"{each.url} is outside {told}: it is visited because you named it, for its links")
    return notes


def keys_of(rule: SiteSettings | None) -> dict[str, Any]:
    """The keys that a rule has, as plain data."""
    if rule is None:
        return {}
    plain = msgspec.to_builtins(rule)
    del plain["match"]
    return {key: masked(f"site.{rule.match}.{key}", value) for key, value in plain.items()}


def tidied_match(match: str) -> str:
    """A match as it is kept; `UsageError` if it is none."""
    try:
        return tidy_match(match)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
