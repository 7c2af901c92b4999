"""Components by settings: clock, policy, fetcher, parser, page hooks."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from levada.core.errors import PluginError, SettingsError
from levada.core.plugins import is_builtin, load

if TYPE_CHECKING:
    from levada.core.protocols import Fetcher, PageSample, RevisitPolicy
    from levada.core.settings import Settings
    from levada.crawl.hooks import PageHooks
    from levada.parser.pool import ParserPool

_PANEL = 2_000  # pages whose beliefs are kept in memory


def make_policy(settings: Settings) -> RevisitPolicy:
    from levada.freshness import ContainedPolicy, PageEstimates, Rule, RuleRevisit, Scale

    revisit, budget = settings.revisit, settings.budget
    floor = max(1.0, revisit.floor)
    scale = Scale.between(floor, max(revisit.ceiling, 2 * floor))
    estimates = PageEstimates(scale, _importance(revisit.importance), _PANEL)
    delay = settings.politeness.delay
    limits = (budget.per_site_per_hour / 3600.0, 1.0 / delay if delay else 0.0)

    def made(name: str) -> RevisitPolicy:
        try:
            policy = load(
                "levada.policies",
                name,
                settings.plugins.get(name),
                first=revisit.first,
                floor=revisit.floor,
                ceiling=revisit.ceiling,
                estimates=estimates,
                per_hour=budget.per_hour,
                per_page_per_day=budget.per_page_per_day,
                per_site=min((limit for limit in limits if limit), default=inf),
            )
        except ValueError as error:
            raise SettingsError(f"revisit: {error}") from None
        if isinstance(policy, Rule):
            return RuleRevisit(policy, estimates)
        if not hasattr(policy, "plan"):
            raise PluginError(f'revisit.policy: the plug-in "{name}" is neither a Rule nor has it a plan')
        return policy  # type: ignore[no-any-return]

    policy = made(revisit.policy)
    if is_builtin("levada.policies", revisit.policy):
        return policy
    return ContainedPolicy(revisit.policy, policy, made("learned"), revisit.floor, revisit.ceiling)


def learn_from_sample(policy: RevisitPolicy, page_sample: PageSample) -> None:
    """What the stored pages tell: all of them, or a sample that is large enough."""
    one_in = 1
    while page_sample.live_pages() // one_in > _PANEL:
        one_in *= 2
    policy.estimates.learn(page_sample.sample(one_in), one_in)


def _importance(by_prefix: dict[str, float]) -> Callable[[str], float]:
    """By the longest beginning of the address that is named."""
    longest_first = sorted(by_prefix.items(), key=lambda item: -len(item[0]))
    return lambda url: next((weight for prefix, weight in longest_first if url.startswith(prefix)), 1.0)


def make_parser(settings: Settings, slots: int = 64) -> ParserPool:
    from levada.pages.plugins import ReadingChoice
    from levada.parser.channel import ParserSetup
    from levada.parser.pool import ParserPool

    parse = settings.parse
    reading = ReadingChoice(parse.main_text, parse.readers, parse.change_filters, settings.plugins)
    return ParserPool(
        parse.children or max(1, (os.cpu_count() or 2) - 1),
        memory=parse.memory,
        cpu_seconds=parse.cpu_seconds,
        setup=ParserSetup(settings.politeness.agent, reading),
        # As many pages as may be on their way are no reason to hold anybody back; twice as many soon would be.
        capacity=4 * slots,
    )


def make_hooks(settings: Settings) -> PageHooks | None:
    """The chosen page hooks; None if there are none."""
    if not settings.crawl.hooks:
        return None
    from levada.crawl.hooks import HOOKS, PageHooks

    return PageHooks({name: load(HOOKS, name, settings.plugins.get(name)) for name in settings.crawl.hooks})


def make_fetcher(settings: Settings) -> Fetcher:
    from levada import __version__
    from levada.fetch import ContainedFetcher, FetchLimits
    from levada.fetch.guard import AddressGuard

    fetch, polite = settings.fetch, settings.politeness
    contact = f" (+{polite.contact})" if polite.contact else ""
    limits = FetchLimits(**{name: getattr(fetch, name) for name in FetchLimits.__struct_fields__})
    made: Fetcher = load(
        "levada.fetchers",
        fetch.fetcher,
        settings.plugins.get(fetch.fetcher),
        limits=limits,
        guard=AddressGuard(settings.guard.allow),
        agent=f"{polite.agent}/{__version__}{contact}",
        ca_file=fetch.ca_file or None,
        connections=2 * fetch.slots,
        http2=fetch.http2,
    )
    return made if is_builtin("levada.fetchers", fetch.fetcher) else ContainedFetcher(fetch.fetcher, made, limits)
