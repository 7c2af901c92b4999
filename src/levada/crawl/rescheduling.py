"""Rescheduling after the settings changed: pages that wait longer than the new settings allow come forward.

A page keeps the next visit that was planned for it. If a limit becomes lower, pages that were planned under the old
one are moved to a time within the new one: spread over it by the page alone, so that they neither come at once nor
at another time when this is repeated. If the address guard allows more than before, the pages that it refused are
due; if an extra was installed that reads more documents, so are those that waited for it; if a rule keeps a page out
no longer, it is due. Nothing is ever put off.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from levada.core.hashing import spread
from levada.core.reasons import Reason
from levada.core.records import PageRecord, PlanSelection, Signals
from levada.core.settings import RevisitSettings, Settings
from levada.core.site_rules.pace import SitePaces, revisit_of
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.section import planning_tables
from levada.crawl.link_filter import page_kept_out
from levada.crawl.outcome import PASSING, longest_pause
from levada.crawl.sites import opened
from levada.store.base import Store

_BATCH = 500  # pages in a transaction
_SLACK = 1.1  # pauses that double are spread by a tenth (`levada.crawl.sites.doubling`)


def latest_visit(page: PageRecord, before: RevisitSettings, now: RevisitSettings, at: float) -> float | None:
    """Until when the new settings let a page wait at most; None if they allow what the old ones did."""
    waits = [now.ceiling] if now.ceiling < before.ceiling else []
    if page.failures and page.reason in PASSING:
        if longest_pause(page, now) < longest_pause(page, before):
            waits.append(_SLACK * longest_pause(page, now))
        if now.retry < before.retry:
            waits.append(_SLACK * now.retry * 2 ** min(page.failures - 1, 60))
    elif page.failures:
        if now.gone < before.gone:
            waits.append(_SLACK * now.gone * 2 ** min(page.failures - 1, 60))
    elif page.interval is not None:
        if now.first < before.first and page.visits == 1:
            waits.append(now.first)
        if now.floor < before.floor and page.interval <= before.floor:
            waits.append(max(now.floor, 1.0))
        weight, weighed = importance(page.url, now), importance(page.url, before)
        if weight > weighed:
            waits.append(page.interval * (weighed / weight) ** 0.5)
    return at + min(waits) if waits else None


def importance(url: str, revisit: RevisitSettings) -> float:
    """What a page counts: the value of the longest beginning of its address that has one."""
    found = max((start for start in revisit.importance if url.startswith(start)), key=len, default=None)
    return 1.0 if found is None else revisit.importance[found]


def brought_within(page: PageRecord, latest: float, at: float) -> float | None:
    """A time between now and `latest` for a page that is planned later; None if it is not."""
    if page.next_visit is None or page.next_visit <= latest:
        return None
    return at + (latest - at) * spread(page.id)


def allows_more(before: Settings, now: Settings) -> bool:
    """Whether the address guard lets pass what it refused before."""
    return not set(now.guard.allow) <= set(before.guard.allow)


def limits_less(before: RevisitSettings, now: RevisitSettings) -> bool:
    """Whether some page may have to be visited sooner than planned."""
    lower = any(getattr(now, name) < getattr(before, name) for name in _LIMITS)
    return lower or any(weight > importance(start, before) for start, weight in now.importance.items())


_LIMITS = ("ceiling", "floor", "first", "retry", "max_retry", "gone")


class Rescheduling:
    """Brings forward what changed settings want sooner, some pages in each transaction.

    Repeating it changes nothing, so it may be stopped at any time: run it before the new settings are kept, or again.
    """

    def __init__(
        self,
        store: Store,
        before: Settings,
        settings: Settings,
        now: float,
        *,
        no_longer: Container[Reason] = (),
    ) -> None:
        """`no_longer` are reasons that do not hold any more, because something was installed."""
        self.moved = 0  # pages
        self._store = store
        self._before, self._settings = before, settings
        self._rules_before, self._rules = SiteRules(before.site), SiteRules(settings.site)
        self._now = now
        self._ruled = planning_tables(before.site) != planning_tables(settings.site)
        self._guarded = allows_more(before, settings)
        self._no_longer = no_longer
        self._limited = limits_less(before.revisit, settings.revisit) or _limits(before) != _limits(settings)
        self._after = 0

    @property
    def is_needed(self) -> bool:
        return self._guarded or bool(self._no_longer) or self._limited or self._ruled

    def run(self) -> int:
        """Do it all; returns how many pages were moved."""
        while self.step():
            pass
        return self.moved

    def step(self) -> bool:
        """Do the next part, in one transaction or a few; returns whether there may be more."""
        if not self.is_needed:
            return False
        if self._guarded and not self._after:
            _forget_refused_robots(self._store)
        if self._ruled and not self._after:
            _end_rests(self._store, SitePaces.of(self._before), SitePaces.of(self._settings), self._now)
        selection = PlanSelection(later_than=self._now, failing=not self._limited)
        pages = self._store.planned(selection, self._after, _BATCH)
        due = [(page, Signals.NOTHING, at) for page in pages if (at := self._sooner(page)) is not None]
        self._store.bring_forward(due)
        self.moved += len(due)
        self._after = pages[-1].id if pages else 0
        return bool(pages)

    def _sooner(self, page: PageRecord) -> float | None:
        if self._guarded and page.reason is Reason.ADDRESS:
            return self._now
        if page.reason is not None and page.reason in self._no_longer:
            return self._now
        if self._ruled and page.reason is Reason.RULE and not page_kept_out(self._rules, page):
            return self._now
        before = revisit_of(self._rules_before.rule_for(page.url), self._before.revisit)
        revisit = revisit_of(self._rules.rule_for(page.url), self._settings.revisit)
        latest = latest_visit(page, before, revisit, self._now)
        return None if latest is None else brought_within(page, latest, self._now)


def _limits(settings: Settings) -> list[tuple[str, float | None, float | None]]:
    """The floors and ceilings of rules."""
    limited = [table for table in settings.site if table.floor is not None or table.ceiling is not None]
    return [(table.match, table.floor, table.ceiling) for table in limited]


def _end_rests(store: Store, before: SitePaces, paces: SitePaces, now: float) -> None:
    """End the rest of sites whose active hours are other ones now."""
    for record in list(store.sites()):
        if (until := opened(record, before, paces, now)) is not None:
            store.save(replace(record, rest_until=until))


def _forget_refused_robots(store: Store) -> None:
    """Forget that the guard kept us from reading a robots.txt: it is read again at the next visit."""
    for record in list(store.sites()):
        robots = tuple(entry for entry in record.robots if entry[1].trouble is not Reason.ADDRESS)
        if robots != record.robots:
            store.save(replace(record, robots=robots))
