"""The whole server as one ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from levada import __version__
from levada.serve.access import Access, AccessRefusal, login_routes
from levada.serve.changes import CHANGE_PATHS, CHANGES, change_routes
from levada.serve.commands import CONTROLLING, HOOKING
from levada.serve.facts import LABORATORY, LOADS, SHARDS, SITES
from levada.serve.forgetting import FORGETTING
from levada.serve.gateway import CUT, Gateway
from levada.serve.metrics import metric_routes
from levada.serve.notifications import NOTIFYING
from levada.serve.operations import API, Nothing, Operations, document, routes_of
from levada.serve.pages import READING
from levada.serve.responses import error_answer, json_answer, refusal_answer, tagged_answer
from levada.serve.settings import SETTINGS
from levada.serve.status import LIVE_PATHS, WATCHING, live_line, live_routes
from levada.serve.streaming import EventStreams
from levada.serve.view import View

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def page_routes() -> list[Route]:
    held = {each.name: each.read_bytes() for each in (files(__package__) / "static").iterdir() if each.is_file()}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        body = held.get(name)
        if body is None:
            return error_answer(404, "no-such-path", "there is nothing at this path")
        return tagged_answer(request, body, _KINDS.get(name.rpartition(".")[2], "text/plain"), "no-cache")

    return [Route("/", page), Route("/static/{name}", page)]


log = logging.getLogger(__name__)
Beside = Callable[[], Coroutine[None, None, None]]
HEALTH = Operations()
_CUT_SHORT = AccessRefusal(400, "cut-short", "the request ended before its body did")


class HealthAnswer(msgspec.Struct, frozen=True):
    status: str
    version: str


@HEALTH.add("GET", "/health", "Is the server there? Needs no token", quick=True)
def _health(_view: View, _ask: Nothing) -> HealthAnswer:
    return HealthAnswer("ok", __version__)


OPERATIONS = [
    *READING,
    *SITES,
    *WATCHING,
    *SHARDS,
    *LOADS,
    *CHANGES,
    *CONTROLLING,
    *FORGETTING,
    *SETTINGS,
    *HOOKING,
    *NOTIFYING,
    *LABORATORY,
    *HEALTH,
]


def openapi() -> dict[str, Any]:
    return document(OPERATIONS, CHANGE_PATHS | LIVE_PATHS)


def make_app(view: View, access: Access, *beside: Beside, streams: EventStreams | None = None) -> ASGIApp:
    """The application; `beside` runs as long as it does, and `streams` can be ended before it."""
    streams = streams or EventStreams()
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
    return Gateway(inner, access)


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
