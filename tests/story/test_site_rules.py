"""The rules of a site as a user sets them, alone and beside a running crawl, on a real local site."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import levada
from tests.story.test_check import Site, crawling, here, run, site
from tests.story.test_live_settings import until, visits_of

__all__ = ["here", "site"]

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own


def closed_hours() -> str:
    """Hours that begin in about two hours, and last one."""
    hour = (time.gmtime().tm_hour + 2) % 24
    return f"daily {hour}-{(hour + 1) % 24 or 24}"


def test_a_lower_ceiling_and_an_exclude_hold_for_the_running_crawl(site: Site, here: Path) -> None:
    with crawling(here):
        assert visits_of(here, site) == [1, 1, 1]
        done = run(here, "sites", "set", site.name, "floor=1", "ceiling=2", "exclude=/two.html")
        assert done.returncode == 0, done.stderr
        assert "the running crawl takes it up within a second" in done.stdout
        until(lambda: min(visits_of(here, site)[::2]) > 2)
        with levada.open(here / "levada-data") as news:
            page = news.why(site.url("two")).page
            assert (page.version, page.reason) == (1, levada.Reason.RULE)
    listed = run(here, "sites", site.name, "--out-of-scope")
    assert f"{site.url('two')}  (exclude of {site.name})" in listed.stdout
    assert run(here, "forget", "--out-of-scope", "--yes").stdout.startswith("forgot 1 page")


def test_outside_its_hours_a_crawl_ends_at_once_and_says_why(site: Site, here: Path) -> None:
    assert run(here, "sites", "set", site.name, f"hours={closed_hours()}", "ceiling=1", "floor=1").returncode == 0
    before = visits_of(here, site)
    done = run(here, "crawl", "--once")
    assert done.returncode == 0, done.stderr
    assert re.search(
        rf"{site.name} is outside its hours, by the rule of {site.name}: it is asked again in", done.stderr
    )
    assert visits_of(here, site) == before
    assert "outside its hours: it is asked again from" in run(here, "sites").stdout
    run(here, "sites", "unset", site.name, "hours")
    assert run(here, "crawl", "--once").returncode == 0
    assert min(now - then for now, then in zip(visits_of(here, site), before, strict=True)) > 0


def test_parameters_that_do_not_count_are_left_out_of_links_and_of_what_is_added(site: Site, here: Path) -> None:
    site.write("one", 'linked <a href="/new.html?sid=1&page=2">here</a> <a href="/new.html?page=2&sid=2">and here</a>')
    site.write("new", "new")
    run(here, "sites", "set", site.name, "drop_query=s*d")
    added = run(here, "add", f"{site.url('two')}?sid=4")
    assert "0 addresses added, 1 known already" in added.stdout
    assert run(here, "check", site.url("one")).returncode == 0
    assert run(here, "crawl", "--once").returncode == 0
    with levada.open(here / "levada-data") as news:
        assert news.why(f"{site.url('new')}?page=2").page.version == 1
        with pytest.raises(levada.NotFound, match=r"known without these parameters, as \S+/new.html\?page=2"):
            news.why(f"{site.url('new')}?sid=1&page=2")
