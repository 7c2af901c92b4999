"""Settings in, the engine behind each port out."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from levada.clock import ScaledClock, SystemClock
from levada.errors import SettingsError

if TYPE_CHECKING:
    from levada.adapters.parser_pool import ParserPool
    from levada.flow.settings import ClockSettings, Settings
    from levada.freshness import LearnedRevisit, RuleRevisit
    from levada.ports import Census, Clock, Fetcher, RevisitPolicy

__all__ = [
    "make_clock",
    "make_fetcher",
    "make_parser",
    "make_policy",
    "remember_pages",
    "user_agent",
]

_PANEL = 2_000  # pages whose beliefs are kept in memory


def make_clock(settings: ClockSettings) -> Clock:
    if settings.speed == 1.0 and not settings.started:
        return SystemClock()
    return ScaledClock(settings.speed, settings.origin, settings.started)


def make_policy(settings: Settings) -> LearnedRevisit | RuleRevisit:
    from levada.freshness import RULES, LearnedRevisit, PageBeliefs, RuleRevisit, Scale

    revisit, budget = settings.revisit, settings.budget
    floor = max(1.0, revisit.floor)
    scale = Scale.between(floor, max(revisit.ceiling, 2 * floor))
    beliefs = PageBeliefs(scale, _importance(revisit.importance), _PANEL)
    if revisit.policy != "learned":
        try:
            rule = RULES[revisit.policy](first=revisit.first, floor=revisit.floor, ceiling=revisit.ceiling)
        except ValueError as error:
            raise SettingsError(f"revisit: {error}") from None
        return RuleRevisit(rule, beliefs)
    delay = settings.politeness.delay
    limits = (budget.per_site_per_hour / 3600.0, 1.0 / delay if delay else 0.0)
    return LearnedRevisit(
        beliefs,
        per_hour=budget.per_hour,
        per_page_per_day=budget.per_page_per_day,
        per_site=min((limit for limit in limits if limit), default=inf),
    )


def remember_pages(policy: RevisitPolicy, census: Census) -> None:
    """What the stored pages tell: all of them, or a sample that is large enough."""
    one_in = 1
    while census.live_pages() // one_in > _PANEL:
        one_in *= 2
    policy.beliefs.learn(census.sample(one_in), one_in)


def _importance(by_prefix: dict[str, float]) -> Callable[[str], float]:
    """By the longest beginning of the address that is named."""
    longest_first = sorted(by_prefix.items(), key=lambda item: -len(item[0]))
    return lambda url: next((weight for prefix, weight in longest_first if url.startswith(prefix)), 1.0)


def make_parser(settings: Settings, slots: int = 64) -> ParserPool:
    from levada.adapters.parser_pool import ParserPool

    parse = settings.parse
    return ParserPool(
        parse.children or max(1, (os.cpu_count() or 2) - 1),
        memory=parse.memory,
        cpu_seconds=parse.cpu_seconds,
        main_text=parse.main_text,
        agent=settings.politeness.agent,
        # As many pages as may be on their way are no reason to hold anybody back; twice as many soon would be.
        capacity=4 * slots,
    )


def make_fetcher(settings: Settings) -> Fetcher:
    from levada.adapters.guard import AddressGuard
    from levada.adapters.web import CurlFetcher, FetchLimits

    fetch = settings.fetch
    limits = FetchLimits(
        max_bytes=fetch.max_bytes,
        max_decoded_bytes=fetch.max_decoded_bytes,
        max_header_bytes=fetch.max_header_bytes,
        max_buffered_bytes=fetch.max_buffered_bytes,
        seconds=fetch.seconds,
        connect_seconds=fetch.connect_seconds,
        min_rate=fetch.min_rate,
        min_rate_seconds=fetch.min_rate_seconds,
    )
    return CurlFetcher(
        limits,
        AddressGuard(settings.guard.allow),
        agent=user_agent(settings),
        ca_file=fetch.ca_file or None,
        connections=2 * fetch.slots,
        http2=fetch.http2,
    )


def user_agent(settings: Settings) -> str:
    from levada import __version__

    polite = settings.politeness
    contact = f" (+{polite.contact})" if polite.contact else ""
    return f"{polite.agent}/{__version__}{contact}"
