"""Settings that are changed beside a running crawl: pages that were planned in hours are visited at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import levada
from tests.story.test_check import PAGES, Site, crawling, here, run, site

__all__ = ["here", "site"]

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

PATIENCE = 60.0  # seconds until a wait is given up


def visits_of(here: Path, site: Site) -> list[int]:
    with levada.open(here / "levada-data") as news:
        return [news.why(site.url(name)).page.visits for name in PAGES]


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.1)


def changed(here: Path, *values: str) -> None:
    done = run(here, "settings", "set", *values)
    assert done.returncode == 0, done.stderr
    assert "the running crawl takes" in done.stdout


def test_a_lower_ceiling_brings_the_pages_of_a_running_crawl_forward(site: Site, here: Path) -> None:
    with crawling(here):
        assert visits_of(here, site) == [1, 1, 1]
        with levada.open(here / "levada-data") as news:
            for name in PAGES:
                assert (news.why(site.url(name)).page.next_visit or 0.0) > time.time() + 600.0
        changed(here, "revisit.floor=1", "revisit.first=1", "revisit.ceiling=2")
        until(lambda: min(visits_of(here, site)) > 1)


def test_a_guard_that_allows_more_makes_the_refused_pages_of_a_running_crawl_due(site: Site, here: Path) -> None:
    (here / "levada.toml").unlink()
    with levada.open(here / "levada-data") as news:
        news.change_settings({"guard.allow": []})
        for check in news.check_all(*map(site.url, PAGES)):
            assert check.reason is levada.Reason.ADDRESS
    with crawling(here):
        before = visits_of(here, site)
        changed(here, f"guard.allow={site.name}")
        until(lambda: min(now - then for now, then in zip(visits_of(here, site), before, strict=True)) > 0)
    with levada.open(here / "levada-data") as news:
        pages = [news.why(site.url(name)).page for name in PAGES]
    assert [(page.failures, page.reason) for page in pages] == [(0, None)] * len(PAGES)
