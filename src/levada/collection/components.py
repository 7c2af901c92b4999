"""Components by settings: policy, fetcher, parser, page hooks; and their replacement while a crawl runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from levada.core.errors import PluginError, SettingsError
from levada.core.plugins import is_builtin, load
from levada.core.site_rules.pace import widest_revisit
from levada.core.site_rules.rendering import renders_any
from levada.store.base import Capability, Store, WithLimits
from levada.store.opening import store_limits

if TYPE_CHECKING:
    from levada.browser.slots import RenderSlots
    from levada.core.folder import DataFolder
    from levada.core.protocols import Clock, Estimates, Fetcher, PageSample, Parser, RevisitPolicy
    from levada.core.records import PageRecord, Plan, Request, Response, Signals, Visit
    from levada.core.settings import Settings
    from levada.crawl.executor import StoreExecutor
    from levada.crawl.hooks import PageHooks
    from levada.parser.pool import ParserPool

_PANEL = 2_000  # pages whose beliefs are kept in memory


def make_policy(settings: Settings) -> RevisitPolicy:
    from levada.freshness import ContainedPolicy, PageEstimates, Rule, RuleRevisit, Scale

    revisit, budget = widest_revisit(settings), settings.budget
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
    policy.estimates.learn(*_drawn_sample(page_sample))


async def learn_again(policy: RevisitPolicy, page_sample: PageSample, executor: StoreExecutor) -> None:
    """Learn what others stored meanwhile. Only the reading is on the store's thread: the loop uses the estimates."""
    policy.estimates.learn(*await executor.run(_drawn_sample, page_sample))


def _drawn_sample(page_sample: PageSample) -> tuple[list[PageRecord], int]:
    one_in = 1
    while page_sample.live_pages() // one_in > _PANEL:
        one_in *= 2
    return list(page_sample.sample(one_in)), one_in


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


def make_render_slots(settings: Settings) -> RenderSlots | None:
    """The slots of a stage that renders pages; None if no rule wants any rendered."""
    if not renders_any(settings.site):
        return None
    from levada.browser.slots import RenderSlots

    return RenderSlots(settings.browser.pages)


def make_hooks(settings: Settings) -> PageHooks | None:
    """The chosen page hooks; None if there are none."""
    if not settings.crawl.hooks:
        return None
    from levada.crawl.hooks import HOOKS, PageHooks

    return PageHooks({name: load(HOOKS, name, settings.plugins.get(name)) for name in settings.crawl.hooks})


def make_fetcher(
    settings: Settings,
    *,
    folder: DataFolder | None = None,
    parser: Parser | None = None,
    slots: RenderSlots | None = None,
    direct: bool = False,
) -> Fetcher:
    """The fetcher of the settings.

    `folder` keeps the cookies of sessions, and on which sites rendering paid off; `parser` evaluates selectors of a
    login. `slots` bound how many pages are rendered at the same time. `direct`: no proxy is used, as for messages to
    one's own servers.
    """
    from levada import __version__
    from levada.browser import BrowserSetup, Rendering, RenderingFetcher
    from levada.fetch import ContainedFetcher, CredentialFetcher, FetchLimits
    from levada.fetch.guard import AddressGuard
    from levada.fetch.proxies import RouteFetcher
    from levada.fetch.sessions import SessionFetcher

    fetch, polite = settings.fetch, settings.politeness
    browser = settings.browser
    contact = f" (+{polite.contact})" if polite.contact else ""
    agent = f"{polite.agent}/{__version__}{contact}"
    limits = FetchLimits(**{name: getattr(fetch, name) for name in FetchLimits.__struct_fields__})
    guard = AddressGuard(settings.guard.allow)
    made: Fetcher = load(
        "levada.fetchers",
        fetch.fetcher,
        settings.plugins.get(fetch.fetcher),
        limits=limits,
        guard=guard,
        agent=agent,
        ca_file=fetch.ca_file or None,
        connections=2 * fetch.slots,
        http2=fetch.http2,
    )
    takes_routes = is_builtin("levada.fetchers", fetch.fetcher) or bool(getattr(made, "takes_routes", False))
    if not is_builtin("levada.fetchers", fetch.fetcher):
        made = ContainedFetcher(fetch.fetcher, made, limits)
    proxies = () if direct else fetch.proxy
    named = () if direct else [each for table in settings.site for each in table.proxy or ()]
    routed = RouteFetcher(made, guard, proxies, named=named, takes_routes=takes_routes)
    path = folder.path if folder is not None else None
    setup = BrowserSetup(
        browser.command,
        agent,
        settings.guard.allow,
        pages=browser.pages,
        seconds=browser.seconds,
        memory=browser.memory,
        max_bytes=browser.max_bytes,
        max_html=fetch.max_decoded_bytes,
    )
    memory = folder.rendering if folder is not None else None
    rendering = Rendering(setup, memory, slots=slots, proxy_for=routed.proxy_for)
    # Inside of the sessions: whether a page asks for a login is seen where it is rendered.
    asking = RenderingFetcher(CredentialFetcher(routed), rendering)
    plain = RenderingFetcher(routed if proxies else made, rendering)
    return SessionFetcher(asking, plain, folder=path, parser=parser)


class ReplaceableFetcher:
    """A fetcher in whose place another can be put; the one before is closed when its last exchange ends."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._current = _Used(fetcher)

    async def fetch(self, request: Request) -> Response:
        used = self._current
        used.under_way += 1
        try:
            return await used.fetcher.fetch(request)
        finally:
            used.under_way -= 1
            if used is not self._current and not used.under_way:
                await used.fetcher.close()

    async def replace(self, fetcher: Fetcher) -> None:
        before, self._current = self._current, _Used(fetcher)
        if not before.under_way:
            await before.fetcher.close()

    async def close(self) -> None:
        await self._current.fetcher.close()


class _Used:
    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self.under_way = 0


class ReplaceablePolicy:
    """A revisit policy in whose place another can be put."""

    def __init__(self, policy: RevisitPolicy) -> None:
        self.current = policy

    @property
    def estimates(self) -> Estimates:
        return self.current.estimates

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        return self.current.plan(page, visit, modified)

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        return self.current.visit_after_hint(page, said)

    def wants_full_fetch(self, page: PageRecord) -> bool:
        return self.current.wants_full_fetch(page)

    def limit_site(self, site: str, per_second: float) -> None:
        self.current.limit_site(site, per_second)

    def set_budget(self, per_hour: float) -> None:
        self.current.set_budget(per_hour)

    def price(self) -> float:
        return self.current.price()


class RunningSettings:
    """The settings of a crawl that runs: what the collection keeps is looked at, and components are replaced."""

    def __init__(
        self,
        folder: DataFolder,
        settings: Settings,
        store: Store,
        fetcher: ReplaceableFetcher | None,
        parser: Parser | None,
        policy: ReplaceablePolicy,
        clock: Clock,
        published: Callable[[Settings], None] = lambda settings: None,
        *,
        slots: RenderSlots | None = None,
    ) -> None:
        from levada.core.configuration.following import SettingsFollower

        self.poll = SettingsFollower(folder, settings).poll
        self._folder = folder
        self._parser = parser
        self._slots = slots
        self._store, self._fetcher, self._policy, self._clock, self._published = (
            store,
            fetcher,
            policy,
            clock,
            published,
        )

    async def settings_changed(self, before: Settings, now: Settings, executor: StoreExecutor) -> None:
        """Replace what depends on settings that changed, and bring forward the pages that they want sooner.

        First what may be wrong in them: then nothing has changed.
        """
        fetcher = policy = None
        if self._fetcher is not None and _of_fetcher(before) != _of_fetcher(now):
            fetcher = make_fetcher(now, folder=self._folder, parser=self._parser, slots=self._slots)
        if _of_policy(before) != _of_policy(now):
            policy = make_policy(now)
            await executor.run(learn_from_sample, policy, self._store)
        if self._fetcher is not None and fetcher is not None:
            await self._fetcher.replace(fetcher)
        if policy is not None:
            self._policy.current = policy
        if store_limits(before) != store_limits(now) and Capability.LIMITS in self._store.capabilities:
            cast(WithLimits, self._store).set_limits(store_limits(now))
        await executor.run(self._published, now)
        from levada.collection.starts import keep_planned_by
        from levada.crawl.rescheduling import Rescheduling

        rescheduling = Rescheduling(self._store, before, now, self._clock.now())
        while await executor.run(rescheduling.step):
            pass
        if not self._store.away:  # the pages of a shard that is away keep their plan until the next start
            keep_planned_by(self._folder, now)


def _of_fetcher(settings: Settings) -> tuple[object, ...]:
    return settings.fetch, settings.browser, settings.guard, settings.politeness.agent, settings.politeness.contact


def _of_policy(settings: Settings) -> tuple[object, ...]:
    return widest_revisit(settings), replace(settings.budget, per_hour=0), settings.politeness.delay
