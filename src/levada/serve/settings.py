"""Settings over HTTP: every value with its source, and changes that a running crawl takes up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any

import msgspec

from levada.collection.commands import change_settings, commanded_budget
from levada.core.configuration.following import takes_effect_at_once
from levada.core.configuration.kept import SettingChange
from levada.core.configuration.layers import SettingValue
from levada.core.errors import UsageError
from levada.core.site_rules.credentials import reads_machine
from levada.serve.operations import Nothing, Operations, facts_of
from levada.serve.view import View

SETTINGS = Operations()
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
    return ChangedSettingsAnswer(changed_facts(changes), view.live() is not None)


def changed_facts(changes: Sequence[SettingChange]) -> list[SettingChangeFacts]:
    """Changes of settings as the API shows them."""
    return [facts_of(SettingChangeFacts, each, at_once=takes_effect_at_once(each.key)) for each in changes]
