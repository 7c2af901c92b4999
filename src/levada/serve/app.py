"""The whole server as one ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from levada import __version__
from levada.serve.access import ASKED_BY, Access, AccessRefusal
from levada.serve.changes import CHANGE_PATHS, CHANGES, change_routes
from levada.serve.commands import CONTROLLING, HOOKING
from levada.serve.embed.routes import EMBEDDING, embed_routes
from levada.serve.facts import LABORATORY, LOADS, SHARDS, SITES
from levada.serve.forgetting import FORGETTING
from levada.serve.gateway import CUT, Gateway
from levada.serve.login import Login
from levada.serve.metrics import metric_routes
from levada.serve.notifications import NOTIFYING
from levada.serve.operations import API, Nothing, Operations, document, routes_of
from levada.serve.pages import READING
from levada.serve.people import PEOPLE
from levada.serve.responses import error_answer, json_answer, refusal_answer, tagged_answer
from levada.serve.settings import RULES, SETTINGS
from levada.serve.status import LIVE_PATHS, WATCHING, live_line, live_routes, status_of
from levada.serve.streaming import EventStreams
from levada.serve.trials import TRYING
from levada.serve.view import View

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


_START, _SEVERAL = "index.html", "collections.html"


def page_routes(start: str = _START) -> list[Route]:
    """The pages of the dashboard; `start` is the one at the root."""
    held = {each.name: each.read_bytes() for each in (files(__package__) / "static").iterdir() if each.is_file()}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", start)
        body = held.get(name)
        if body is None:
            return error_answer(404, "no-such-path", "there is nothing at this path")
        return tagged_answer(request, body, _KINDS.get(name.rpartition(".")[2], "text/plain"), "no-cache")

    return [Route("/", page), Route("/static/{name}", page)]


log = logging.getLogger(__name__)
Beside = Callable[[], Coroutine[None, None, None]]
HEALTH, SERVED = Operations(), Operations()
_CUT_SHORT = AccessRefusal(400, "cut-short", "the request ended before its body did")


class HealthAnswer(msgspec.Struct, frozen=True):
    status: str  # ok, or partial: some shards do not answer
    version: str
    away: int = 0  # shards that do not answer


@HEALTH.add("GET", "/health", "Is the server there? Needs no token", quick=True)
def _health(view: View, _ask: Nothing) -> HealthAnswer:
    away = sum(len(each.away()) for each in view.served.values())
    return HealthAnswer("partial" if away else "ok", __version__, away)


class CollectionFacts(msgspec.Struct, frozen=True):
    name: str
    path: str  # of its dashboard; the API is below it
    pages: int  # that are stored
    crawling: bool
    trouble: str | None  # why it, or a part of it, cannot be read, and what to do


class CollectionsAnswer(msgspec.Struct, frozen=True):
    collections: list[CollectionFacts]


@SERVED.add("GET", "/collections", "The collections of this server that you may use")
def _collections(view: View, _ask: Nothing) -> CollectionsAnswer:
    asker = ASKED_BY.get()
    return CollectionsAnswer([_facts(path, each) for path, each in view.served.items() if asker.sees(each.name)])


def _facts(path: str, view: View) -> CollectionFacts:
    status = status_of(view, Nothing())
    pages = status.stats.stored if status.stats else 0
    trouble = status.trouble or "; ".join(each.message for each in status.away) or None
    return CollectionFacts(view.name, path, pages, status.crawling, trouble)


_SHARED = [*HEALTH, *SERVED, *PEOPLE]
OPERATIONS = [
    *READING,
    *EMBEDDING,
    *SITES,
    *WATCHING,
    *SHARDS,
    *LOADS,
    *CHANGES,
    *CONTROLLING,
    *TRYING,
    *FORGETTING,
    *RULES,
    *SETTINGS,
    *HOOKING,
    *NOTIFYING,
    *LABORATORY,
    *_SHARED,
]


def openapi() -> dict[str, Any]:
    return document(OPERATIONS, CHANGE_PATHS | LIVE_PATHS)


def make_app(
    view: View,
    access: Access,
    *beside: Beside,
    streams: EventStreams | None = None,
    login: Login | None = None,
) -> ASGIApp:
    """The server of one collection; `beside` runs as long as it does, and `streams` can be ended before it."""
    login = login or Login(access)
    routes, line = _collection_routes(view, streams or EventStreams())
    return _served([*routes, *login.routes()], access, login, [view], [line, *beside])


def make_shared_app(
    views: Mapping[str, View],
    access: Access,
    *beside: Beside,
    streams: EventStreams | None = None,
    login: Login | None = None,
) -> ASGIApp:
    """The server of several collections, each below `/c/NAME/`, and a page that lists them."""
    login, streams = login or Login(access), streams or EventStreams()
    mounts, lines = [], []
    for name, view in views.items():
        view.served = {f"/c/{each}/": other for each, other in views.items()}
        routes, line = _collection_routes(view, streams)
        mounts.append(Mount(f"/c/{name}", routes=routes))
        lines.append(line)
    shared = routes_of(_SHARED, next(iter(views.values())))
    routes = [*mounts, *shared, *login.routes(), *page_routes(_SEVERAL)]
    return _served(routes, access, login, list(views.values()), [*lines, *beside])


def _collection_routes(view: View, streams: EventStreams) -> tuple[list[BaseRoute], Beside]:
    """What one collection answers, and what runs beside it."""
    described = openapi()
    line = live_line(view)

    async def describe(request: Request) -> Response:
        return json_answer(request, described)

    routes: list[BaseRoute] = [
        *routes_of(OPERATIONS, view),
        *change_routes(view, streams),
        *live_routes(line, streams),
        *metric_routes(view),
        Route(f"{API}/openapi.json", describe),
        *embed_routes(view),
        *page_routes(),
    ]
    return routes, line.run


def _served(
    routes: Sequence[BaseRoute], access: Access, login: Login, views: Sequence[View], beside: Sequence[Beside]
) -> ASGIApp:
    inner = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _refused, ClientDisconnect: _cut_off, Exception: _broken},
        lifespan=_living(views, beside),
    )
    return Gateway(inner, access, login)


def _living(views: Sequence[View], beside: Sequence[Beside]) -> Callable[[Starlette], Any]:
    @asynccontextmanager
    async def living(_app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each()) for each in beside]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for view in views:
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
