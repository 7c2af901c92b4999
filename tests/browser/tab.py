"""One page in a real browser, without a crawl around it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from levada.browser.messages import BrowserSetup, Rendered, ToRender
from levada.browser.tabs import Tabs
from tests.needs import missing, package
from tests.serve.browser_session import chromium

__all__ = ["render_all", "setup", "shown"]

HTML = (("content-type", "text/html; charset=utf-8"),)


def setup(*allow: str, **options: Any) -> BrowserSetup:
    package("playwright")
    return BrowserSetup(chromium() or missing("no Chromium is installed"), "levada/test", allow, **options)


def render_all(made: BrowserSetup, pages: Sequence[tuple[str, str]], **options: Any) -> list[Rendered]:
    """These pages (address, HTML), some of them at once in one browser."""

    async def run() -> list[Rendered]:
        tabs, turn = Tabs(made), asyncio.Semaphore(made.pages)

        async def render(url: str, html: str) -> Rendered:
            async with turn:
                return await tabs.render(ToRender(0, url, 200, HTML, html.encode(), **options))

        try:
            return await asyncio.gather(*(render(url, html) for url, html in pages))
        finally:
            await tabs.close()

    return asyncio.run(run())


def shown(rendered: Rendered) -> str:
    assert rendered.reason is None, rendered.detail
    return rendered.html.decode()
