"""Duplicates: what is a copy of a stored page, or continues a near-duplicate run, also after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import StoreError
from levada.core.protocols import Frontier
from levada.core.reasons import Reason
from levada.core.records import PageState, PageText, VisitResult
from levada.store.base import StoreLimits
from levada.store.memory import MemoryStore
from levada.store.sqlite import SqliteStore
from tests.crawl.simulated_crawl import DAY, HOUR, START, World, page, status, text
from tests.scripted_web import Answer

HOME = "http://a.test/"
ONE_AT_A_TIME = "[fetch]\nslots = 1\n[store]\nbatch = {batch}\n[crawl]\nnear_duplicate_run = 4"
Web = dict[str, Answer | Sequence[Answer]]


def home(*names: str) -> Answer:
    return page("home", *(f"/{name}" for name in names))


def near(n: int) -> Answer:
    return page(f"day {n}", words=f"{text('calendar', 100)} day{n}")


NOINDEX = '<meta name="robots" content="noindex">'


def facts(world: World, url: str) -> tuple[PageState, Reason | None, str | None]:
    record = world.page(url)
    return record.state, record.reason, record.leads_to


def test_of_pages_that_are_read_together_one_is_stored_and_the_others_lead_there() -> None:
    names = [f"copy-{'abcdefgh'[n]}" for n in range(8)]
    world = World({HOME: home(*names)} | {HOME + name: page(name, words=text("same")) for name in names})
    world.crawl(HOME)
    (original,) = world.stored() - {HOME}
    for name in names:
        if HOME + name != original:
            assert facts(world, HOME + name) == (PageState.ELSEWHERE, Reason.DUPLICATE, original)


def test_a_copy_that_is_found_after_a_restart_leads_to_the_stored_page() -> None:
    world = World({HOME: home("first"), HOME + "first": page("x", words=text("same"))})
    world.crawl(HOME)
    world.web.script(HOME, home("first", "second"))
    world.web.script(HOME + "second", page("another title", words=text("same")))
    world.web.script(HOME + "first", status(304))
    world.clock.advance(DAY)
    world.crawl(HOME)
    assert facts(world, HOME + "second") == (PageState.ELSEWHERE, Reason.DUPLICATE, HOME + "first")


def test_a_copy_is_stored_once_its_original_is_gone_or_changed() -> None:
    for now in (status(404), page("x", words=text("another")), page("x", words=text("same"), head=NOINDEX)):
        world = World({HOME: home("a", "b"), HOME + "a": page("x", words=text("same"))}, "[fetch]\nslots = 1")
        world.web.script(HOME + "b", page("y", words=text("same")))
        world.crawl(HOME)
        assert facts(world, HOME + "b")[0] is PageState.ELSEWHERE
        world.web.script(HOME + "a", now)
        for _ in range(3):
            world.clock.advance(30 * DAY)
            world.crawl()
        assert facts(world, HOME + "b") == (PageState.LIVE, None, None)


def test_pages_of_other_sites_and_short_pages_are_no_copies() -> None:
    other = "http://b.test/"
    web: Web = {site: page("same", words=text("same")) for site in (HOME, other)}
    web |= {HOME + "a": page("a", words="not found"), HOME + "b": page("b", words="not found")}
    world = World(web)
    world.crawl(*web)
    assert world.stored() == set(web)


def test_large_pages_of_which_a_few_words_are_the_same_are_no_copies() -> None:
    large = f"<style>{'.x{color:red}' * 1_000}</style>"
    web: Web = {HOME + name: page(name, words=text("same"), head=large) for name in "ab"}
    web[HOME] = home("a", "b")
    world = World(web)
    world.crawl(HOME)
    assert world.stored() == set(web)


def test_a_page_that_nobody_can_find_has_no_copies() -> None:
    web: Web = {HOME: home("a", "b", "c"), HOME + "a": page("x", words=text("same"), head=NOINDEX)}
    web |= {HOME + name: page(name, words=text("same")) for name in "bc"}
    world = World(web, "[fetch]\nslots = 1")
    world.crawl(HOME)
    assert [facts(world, HOME + name)[2] for name in "abc"] == [None, None, HOME + "b"]


def test_a_page_that_is_refused_as_a_near_copy_has_no_copies_and_its_links_wait() -> None:
    last = page("day 9", "/linked", words=text("calendar", 100) + " day9")
    web: Web = {HOME: home(*(f"day/{n}" for n in range(4)), "copy")}
    web |= {f"{HOME}day/{n}": near(n) for n in range(3)} | {f"{HOME}day/3": last, f"{HOME}copy": last}
    world = World(web, ONE_AT_A_TIME.format(batch=50))
    world.crawl(HOME)
    assert facts(world, HOME + "day/3") == (PageState.REFUSED, Reason.NEAR_DUPLICATES, None)
    assert facts(world, HOME + "copy") == (PageState.LIVE, None, None)


@pytest.mark.parametrize("runs", [1, 2, 8])
def test_a_near_duplicate_run_is_counted_on_after_restarts(runs: int) -> None:
    web: Web = {f"{HOME}day/{n}": near(n) for n in range(8)}
    web[HOME] = home(*(f"day/{n}" for n in range(8)))
    world = World(web, "[crawl]\nnear_duplicate_run = 5\n[fetch]\nslots = 1")
    world.crawl(HOME, max_pages=1)
    for _ in range(runs):
        world.crawl(max_pages=8 // runs)
    world.crawl()
    reasons = [facts(world, f"{HOME}day/{n}")[1] for n in range(8)]
    assert reasons == [None] * 4 + [Reason.NEAR_DUPLICATES] * 4


# The law: a crawl that is killed and started again ends as one that never stopped.


class DyingStore(MemoryStore):
    """A store whose commits fail at some calls, before or after they are made."""

    def __init__(self, deaths: set[int], *, after: bool) -> None:
        super().__init__(limits=StoreLimits(max_pages_per_site=1000))
        self.deaths = deaths
        self._after = after
        self._calls = 0

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        self._calls += 1
        if self._calls not in self.deaths:
            return super().commit(visits)
        if self._after:
            super().commit(visits)
        raise StoreError("killed")


@st.composite
def webs(draw: st.DrawFn) -> Web:
    """Some pages with texts from a few, nearly the same ones, and texts of their own, under a few patterns."""
    names = draw(st.lists(st.sampled_from(["day/{}", "list/{}", "x/{}"]), min_size=1, max_size=14))
    urls = [name.format(n) for n, name in enumerate(names)]
    web: Web = {HOME: home(*urls)}
    for n, url in enumerate(urls):
        kind = draw(st.sampled_from("sssnnnogh"))
        words = text(f"same{draw(st.integers(0, 1))}") if kind in "sh" else text(f"own{n}")
        head = NOINDEX if kind == "h" else ""
        web[HOME + url] = status(404) if kind == "g" else near(n) if kind == "n" else page(url, words=words, head=head)
    return web


def crawled(web: Web, batch: int, store: DyingStore) -> dict[str, tuple[object, ...]]:
    world = World(web, ONE_AT_A_TIME.format(batch=batch), store=store)
    for _ in range(len(store.deaths) + 1):
        try:
            world.crawl(HOME)
        except StoreError:
            store.forget_leases()
            continue
        break
    return {url: (*facts(world, url), world.page(url).version) for url in web}


@given(webs(), st.sampled_from([1, 3, 50]), st.sets(st.integers(1, 12), max_size=4), st.booleans())
def test_a_crawl_that_is_killed_anywhere_ends_as_one_that_never_stopped(
    web: Web, batch: int, deaths: set[int], after: bool
) -> None:
    assert crawled(web, batch, DyingStore(deaths, after=after)) == crawled(web, batch, DyingStore(set(), after=after))


def test_of_two_workers_that_store_one_text_at_the_same_moment_one_is_dropped_and_visits_again() -> None:
    class Blind(MemoryStore):
        """Like a worker that looked just before another one committed."""

        looks = 0

        def originals(self, texts: Sequence[PageText]) -> list[str | None]:
            self.looks += 1
            return [None] * len(texts) if self.looks == 3 else super().originals(texts)

    web: Web = {HOME + name: page(name, words=text("same")) for name in "ab"}
    web[HOME] = home("a", "b")
    world = World(web, ONE_AT_A_TIME.format(batch=1), store=Blind())
    world.crawl(HOME)
    world.clock.advance(HOUR)
    world.crawl()
    assert world.stored() == {HOME, HOME + "a"}
    assert facts(world, HOME + "b") == (PageState.ELSEWHERE, Reason.DUPLICATE, HOME + "a")


# The story: every hour for a week, from cron.


def the_weeks_web(hour: int) -> Iterator[tuple[str, Answer]]:
    """A blog with an article every six hours, each under three addresses, and a front page that changes hourly."""
    articles = range(1 + hour // 6)
    ways = ("article-{}", "print-{}", "archive/{}")
    listed = [way.format(n) for n in list(articles)[-8:] for way in ways]
    yield HOME, page(f"home {hour}", *(f"/{name}" for name in listed), words=text(f"hour{hour}"))
    for n in articles:
        for way in ways:
            yield HOME + way.format(n), page(f"{way} {n}", words=text(f"article{n}"))


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_run_from_cron_every_hour_for_a_week_nothing_is_stored_or_told_twice(engine: str, tmp_path: Path) -> None:
    kept = MemoryStore()
    world = World({}, "[revisit]\nfirst = 7200.0\nfloor = 3600.0", store=kept)
    told: list[str] = []
    for hour in range(168):
        store = kept if engine == "memory" else SqliteStore(tmp_path / "pages.db", limits=StoreLimits())
        world.store = store  # type: ignore[assignment]
        world.clock.advance(max(0.0, START + hour * HOUR - world.clock.now()))
        for url, answer in the_weeks_web(hour):
            world.web.script(url, answer)
        world.crawl(HOME)
        events = store.change_log(0, 10_000)
        told = [event.url for event in events if event.what == "new"]
        if hour == 167:
            stored = list(store.scan())
            copies = [url for url, _ in the_weeks_web(hour) if facts(world, url)[0] is PageState.ELSEWHERE]
        store.close()
    assert len(told) == len(set(told)) == len(stored) == 1 + 28
    assert len({document.text for document in stored}) == len(stored)
    assert len(copies) == 2 * 28


def test_the_step_asks_nothing_about_pages_that_are_known() -> None:
    class Silent(MemoryStore):
        asked = 0

        def originals(self, texts: Sequence[PageText]) -> list[str | None]:
            self.asked += 1
            return super().originals(texts)

    store: Frontier = Silent()
    world = World({HOME: page("home", words=text("one"))}, store=store)  # type: ignore[arg-type]
    world.crawl(HOME)
    before = store.asked  # type: ignore[attr-defined]
    world.web.script(HOME, page("home", words=text("two")))
    world.clock.advance(30 * DAY)
    world.crawl()
    assert world.page(HOME).version == 2
    assert store.asked == before  # type: ignore[attr-defined]


# Traps: URL patterns whose pages bring nothing new.


def month(n: int, *links: str) -> Answer:
    return page(f"month {n}", *links, words=f"{text('calendar', 100)} nothing in month {n}")


def wide_calendar(months: int, days: int) -> Web:
    """Every month links to the next and to all of its days."""
    web: Web = {HOME: home("month/0")}
    for n in range(months):
        names = [f"/day/{n}/{day}" for day in range(days)]
        web[f"{HOME}month/{n}"] = month(n, f"/month/{n + 1}", *names)
        web |= {f"{HOME}day/{n}/{day}": month(1_000 + 100 * n + day, f"/day/{n + 1}/{day}") for day in range(days)}
    return web


def test_of_a_calendar_without_end_few_pages_are_fetched_however_many_links_its_pages_have() -> None:
    world = World(wide_calendar(200, 100), "[fetch]\nslots = 4\n[crawl]\nnear_duplicate_run = 4\nmax_depth = 1000")
    world.crawl(HOME)
    assert len(world.asked(f"{HOME}month/")) < 30
    days = world.asked(f"{HOME}day/")
    assert len(days) < 120
    assert {world.page(f"{HOME}day/2/{n}").reason for n in range(100)} <= {Reason.TRAP, Reason.NEAR_DUPLICATES}
    known = sum(site.pages for site in world.store.sites())
    assert known > 3 * len(days), "many were found and not fetched"


def test_pages_that_were_taken_for_those_of_a_trap_are_visited_once_one_of_them_brings_something() -> None:
    same: Web = {f"{HOME}item/{n}": near(n) for n in range(60)}
    other: Web = {
        f"{HOME}item/{n}": page(f"item {n}", words=text(f"item {'abcdefghij'[n % 10]} {n}")) for n in range(60, 200)
    }
    web: Web = {HOME: home(*(f"item/{n}" for n in range(200)))} | same | other
    world = World(web, "[fetch]\nslots = 1\n[store]\nbatch = 1\n[crawl]\nnear_duplicate_run = 4")
    world.crawl(HOME, max_pages=1 + 60)
    world.crawl()
    assert other.keys() <= world.stored()
    assert len(world.asked(f"{HOME}item/")) < 200 + 10
    assert world.page(f"{HOME}item/10").reason is Reason.NEAR_DUPLICATES


def test_pages_that_differ_in_a_few_words_are_all_stored() -> None:
    names = [f"{first}{second}" for first in "abcde" for second in "klmnop"]
    web: Web = {
        f"{HOME}function/{n}": page(f"{n}", words=f"{text('a struct template', 100)} {name}_of")
        for n, name in enumerate(names)
    }
    world = World({HOME: home(*(f"function/{n}" for n in range(len(names))))} | web, ONE_AT_A_TIME.format(batch=50))
    world.crawl(HOME)
    assert web.keys() <= world.stored()
