"""The whole server as one ASGI application: gate, API, feed, page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from levada import __version__
from levada.dashboard.access import Access, Refusal
from levada.dashboard.answers import error_answer, json_answer, refusal_answer
from levada.dashboard.changes import CHANGE_PATHS, CHANGES, change_routes
from levada.dashboard.controlling import CONTROLLING
from levada.dashboard.gate import CUT, Gate
from levada.dashboard.hooking import HOOKING
from levada.dashboard.laboratory import LABORATORY
from levada.dashboard.load_facts import LOADS
from levada.dashboard.logging_in import login_routes
from levada.dashboard.metrics import metric_routes
from levada.dashboard.openapi import document
from levada.dashboard.operations import API, Nothing, Operation, routes_of
from levada.dashboard.page import page_routes
from levada.dashboard.reading import READING
from levada.dashboard.shard_facts import SHARDS
from levada.dashboard.site_facts import SITES
from levada.dashboard.streaming import Streams
from levada.dashboard.view import View
from levada.dashboard.watching import LIVE_PATHS, WATCHING, live_line, live_routes

__all__ = ["OPERATIONS", "make_app", "openapi"]

log = logging.getLogger(__name__)

Beside = Callable[[], Coroutine[None, None, None]]
_CUT_SHORT = Refusal(400, "cut-short", "the request ended before its body did")


class HealthAnswer(msgspec.Struct, frozen=True):
    status: str
    version: str


def _health(_view: View, _ask: Nothing) -> HealthAnswer:
    return HealthAnswer("ok", __version__)


HEALTH = Operation(
    method="GET", path="/health", summary="Is the server there? Needs no token", handle=_health, answer=HealthAnswer
)
OPERATIONS = [*READING, *SITES, *WATCHING, *SHARDS, *LOADS, *CHANGES, *CONTROLLING, *HOOKING, *LABORATORY, HEALTH]


def openapi() -> dict[str, Any]:
    return document(OPERATIONS, CHANGE_PATHS | LIVE_PATHS)


def make_app(view: View, access: Access, *beside: Beside, streams: Streams | None = None) -> ASGIApp:
    """`beside` runs as long as the server does; `streams` are there for whoever ends them before it."""
    streams = streams or Streams()
    described = openapi()
    line = live_line(view)

    async def describe(request: Request) -> Response:
        return json_answer(request, described)

    routes = [
        *routes_of(OPERATIONS, view),
        *change_routes(view, streams),
        *live_routes(line, streams),
        *metric_routes(view),
        Route(f"{API}/openapi.json", describe),
        *login_routes(access),
        *page_routes(),
    ]
    inner = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refused, ClientDisconnect: _cut_off, Exception: _broken},
        lifespan=_living(view, line.run, *beside),
    )
    return Gate(inner, access)


def _living(view: View, *beside: Beside) -> Callable[[Starlette], Any]:
    @asynccontextmanager
    async def living(_app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each()) for each in beside]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            view.close()

    return living


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: ("no-such-path", "there is nothing at this path"), 405: ("no-such-method", "not by this method")}
    code, message = words.get(error.status_code, ("refused", error.detail))
    answer = error_answer(error.status_code, code, message)
    answer.headers.update(error.headers or {})
    return answer


async def _cut_off(request: Request, _error: Exception) -> Response:
    return refusal_answer(request.scope.get(CUT, _CUT_SHORT))


async def _broken(request: Request, error: Exception) -> Response:
    log.error("answering %s %s", request.method, request.url.path, exc_info=error)
    return error_answer(500, "internal", "something went wrong here; the log of the server says what")
