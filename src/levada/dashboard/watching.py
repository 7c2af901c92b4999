"""How does it go? The crawl that runs, its stages, the balance of the count workers, and what is trending."""

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
from levada.assemble.counting import latest_change, measure_balance, open_trends
from levada.dashboard.changes import ChangeFacts, change_facts
from levada.dashboard.operations import API, Nothing, Operation
from levada.dashboard.reading import Limit
from levada.dashboard.streaming import Streams
from levada.dashboard.view import View
from levada.errors import LevadaError, NotFound
from levada.flow.balance import CountReport
from levada.flow.feed import Place
from levada.flow.live import LiveStatus, StageMoment
from levada.flow.staffing import StageView
from levada.flow.trending import Trend, trend_query, trending
from levada.pages.query import host_named
from levada.records import ChangeFilter, Standing
from levada.telling.duration import iso, length_of_time

__all__ = ["LIVE_PATHS", "WATCHING", "LiveLine", "live_line", "live_routes", "status_of"]

_SECOND = 1.0
_LATEST = 12  # changes that are shown
_AT_ONCE = 500
_BESIDE = ("key", "partial")
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


class StatusAnswer(msgspec.Struct, frozen=True):
    version: str
    now: str  # of the crawled world
    data: str  # the folder, as the server was given it
    crawling: bool
    standing: StandingFacts | None  # None while nothing is stored
    live: LiveStatus | None
    trouble: str | None = None  # why the collection cannot be read, and what to do


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


def status_of(view: View, _ask: Nothing) -> StatusAnswer:
    """How everything stands; of a folder that cannot be read, why."""
    live, data = view.folder.live(), str(view.folder.path)
    try:
        collection = view.collection()
        now = collection.clock.now()
        standing = collection.store.standing(now)
    except LevadaError as error:
        trouble = None if isinstance(error, NotFound) else str(error)
        return StatusAnswer(__version__, "", data, live is not None, None, live, trouble)
    return StatusAnswer(__version__, str(iso(now)), data, live is not None, _facts(standing), live)


def _facts(standing: Standing) -> StandingFacts:
    return StandingFacts(
        sites=standing.sites,
        known=standing.known,
        unvisited=standing.unvisited,
        due=standing.due,
        stored=standing.stored,
        versions=standing.versions,
        bytes=standing.bytes,
        next_due=iso(standing.next_due),
        states=standing.states,
        refused=standing.refused,
    )


def _stages(view: View, _ask: Nothing) -> StagesAnswer:
    live = view.folder.live()
    return StagesAnswer(True, live.stages, live.history) if live else StagesAnswer(False, (), {})


def _balance(view: View, ask: BalanceAsk) -> CountReport:
    collection = view.collection()
    if not ask.beside:
        with open_trends(view.folder) as (_, _, report):
            return report
    measure = partial(measure_balance, collection, _BESIDE, latest=_MEASURED)
    return view.remembered("balance", _BALANCE_SECONDS, measure)


def _trends(view: View, ask: TrendsAsk) -> TrendsAnswer:
    window = length_of_time(ask.window, "window")
    site = host_named(ask.site) if ask.site else None
    with open_trends(view.folder) as (collection, counts, _):
        step = collection.settings.trends.window
        query = trend_query(latest_change(collection), window, step, site, ask.lang.lower() or None)
        found = trending(counts, query, ask.limit)
    return TrendsAnswer(str(iso(query.since)), str(iso(query.until)), found)


WATCHING = [
    Operation(
        method="GET",
        path="/status",
        summary="How the collection and the crawl stand",
        handle=status_of,
        answer=StatusAnswer,
        slow=True,
    ),
    Operation(
        method="GET",
        path="/stages",
        summary="The stages of the crawl: queues, workers, and why so many",
        handle=_stages,
        answer=StagesAnswer,
        slow=True,
    ),
    Operation(
        method="GET",
        path="/balance",
        summary="How evenly the count workers were loaded",
        handle=_balance,
        asks=BalanceAsk,
        answer=CountReport,
        errors=(404, 409, 429),
        slow=True,
    ),
    Operation(
        method="GET",
        path="/trends",
        summary="Terms that pages gained lately, more often than before",
        handle=_trends,
        asks=TrendsAsk,
        answer=TrendsAnswer,
        errors=(404, 409),
        slow=True,
    ),
]

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
    """The latest changes, read on from where the last look ended."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._place: Place | None = None
        self._latest: deque[ChangeFacts] = deque(maxlen=_LATEST)

    def look(self) -> list[ChangeFacts]:
        try:
            if self._place is None:
                self._place = self._view.feed().newest()
                found = self._view.latest_changes(ChangeFilter(), _LATEST)
                self._latest.extend(change_facts(*each) for each in reversed(found))
            else:
                page = self._view.feed().read(self._place, _AT_ONCE)
                self._place = self._view.feed().newest() if page.more else page.after
                self._latest.extend(change_facts(*each) for each in page.changes)
        except LevadaError:
            return []
        return list(reversed(self._latest))


class LiveLine:
    """One look a second for all who watch, however many they are: everybody gets the same bytes."""

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
            self._said = b""  # to those who watched before, however long ago
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
    return LiveLine(lambda: LiveAnswer(status_of(view, Nothing()), recent.look()))


def live_routes(line: LiveLine, streams: Streams) -> list[Route]:
    async def stream(request: Request) -> Response:
        return streams.answer(request, line.listen())

    return [Route(f"{API}/live/stream", stream)]
