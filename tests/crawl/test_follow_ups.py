"""What a committed visit causes for other pages is done before the crawl ends, whenever it is stopped."""

from __future__ import annotations

import asyncio

import pytest

from levada.core.records import PageState, Request, Response
from levada.crawl.engine import Crawl
from tests.crawl.simulated_crawl import World, page, status

HOME = "http://a.test/"
MOST = 30  # passes of the event loop from the answer to the end of what it causes, and some more


class Stopping(World):
    """A crawl that is stopped so many passes of the event loop after the answer for a page."""

    crawl_under_way: Crawl

    def stop_after(self, url: str, passes: int) -> None:
        fetch = self.web.fetch

        async def fetched(request: Request) -> Response:
            response = await fetch(request)
            if request.url == url:
                self._stopping = asyncio.create_task(self._stop(passes))
            return response

        self.web.fetch = fetched  # type: ignore[method-assign]

    async def _stop(self, passes: int) -> None:
        for _ in range(passes):
            await asyncio.sleep(0)
        self.crawl_under_way.stop()

    def make_crawl(self, *, once: bool = True, max_pages: int | None = None) -> Crawl:
        self.crawl_under_way = super().make_crawl(once=once, max_pages=max_pages)
        return self.crawl_under_way


@pytest.mark.parametrize("passes", range(MOST))
def test_a_page_that_waits_for_a_missing_one_is_due_again_whenever_the_crawl_is_stopped(passes: int) -> None:
    canonical = '<link rel="canonical" href="/missing">'
    web = {HOME: page("home", "/lost"), HOME + "lost": page("lost", head=canonical), HOME + "missing": status(404)}
    world = Stopping(web, "[store]\ngather_seconds = 0\n[crawl]\nsitemaps = false\n")
    world.stop_after(HOME + "missing", passes)
    world.crawl(HOME)
    missing, lost = world.page(HOME + "missing"), world.page(HOME + "lost")
    assert lost.leads_to == HOME + "missing" or lost.version
    if missing.state is PageState.GONE:
        assert lost.version or (lost.next_visit or 0.0) <= world.clock.now()
