"""A whole crawl in simulated time: a scripted web, a store in memory, and a clock that jumps when nobody is busy.

The event loop itself knows when there is nothing to do but wait: then the clock moves on to the next sleeper. A
crawl that waits for nothing at all is an error here, never a test that hangs.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import ParamSpec, TypeVar

from levada.core.protocols import CommandQueue, Parser, RevisitPolicy
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, FoundUrl, PageRecord, Request, Response, VisitResult
from levada.core.reports import Report
from levada.core.settings import Settings, parse_settings
from levada.core.site_rules.pace import SitePaces
from levada.crawl.commits import CrawlPorts, LiveSettings
from levada.crawl.engine import Crawl
from levada.crawl.executor import StoreExecutor
from levada.crawl.local_transport import LocalTransport
from levada.freshness import PageEstimates, RuleRevisit, Scale, revisit_rule
from levada.pages.urls import site_of
from levada.parser.inline import InlineParser
from levada.scale.autoscaler import Stage
from levada.store.base import StoreLimits
from levada.store.memory import MemoryStore
from tests.manual_clock import ManualClock
from tests.scripted_web import Answer, MemoryFetcher

__all__ = [
    "DAY",
    "HOUR",
    "START",
    "Stuck",
    "TimedFetcher",
    "World",
    "failing",
    "html",
    "page",
    "run_simulated",
    "status",
    "text",
]

P = ParamSpec("P")
T = TypeVar("T")

START = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0


class Stuck(AssertionError):
    """Everybody waits, and nobody waits for time."""


class _Waiting(selectors.DefaultSelector):
    """Instead of blocking, moves the clock on."""

    clock: ManualClock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            wake = self.clock.next_wake()
            if wake is None:
                raise Stuck("nothing will ever happen again")
            self.clock.advance(wake - self.clock.now())
        return super().select(0)


def run_simulated(clock: ManualClock, work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run to the end, in no time."""
    waiting = _Waiting()
    waiting.clock = clock
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(waiting)) as runner:
        return runner.run(work())


class _InlineKeeper(StoreExecutor):
    """The store in this thread: the order of events is the same in every run."""

    async def run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(0)
        return operation(*args, **kwargs)


class TimedFetcher(MemoryFetcher):
    """Also knows when it was asked, how long answers take, and how many requests a site had at the same time."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__()
        self.times: list[tuple[float, str]] = []
        self.at_once: Counter[str] = Counter()
        self._clock = clock
        self.seconds = seconds
        self.slow: dict[str, float] = {}  # the seconds that these URLs take instead
        self._under_way: Counter[str] = Counter()

    async def fetch(self, request: Request) -> Response:
        site = site_of(request.url)
        self.times.append((self._clock.now(), request.url))
        self._under_way[site] += 1
        self.at_once[site] = max(self.at_once[site], self._under_way[site])
        try:
            await self._clock.sleep(self.slow.get(request.url, self.seconds))
            return await super().fetch(request)
        finally:
            self._under_way[site] -= 1


def ema_policy(first: float = 3600.0, floor: float = 0.0, ceiling: float = 30 * DAY) -> RuleRevisit:
    """The paper's rule: its intervals can be told in advance."""
    return RuleRevisit(
        revisit_rule("ema", first=first, floor=floor, ceiling=ceiling), PageEstimates(Scale.between(60.0, DAY))
    )


class World:
    """A web, and a crawler's whole memory of it; `crawl` may be called again and again."""

    def __init__(
        self,
        web: Mapping[str, Answer | Sequence[Answer]] | None = None,
        settings: str = "",
        *,
        limits: StoreLimits | None = None,
        store: MemoryStore | None = None,
        parser: Parser | None = None,
        policy: RevisitPolicy | None = None,
        seconds: float = 0.1,
        stage_pools: Sequence[Stage] | None = None,
        commands: CommandQueue | None = None,
    ) -> None:
        self.clock = ManualClock(START)
        self.settings: Settings = parse_settings(settings, "the test")
        delay = self.settings.politeness.delay
        self.store = store or MemoryStore(limits=limits or StoreLimits(delay=delay, paces=SitePaces.of(self.settings)))
        self.web = TimedFetcher(self.clock, seconds)
        self.commits: list[VisitResult] = []
        self._staff = stage_pools
        self._commands = commands
        self.live: LiveSettings | None = None
        self._parser = parser or InlineParser()
        revisit = self.settings.revisit
        self._policy = policy or ema_policy(revisit.first, revisit.floor, revisit.ceiling)
        for url, answers in (web or {}).items():
            self.web.script(url, *(answers if isinstance(answers, Sequence) else (answers,)))

    def crawl(
        self,
        *urls: str,
        seconds: float | None = None,
        max_pages: int | None = None,
        meanwhile: Mapping[float, Callable[[], object]] | None = None,
    ) -> Report:
        """For so many seconds of the world, or once; `meanwhile` says what happens after how many seconds."""
        seeds = [FoundUrl(url, site_of(url), how=DiscoveredBy.SEED, admit=True) for url in urls]
        self.store.add(seeds, [], self.clock.now())
        return run_simulated(self.clock, lambda: self._run(seconds, max_pages, dict(meanwhile or {})))

    async def _run(
        self, seconds: float | None, max_pages: int | None, events: dict[float, Callable[[], object]]
    ) -> Report:
        crawl = self.make_crawl(once=seconds is None, max_pages=max_pages)
        if seconds is not None:
            events[seconds] = crawl.stop
        happening = [asyncio.create_task(self._happen(after, event)) for after, event in events.items()]
        try:
            return await crawl.run()
        finally:
            for task in happening:
                task.cancel()

    async def _happen(self, after: float, event: Callable[[], object]) -> None:
        await self.clock.sleep(after)
        event()

    def make_crawl(self, *, once: bool = True, max_pages: int | None = None) -> Crawl:
        store = self.store
        ports = CrawlPorts(self.clock, store, store, store, self._policy, store, self.web, self._commands, self.live)
        transport = LocalTransport(self._parser, on_committed=self.commits.extend, stage_pools=self._staff)
        return Crawl(
            ports, self.settings, transport, once=once, max_pages=max_pages, executor=_InlineKeeper(), watch=None
        )

    def script(self, url: str, *answers: Answer) -> Callable[[], None]:
        """What happens when it is called: from then on `url` is answered so."""
        return lambda: self.web.script(url, *answers)

    def page(self, url: str) -> PageRecord:
        record = self.store.page(url)
        assert record is not None, f"{url} is not held"
        return record

    def asked(self, start: str = "") -> list[tuple[float, str]]:
        """Seconds since the world began and URL of every request for URLs that begin so."""
        return [(at - START, url) for at, url in self.web.times if url.startswith(start)]

    def stored(self) -> set[str]:
        return {document.url for document in self.store.scan()}

    def refused(self) -> dict[str, int]:
        return self.store.stats(self.clock.now()).refused


def html(title: str, *links: str, words: str = "", head: str = "") -> bytes:
    anchors = "".join(f'<p>See <a href="{link}">the page about {link}</a> for more.</p>' for link in links)
    body = f"<p>{words or text(title)}</p>{anchors}"
    return f"<html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


def text(seed: str, count: int = 60) -> str:
    """Words of its own for every seed, the same in every run."""
    return " ".join(f"{seed.lower().replace(' ', '')}{n}" for n in range(count))


def page(title: str, *links: str, words: str = "", head: str = "", **headers: str) -> Response:
    kept = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(
        "", 200, (("content-type", "text/html; charset=utf-8"), *kept), html(title, *links, words=words, head=head)
    )


def status(code: int, body: bytes = b"", **headers: str) -> Response:
    return Response("", code, tuple((name.replace("_", "-"), value) for name, value in headers.items()), body)


def failing(reason: Reason) -> Response:
    return Response("", 0, reason=reason, detail="as the test says")
