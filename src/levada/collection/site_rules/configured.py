"""The settings of a collection and the rules of its sites, as the public class `Collection` has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from levada.collection.commands import open_commands
from levada.collection.reader import CollectionReader
from levada.core.errors import UsageError
from levada.core.folder import DataFolder
from levada.core.settings import Settings

if TYPE_CHECKING:
    from levada.collection.site_rules.reports import RuleReport, SiteReport
    from levada.collection.site_rules.scope import PageOutOfScope, ScopeTrial
    from levada.collection.site_rules.trials import RuleTrial
    from levada.core.configuration.kept import SettingChange
    from levada.core.configuration.layers import SettingValue

T = TypeVar("T")


class ConfiguredCollection(CollectionReader):
    """A collection that can be read, whose settings and rules can be read, tried and changed."""

    def __init__(self, folder: DataFolder, settings: Settings | None = None) -> None:
        super().__init__(folder)
        self._settings = settings  # in place of those that are stored, until they are stored

    @property
    def settings(self) -> Settings:
        """The settings stored with the collection. Assigning replaces them; while a crawl runs it raises `StoreLocked`.

        >>> news.settings = news.settings.replace({"budget.per_hour": 100})
        >>> news.settings.budget.per_hour
        100
        """
        self._must_be_open()
        return self._settings or self._folder.settings()

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._must_be_open()
        with self._folder.locked():
            self._keep(settings)

    def setting_sources(self) -> dict[str, SettingValue]:
        """Every setting by `section.key`: its value, its default, and where the value comes from. Secrets are masked.

        >>> news.setting_sources()["crawl.scope"].source.value
        'default'
        """
        self._must_be_open()
        found = self._folder.configuration().report()
        if self._settings is None:
            return found
        from levada.core.configuration.layers import chosen_here

        return chosen_here(found, self._settings)

    def change_settings(self, values: Mapping[str, Any], *, by: str = "a program") -> list[SettingChange]:
        """Change these settings by `section.key`; None ends what the collection keeps. Returns what changed.

        A crawl that runs, in this process or another, takes them up within a second where it can; docs/settings.md
        says which.

        >>> for change in news.change_settings({"revisit.ceiling": 604_800.0}):
        ...     print(change)
        revisit.ceiling: 2592000 -> 604800, kept with the collection
        """
        self._must_be_open()
        from levada.collection.commands import change_settings

        if self._settings is not None:
            self._folder.save_settings(self._settings)
            self._settings = None
        return change_settings(self._folder, values, by)

    def rules(self) -> list[RuleReport]:
        """The rules of sites: the `[[site]]` tables, and how many sites each matches.

        >>> news.rules()
        []
        """
        from levada.collection.site_rules.reports import rule_reports

        return rule_reports(self._reader())

    def set_rule(self, match: str, **keys: Any) -> list[SettingChange]:
        """Set keys of the rule for a site, or for a part of it; None ends a key. Returns what changed.

        `match` and the keys are those of `[[site]]`. A running crawl takes them up within a second.

        >>> for change in news.set_rule(start, exclude=["*.pdf"]):
        ...     print(change.value)
        ['*.pdf']
        """
        from levada.collection.site_rules.changes import rule_changes

        return self.change_settings(rule_changes(match, keys))

    def try_scope(self, match: str, **keys: Any) -> ScopeTrial:
        """What a rule with these keys would keep out of the known pages; nothing changes.

        >>> news.try_scope(start, exclude=["*.pdf"]).pages
        0
        """
        from levada.collection.site_rules.scope import try_scope

        return try_scope(self._reader(), match, keys)

    def remove_rule(self, match: str) -> list[SettingChange]:
        """End the rule for a site, or for a part of it. Returns what changed.

        >>> news.remove_rule("nowhere.example")
        Traceback (most recent call last):
        levada.core.errors.UsageError: no rule has match = 'nowhere.example': there is none
        """
        from levada.collection.site_rules.changes import removal

        return self.change_settings(removal(self.settings, match))

    def try_rule(self, url: str, *, stored: bool = True, live: bool = True, **keys: Sequence[str] | None) -> RuleTrial:
        """What a rule would keep of a page as it is stored and as it is now, before `set_rule` makes it one.

        `keys` are `select`, `remove`, `ignore` and `trigger`; those not given are as the rules in force have them. The
        live page is fetched within robots.txt and nothing of it is stored; a URL that is not known works too.

        >>> trial = news.try_rule(start, select=["h1"])
        >>> trial.live.text == trial.stored.text, trial.changed
        (True, False)
        """
        return self._run(lambda: self.atry_rule(url, stored=stored, live=live, **keys), "atry_rule")

    async def atry_rule(
        self, url: str, *, stored: bool = True, live: bool = True, **keys: Sequence[str] | None
    ) -> RuleTrial:
        """Like `try_rule`, in a running event loop.

        >>> asyncio.run(news.atry_rule(start, select=["h1"], live=False)).rule
        {'select': ['h1']}
        """
        from levada.collection.site_rules.trials import tried

        return await tried(url, keys, self.settings, self._reader(), stored=stored, live=live)

    def site_reports(self, *sites: str) -> list[SiteReport]:
        """Each site, or those named: its pages, the rules that hold for it, and what they keep out.

        >>> news.site_reports()[0].links_kept_out
        0
        """
        from levada.collection.site_rules.reports import site_reports

        return site_reports(self._reader(), sites)

    def out_of_scope(self, site: str = "") -> Iterator[PageOutOfScope]:
        """The known pages of a site, or of all, that the rules keep out now: they are not visited any more.

        >>> next(news.out_of_scope(), None)
        """
        from levada.collection.site_rules.scope import out_of_scope

        return out_of_scope(self._reader(), site)

    def _keep(self, settings: Settings) -> None:
        open_commands(self._folder, settings).close()  # a budget that was commanded ends if the settings name another
        self._folder.save_settings(settings)
        self._settings = None

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
        self._must_be_open()
        refuse_running_loop(instead)
        with new_runner() as runner:
            return runner.run(work())


def refuse_running_loop(instead: str) -> None:
    """`UsageError` in a running event loop, which a call that waits would stop."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError(f"an event loop runs in this thread: use 'await collection.{instead}(...)' there")


def new_runner() -> asyncio.Runner:
    import uvloop

    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
