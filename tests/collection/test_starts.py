"""The start URLs of a crawl."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from levada.collection import crawling
from levada.collection.crawling import open_crawl
from levada.collection.starts import check_starts, seeds
from levada.core.clock import SystemClock
from levada.core.errors import Refused
from levada.core.folder import DataFolder
from levada.core.settings import DAY, parse_settings
from tests.crawl.simulated_crawl import page
from tests.scripted_web import MemoryFetcher

SETTINGS = parse_settings("[politeness]\ndelay = 0\n[crawl]\nsitemaps = false", "a test")


class YearAhead(SystemClock):
    def now(self) -> float:
        return super().now() + 365 * DAY


def fetched(data: Path) -> int:
    """By a crawl that goes once over a site of two pages."""
    web = MemoryFetcher()
    web.script("http://a.test/", page("home", "/1"))
    web.script("http://a.test/1", page("leaf"))

    async def crawl() -> int:
        async with open_crawl(DataFolder(data), SETTINGS, seeds(["http://a.test/"]), once=True, fetcher=web) as work:
            return (await work.run()).fetched

    return asyncio.run(crawl())


def test_after_a_crawl_with_a_clock_that_was_ahead_everything_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as wrong:
        wrong.setattr(crawling, "make_clock", lambda settings: YearAhead())
        assert fetched(tmp_path) == 2
        assert fetched(tmp_path) == 0
    assert not caplog.messages
    assert fetched(tmp_path) == 2
    assert "on 1 site, is due now: was the clock wrong?" in caplog.text
    assert fetched(tmp_path) == 0


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:8765/", "guard.allow=127.0.0.1:8765"),
        ("http://localhost:3000/", "guard.allow=127.0.0.1:3000"),
        ("http://[::1]/", "guard.allow=[::1]:80"),
    ],
)
def test_a_refused_server_of_ones_own_is_told_with_the_setting_that_allows_it(
    tmp_path: Path, url: str, allowed: str
) -> None:
    async def crawl() -> None:
        async with open_crawl(DataFolder(tmp_path), SETTINGS, seeds([url]), once=True) as work:
            await work.run()

    asyncio.run(crawl())
    with pytest.raises(Refused, match=re.escape(allowed)):
        check_starts(tmp_path, seeds([url]))
