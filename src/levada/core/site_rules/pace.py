"""Pace of a site: how fast, how much and when it is asked, by its rule and the settings of all sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from levada.core.site_rules.hours import ActiveHours, active_hours
from levada.core.site_rules.rules import SiteRule, SiteRules
from levada.core.site_rules.section import WHOLE_SITE_KEYS

if TYPE_CHECKING:
    from levada.core.settings import RevisitSettings, Settings


class Pace(msgspec.Struct, frozen=True):
    """What holds for one site: its own keys, and those of all sites for the others."""

    delay: float = 0.0  # seconds between two requests, unless the site asks for more
    per_hour: float = 0.0  # 0: no limit
    most_pages: int = 10_000  # known URLs
    hours: ActiveHours | None = None  # None: always

    @property
    def gap(self) -> float:
        """Seconds between two requests that the delay and the budget leave."""
        return max(self.delay, 3600.0 / self.per_hour if self.per_hour else 0.0)

    def per_second(self, asked: float | None) -> float:
        """The most requests per second on the average of a week; infinity for no limit. `asked`: the site's delay."""
        gap = max(self.gap, asked or 0.0)
        share = 1.0 if self.hours is None else self.hours.share
        return share / gap if gap else float("inf")

    def opens_at(self, now: float) -> float:
        """When the site may be asked: `now`, or the beginning of its hours."""
        return now if self.hours is None else self.hours.opens_at(now)

    def closes_at(self, now: float) -> float:
        return float("inf") if self.hours is None else self.hours.closes_at(now)


class SitePaces:
    """The pace of every site. Equal if the same settings made them."""

    def __init__(
        self,
        rules: SiteRules | None = None,
        *,
        delay: float = 0.0,
        per_hour: float = 0.0,
        most_pages: int = 10_000,
    ) -> None:
        self._common = Pace(delay, per_hour, most_pages)
        rules = rules or SiteRules()
        tables = [table for table in rules.tables if any(getattr(table, key) is not None for key in WHOLE_SITE_KEYS)]
        self._rules = SiteRules(tables)
        self._own: dict[str, Pace] = {}

    @staticmethod
    def of(settings: Settings) -> SitePaces:
        return SitePaces(
            SiteRules(settings.site),
            delay=settings.politeness.delay,
            per_hour=settings.budget.per_site_per_hour,
            most_pages=settings.crawl.max_pages_per_site,
        )

    def __bool__(self) -> bool:
        """Whether some site has a pace of its own."""
        return bool(self._rules)

    @property
    def common(self) -> Pace:
        """The pace of sites without a rule."""
        return self._common

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SitePaces) and (self._common, self._rules.tables) == (
            other._common,
            other._rules.tables,
        )

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, site: str) -> Pace:
        if not self._rules:
            return self._common
        pace = self._own.get(site)
        if pace is None:
            if len(self._own) > _MOST_SITES:
                self._own.clear()
            pace = self._own[site] = self._pace_of(site)
        return pace

    def own(self, site: str) -> Pace | None:
        """The pace of a site with a rule for it; None where those of all sites hold."""
        pace = self(site)
        return None if pace is self._common else pace

    def _pace_of(self, site: str) -> Pace:
        tables, common = self._rules.whole_site_tables(site), self._common
        if not tables:
            return common
        delay, per_hour, most_pages, hours = (
            next((value for table in tables if (value := getattr(table, key)) is not None), None)
            for key in ("delay", "per_hour", "max_pages", "hours")
        )
        return Pace(
            delay=common.delay if delay is None else delay,
            per_hour=common.per_hour if per_hour is None else per_hour,
            most_pages=common.most_pages if most_pages is None else most_pages,
            hours=active_hours(tuple(hours)) if hours else None,
        )


_MOST_SITES = 50_000


def revisit_of(rule: SiteRule, common: RevisitSettings) -> RevisitSettings:
    """The revisit settings of an address: with the floor and the ceiling of its rule."""
    keys = rule.keys
    if keys is None or (keys.floor is None and keys.ceiling is None):
        return common
    floor = common.floor if keys.floor is None else keys.floor
    ceiling = common.ceiling if keys.ceiling is None else keys.ceiling
    if floor > ceiling:  # the more specific one decides
        of_floor, of_ceiling = (rule.sources.get(key) for key in ("floor", "ceiling"))
        specific = next(match for match in rule.matches if match in (of_floor, of_ceiling))
        floor, ceiling = (floor, floor) if specific == of_floor else (ceiling, ceiling)
    return msgspec.structs.replace(
        common,
        floor=floor,
        ceiling=ceiling,
        first=min(max(common.first, floor), ceiling),
        retry=min(common.retry, ceiling),
        max_retry=min(common.max_retry, ceiling),
        gone=min(common.gone, ceiling),
    )


def own_floor(rules: SiteRules, url: str, common: RevisitSettings) -> float:
    """The floor that a rule sets for an address; 0 if none does."""
    revisit = revisit_of(rules.rule_for(url), common) if rules else common
    return 0.0 if revisit is common else revisit.floor


def widest_revisit(settings: Settings) -> RevisitSettings:
    """The revisit settings of all sites, with the lowest floor and the highest ceiling that any rule has."""
    common = settings.revisit
    floors = [table.floor for table in settings.site if table.floor is not None]
    ceilings = [table.ceiling for table in settings.site if table.ceiling is not None]
    floor, ceiling = min([common.floor, *floors, *ceilings]), max([common.ceiling, *ceilings, *floors])
    return (
        common
        if (floor, ceiling) == (common.floor, common.ceiling)
        else msgspec.structs.replace(common, floor=floor, ceiling=ceiling)
    )
