"""`RenderingFetcher`: fetches a page, and has a browser render it where its rule and the page want that.

The page itself comes from the fetcher inside, with all its rules and limits; only an HTML answer of status 200 to 299
goes to the browser. What comes back has no validators: an unchanged shell says nothing about what its scripts load.

Without rendering in its rule, a request passes by at the cost of one comparison, and nothing of the browser is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from levada.browser.messages import BrowserSetup, Rendered, ToRender
from levada.core.errors import UsageError
from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.pages.urls import site_of

if TYPE_CHECKING:
    from levada.browser.memory import RenderMemory
    from levada.browser.slots import RenderSlots
    from levada.core.site_rules.routes import ProxyAddress

log = logging.getLogger(__name__)

ProxyFor = Callable[[Request], Awaitable["ProxyAddress | None"]]
RENDERED = "x-levada-rendered"
"""A header of our own in a stored answer that a browser has rendered."""

_OF_SHELL = frozenset({"etag", "last-modified", "content-type", "content-length", "content-encoding", RENDERED})
_SAVE = 30.0  # seconds between two writings of the memory


class RenderingFetcher:
    """A `levada.core.protocols.Fetcher` around another one; several may share one `Rendering`."""

    def __init__(self, fetcher: Fetcher, rendering: Rendering) -> None:
        self.inner = fetcher
        self._rendering = rendering

    def fetch(self, request: Request) -> Coroutine[Any, Any, Response]:
        if request.render is None:
            return self.inner.fetch(request)
        return self._fetch_rendered(request)

    async def close(self) -> None:
        await self._rendering.close()
        await self.inner.close()

    async def _fetch_rendered(self, request: Request) -> Response:
        response = await self.inner.fetch(request)
        if response.reason is not None or not 200 <= response.status < 300 or not _is_html(response):
            return response
        return await self._rendering.rendered(request, response)


class Rendering:
    """Renders pages by `setup`, once it is first asked to.

    `memory` is the file that remembers what paid off. `slots` bound how many pages are rendered at the same time; they
    are those of `browser.pages` if they are not given. `proxy_for` finds the proxy for what a
    page loads; an error says that none works.
    """

    def __init__(
        self,
        setup: BrowserSetup,
        memory: Path | None = None,
        *,
        slots: RenderSlots | None = None,
        proxy_for: ProxyFor | None = None,
    ) -> None:
        self._setup = setup
        self._memory_file = memory
        self._slots = slots
        self._proxy_for = proxy_for
        self._renderer: _Renderer | None = None

    async def rendered(self, request: Request, response: Response) -> Response:
        """What the browser makes of this answer; the answer itself, if it does not need one."""
        if self._renderer is None:
            from levada.browser.memory import RenderMemory
            from levada.browser.slots import RenderSlots

            slots = self._slots or RenderSlots(self._setup.pages)
            self._renderer = _Renderer(self._setup, RenderMemory(self._memory_file), slots, self._proxy_for)
        return await self._renderer.render(request, response)

    async def close(self) -> None:
        if self._renderer is not None:
            await self._renderer.close()


def _is_html(response: Response) -> bool:
    kind = (response.header("content-type") or "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        return True
    return not kind and response.body[:1024].lstrip()[:1] == b"<"


class _Renderer:
    """Decides whether a page is rendered, and has the browser's child do it."""

    def __init__(
        self, setup: BrowserSetup, memory: RenderMemory, slots: RenderSlots, proxy_for: ProxyFor | None
    ) -> None:
        from levada.browser.process import BrowserProcess

        self._memory = memory
        self._process = BrowserProcess(setup)
        self._slots = slots
        self._proxy_for = proxy_for
        self._resting: asyncio.Task[None] | None = None
        slots.on_empty = self._rest
        self._told = ""
        self._saved_at = time.monotonic()

    async def close(self) -> None:
        self._memory.save()
        await self._process.close()
        if self._resting is not None:
            await self._resting

    def _rest(self) -> None:
        self._resting = asyncio.create_task(self._process.rest())

    async def render(self, request: Request, response: Response) -> Response:
        from levada.browser.shell import shell_of, words_of

        rule, site = request.render, site_of(request.url)
        assert rule is not None
        if not rule.always and not self._memory.wants(site, shell_of(response.body)):
            return response
        try:
            proxy = None if self._proxy_for is None else await self._proxy_for(request)
        except UsageError as error:  # nothing goes past the proxy that the user wants
            return self._answer(response, Rendered(0, reason=Reason.PROXY, detail=str(error)))
        began = time.monotonic()
        async with self._slots.turn():
            rendered = await self._process.render(_to_render(request, response, proxy))
        answer = self._answer(response, rendered)
        if answer.reason is None and rendered.html:
            self._memory.note(site, words_of(response.body), words_of(answer.body))
            if time.monotonic() - self._saved_at > _SAVE:
                self._saved_at = time.monotonic()
                self._memory.save()
        return replace(answer, seconds=response.seconds + time.monotonic() - began)

    def _answer(self, response: Response, rendered: Rendered) -> Response:
        wire = response.wire_bytes + rendered.loaded
        if rendered.reason is not None:
            if rendered.reason is Reason.BROWSER_MISSING and self._told != rendered.detail:
                self._told = rendered.detail
                log.warning("pages that need a browser are not read: %s", rendered.detail)
            return replace(
                response, body=b"", headers=(), reason=rendered.reason, detail=rendered.detail, wire_bytes=wire
            )
        if rendered.retry_after is not None:
            waits = (("retry-after", rendered.retry_after),) if rendered.retry_after else ()
            return replace(response, status=429, body=b"", headers=waits, wire_bytes=wire)
        if rendered.location:  # a redirect like any other: its target has its own turn, robots.txt and guard
            return replace(response, status=302, body=b"", headers=(("location", rendered.location),), wire_bytes=wire)
        headers = tuple(each for each in response.headers if each[0] not in _OF_SHELL)
        return replace(
            response,
            headers=(*headers, ("content-type", "text/html; charset=utf-8"), (RENDERED, "chromium")),
            body=rendered.html,
            screenshot=rendered.screenshot,
            wire_bytes=wire,
        )


def _to_render(request: Request, response: Response, proxy: ProxyAddress | None) -> ToRender:
    rule = request.render
    assert rule is not None
    own = {name.lower(): value for name, value in request.headers}
    return ToRender(
        0,
        request.url,
        response.status,
        response.headers,
        response.body,
        agent=own.get("user-agent", ""),
        accept_language=own.get("accept-language", ""),
        wait_for=rule.wait_for,
        screenshot=rule.screenshot,
        media=rule.media,
        proxy=proxy,
        cookies=own.get("cookie", ""),
    )
