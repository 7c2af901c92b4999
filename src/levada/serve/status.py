"""Status of the crawl, its stages, count workers and trends over HTTP."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada import __version__
from levada.collection.live import LiveStatus, StageMoment
from levada.collection.trends import compare_groupings, find_trends, last_count
from levada.core.balance import CountReport
from levada.core.durations import iso
from levada.core.errors import LevadaError, NotFound
from levada.core.records import ChangeFacts
from levada.core.reports import StageView
from levada.core.search_records import Trend
from levada.serve.changes import change_facts
from levada.serve.operations import API, Nothing, Operations, facts_of
from levada.serve.pages import Limit
from levada.serve.streaming import EventStreams
from levada.serve.view import View

WATCHING = Operations()
_SECOND = 1.0
_LATEST = 12  # changes that are shown
_AT_ONCE = 500
_MEASURED = 1_000  # changes, the latest: more would keep a core busy for too long
_BALANCE_SECONDS = 20.0


class StandingFacts(msgspec.Struct, frozen=True):
    sites: int
    known: int  # addresses
    unvisited: int
    due: int
    stored: int  # pages
    versions: int
    bytes: int
    next_due: str | None
    states: dict[str, int]
    refused: dict[str, int]  # by reason


class AwayFacts(msgspec.Struct, frozen=True):
    shard: int
    since: str
    message: str


class StatusAnswer(msgspec.Struct, frozen=True):
    version: str
    now: str  # of the crawled world
    data: str  # the folder, as the server was given it
    crawling: bool
    stats: StandingFacts | None = msgspec.field(name="standing")  # None while nothing is stored
    live: LiveStatus | None
    trouble: str | None = None  # why the collection cannot be read, and what to do
    away: tuple[AwayFacts, ...] = ()  # shards that do not answer: the figures are without theirs


class StagesAnswer(msgspec.Struct, frozen=True):
    crawling: bool
    stages: tuple[StageView, ...]
    history: dict[str, tuple[StageMoment, ...]]


class BalanceAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    beside: bool = False  # of the latest changes, also what key and partial grouping would have made of them


class TrendsAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: Annotated[str, msgspec.Meta(max_length=20, description="How far back: 90m, 24h, 7d.")] = "24h"
    site: Annotated[str, msgspec.Meta(max_length=300)] = ""
    lang: Annotated[str, msgspec.Meta(max_length=20)] = ""
    limit: Limit = 20


class TrendsAnswer(msgspec.Struct, frozen=True):
    since: str
    until: str
    trends: list[Trend]


@WATCHING.add("GET", "/status", "How the collection and the crawl stand")
def status_of(view: View, _ask: Nothing) -> StatusAnswer:
    """The state of the collection and the crawl, or why the folder cannot be read."""
    live, data = view.live(), str(view.folder.path)
    try:
        collection = view.collection()
        now = collection.clock.now()
        stats = collection.store.stats(now)
        standing = facts_of(StandingFacts, stats, next_due=iso(stats.next_due))
    except LevadaError as error:
        trouble = None if isinstance(error, NotFound) else str(error)
        return StatusAnswer(__version__, "", data, live is not None, None, live, trouble)
    return StatusAnswer(__version__, str(iso(now)), data, live is not None, standing, live, away=away_of(view))


def away_of(view: View) -> tuple[AwayFacts, ...]:
    """The shards that do not answer."""
    return tuple(AwayFacts(each.number, str(iso(each.since)), str(each)) for each in view.away())


@WATCHING.add("GET", "/stages", "The stages of the crawl: queues, workers, and why so many")
def _stages(view: View, _ask: Nothing) -> StagesAnswer:
    live = view.live()
    return StagesAnswer(True, live.stages, live.history) if live else StagesAnswer(False, (), {})


@WATCHING.add("GET", "/balance", "How evenly the count workers were loaded", errors=(404, 409, 429))
def _balance(view: View, ask: BalanceAsk) -> CountReport:
    view.collection()
    if not ask.beside:
        return last_count(view.folder.path)
    compare = partial(compare_groupings, view.folder.path, latest=_MEASURED)
    return view.remembered("balance", _BALANCE_SECONDS, compare)


@WATCHING.add("GET", "/trends", "Terms that pages gained lately, more often than before", errors=(404, 409))
def _trends(view: View, ask: TrendsAsk) -> TrendsAnswer:
    found = find_trends(view.folder.path, window=ask.window, site=ask.site, language=ask.lang, limit=ask.limit)
    return TrendsAnswer(str(iso(found.query.since)), str(iso(found.query.until)), found.trends)


LIVE_PATHS: dict[str, Any] = {
    f"{API}/live/stream": {
        "get": {
            "summary": "The status every second, as events",
            "responses": {
                "200": {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
                "401": {"description": "A token is needed"},
                "403": {"description": "Not allowed"},
            },
        }
    }
}


class LiveAnswer(msgspec.Struct, frozen=True):
    status: StatusAnswer
    changes: list[ChangeFacts]  # the latest, the newest first


class _Recent:
    """The latest changes, read on from where the last poll ended."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._marker = ""
        self._latest: deque[ChangeFacts] = deque(maxlen=_LATEST)

    def poll(self) -> list[ChangeFacts]:
        try:
            feed = self._view.changes()
            if not self._marker:
                self._marker = feed.newest()
                found = feed.latest(_LATEST)[::-1]
            else:
                page = feed.read(self._marker, _AT_ONCE)
                self._marker = feed.newest() if page.more else page.next
                found = page.changes
            self._latest.extend(change_facts(self._view, found, diffs=False))
        except LevadaError:
            return []
        return list(reversed(self._latest))


class LiveLine:
    """Reads the status once a second for all listeners together; each gets the same bytes."""

    def __init__(self, look: Callable[[], LiveAnswer]) -> None:
        self._look = look
        self._said = b""
        self._news = asyncio.Event()
        self._watchers = 0

    async def run(self) -> None:
        while True:
            if self._watchers:
                told = await asyncio.to_thread(self._look)
                self._said = b"data: " + msgspec.json.encode(told) + b"\n\n"
                self._news.set()
                self._news = asyncio.Event()
            await asyncio.sleep(_SECOND)

    async def listen(self) -> AsyncGenerator[bytes, None]:
        if not self._watchers:
            self._said = b""  # it may be old: nobody listened since
        self._watchers += 1
        try:
            yield self._said or b": soon\n\n"
            while True:
                await self._news.wait()
                yield self._said
        finally:
            self._watchers -= 1


def live_line(view: View) -> LiveLine:
    recent = _Recent(view)
    return LiveLine(lambda: LiveAnswer(status_of(view, Nothing()), recent.poll()))


def live_routes(line: LiveLine, streams: EventStreams) -> list[Route]:
    async def stream(request: Request) -> Response:
        return streams.answer(request, line.listen())

    return [Route(f"{API}/live/stream", stream)]
