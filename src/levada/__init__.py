"""Levada keeps a large collection of web pages fresh and searchable within a fetch budget.

    import levada

    with levada.open("news") as news:
        news.add("https://example.org", max_depth=5)
        news.crawl(once=True)
        for hit in news.search("ferry timetable"):
            print(hit.url, hit.title)

Every name here is documented in docs/api.md. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from levada import bulk, freshness, grouping, sharding, stages
    from levada.collection.collection import Collection
    from levada.collection.commands import Receipt
    from levada.collection.diff import Diff
    from levada.collection.events import CheckResult, PageEvent, PageOutcome
    from levada.collection.explain import Forecast, Why
    from levada.collection.exports import ExportReport
    from levada.collection.forgetting.run import ForgetReport
    from levada.collection.notifications import NotificationInfo, Notifications
    from levada.collection.site_rules.reports import RuleReport, SiteReport
    from levada.collection.site_rules.scope import PageOutOfScope, ScopeTrial
    from levada.collection.site_rules.trials import EntryTrial, ReadingTrial, RuleTrial
    from levada.collection.storage.backup import BackupReport
    from levada.collection.storage.named import NamedCollection
    from levada.collection.storage.restore import RestoreReport
    from levada.core import errors
    from levada.core.configuration.kept import SettingChange
    from levada.core.configuration.layers import SettingValue, Source
    from levada.core.errors import (
        BadQuery,
        BadUrl,
        LevadaError,
        NotFound,
        Refused,
        SettingsError,
        StoreError,
        StoreLocked,
        TooMany,
        UsageError,
    )
    from levada.core.reasons import Reason
    from levada.core.records import ChangeEvent, ChangeFacts, CollectionStats, Document, SiteRecord, VersionInfo
    from levada.core.reports import Report
    from levada.core.search_records import FacetCount, Hit, Hits, Trend
    from levada.core.settings import Settings
    from levada.core.structured import Item, Offer, PricePoint, StructuredData
    from levada.export.rows import ExportRow

__version__ = "0.4.0.dev0"

__all__ = [
    "BackupReport",
    "BadQuery",
    "BadUrl",
    "ChangeEvent",
    "ChangeFacts",
    "CheckResult",
    "Collection",
    "CollectionStats",
    "Diff",
    "Document",
    "EntryTrial",
    "ExportReport",
    "ExportRow",
    "FacetCount",
    "Forecast",
    "ForgetReport",
    "Hit",
    "Hits",
    "Item",
    "LevadaError",
    "NamedCollection",
    "NotFound",
    "NotificationInfo",
    "Notifications",
    "Offer",
    "PageEvent",
    "PageOutOfScope",
    "PageOutcome",
    "PricePoint",
    "ReadingTrial",
    "Reason",
    "Receipt",
    "Refused",
    "Report",
    "RestoreReport",
    "RuleReport",
    "RuleTrial",
    "ScopeTrial",
    "SettingChange",
    "SettingValue",
    "Settings",
    "SettingsError",
    "SiteRecord",
    "SiteReport",
    "Source",
    "StoreError",
    "StoreLocked",
    "StructuredData",
    "TooMany",
    "Trend",
    "UsageError",
    "VersionInfo",
    "Why",
    "__version__",
    "bulk",
    "collections",
    "errors",
    "freshness",
    "grouping",
    "open",
    "restore",
    "sharding",
    "stages",
]

_MODULES = {
    "levada.collection.collection": ("Collection",),
    "levada.collection.commands": ("Receipt",),
    "levada.collection.diff": ("Diff",),
    "levada.collection.events": ("CheckResult", "PageEvent", "PageOutcome"),
    "levada.collection.forgetting.run": ("ForgetReport",),
    "levada.collection.explain": ("Forecast", "Why"),
    "levada.collection.site_rules.reports": ("RuleReport", "SiteReport"),
    "levada.collection.site_rules.scope": ("PageOutOfScope", "ScopeTrial"),
    "levada.collection.site_rules.trials": ("EntryTrial", "ReadingTrial", "RuleTrial"),
    "levada.collection.exports": ("ExportReport",),
    "levada.collection.storage.named": ("NamedCollection",),
    "levada.collection.notifications": ("NotificationInfo", "Notifications"),
    "levada.collection.storage.backup": ("BackupReport",),
    "levada.collection.storage.restore": ("RestoreReport",),
    "levada.core.configuration.kept": ("SettingChange",),
    "levada.core.configuration.layers": ("SettingValue", "Source"),
    "levada.core.errors": (
        "BadQuery",
        "BadUrl",
        "LevadaError",
        "NotFound",
        "Refused",
        "SettingsError",
        "StoreError",
        "StoreLocked",
        "TooMany",
        "UsageError",
    ),
    "levada.core.reasons": ("Reason",),
    "levada.core.records": ("ChangeEvent", "ChangeFacts", "CollectionStats", "Document", "SiteRecord", "VersionInfo"),
    "levada.core.reports": ("Report",),
    "levada.core.search_records": ("FacetCount", "Hit", "Hits", "Trend"),
    "levada.core.settings": ("Settings",),
    "levada.core.structured": ("Item", "Offer", "PricePoint", "StructuredData"),
    "levada.export.rows": ("ExportRow",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_PARTS = {"bulk": "levada.bulk", "errors": "levada.core.errors"} | {
    part: f"levada.{part}" for part in ("freshness", "grouping", "sharding", "stages")
}


def open(
    folder: str | PathLike[str] | None = None,
    settings: Settings | None = None,
    *,
    name: str | None = None,
    create: bool = True,
) -> Collection:
    """Open the collection in `folder`, or create one; with `create=False` a missing one raises `NotFound`.

    `name` is that of a named collection, in place of a folder; without both it is levada-data here. Without
    `settings` those kept with the collection hold.

    >>> with levada.open("news") as news:
    ...     news.stats().stored > 0
    True
    >>> levada.open(name="blog", create=False)
    Traceback (most recent call last):
    levada.core.errors.NotFound: there is no collection named 'blog': 'levada crawl --in blog URL' starts it
    """
    if name is not None:
        if folder is not None:
            raise TypeError("open() takes a folder or a name, not both")
        folder = import_module("levada.core.configuration.places").folder_named(name, create=create)
    folder = "levada-data" if folder is None else folder
    opened: Collection = __getattr__("Collection")(folder, settings, create=create)
    return opened


def restore(
    backup: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    force: bool = False,
    servers: Sequence[str] = (),
) -> RestoreReport:
    """Put a backup into a new folder, or its shards on PostgreSQL servers: all of it, verified, or nothing.

    With `force`, what the folder holds is moved aside first.

    >>> report = news.backup("news.backup")
    >>> levada.restore("news.backup", "restored").pages == report.pages
    True
    """
    from pathlib import Path

    from levada.collection.storage import restore as restoring

    return restoring.restore(Path(backup), Path(folder), force=force, servers=servers)


def collections() -> list[NamedCollection]:
    """The collections that have names: where each lies, and what it holds.

    >>> levada.collections()
    []
    """
    found: list[NamedCollection] = import_module("levada.collection.storage.named").named_collections()
    return found


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(_PARTS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'levada' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
