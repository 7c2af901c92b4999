"""The public API: what it offers, what it loads, and what it does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing, closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import levada
from levada.collection.commands import open_commands
from levada.core.commands import AddSeeds
from levada.core.folder import DataFolder
from levada.core.records import Document
from tests.api.conftest import Web
from tests.house.test_cli_start import HEAVY
from tests.house.tree import SOURCE

_LOADED = "import json, sys; {}; print(json.dumps(sorted(sys.modules)))"


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED.format(code)], capture_output=True, text=True, check=True, cwd=SOURCE.parent
    )
    return set(json.loads(done.stdout))


def test_what_is_offered_is_there_and_nothing_else_is_listed() -> None:
    assert [name for name in levada.__all__ if getattr(levada, name, None) is None] == []
    assert dir(levada) == sorted(levada.__all__)
    assert {"Collection", "LevadaError", "Settings", "open", "freshness"} <= set(levada.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        levada.nothing  # noqa: B018


def test_a_name_is_the_one_that_is_used_inside() -> None:
    assert levada.Document is Document
    assert levada.Collection.__module__ == "levada.collection.collection"


def test_importing_levada_loads_nothing_else() -> None:
    before = loaded_by("pass")
    loaded = loaded_by("import levada") - before
    assert {name for name in loaded if name.startswith("levada.")} == set()
    assert loaded.isdisjoint({"msgspec", "asyncio"})


@pytest.mark.parametrize("code", ["levada.Settings()", "levada.NotFound", "levada.stages", "levada.grouping"])
def test_a_name_loads_no_engine(code: str) -> None:
    loaded = loaded_by(f"import levada; {code}")
    assert HEAVY & {name.split(".")[0] for name in loaded} == set()


def test_an_error_loads_only_the_errors() -> None:
    loaded = loaded_by("import levada; levada.LevadaError")
    assert {name for name in loaded if name.startswith("levada.")} == {"levada.core", "levada.core.errors"}


def test_a_type_checker_knows_every_name(tmp_path: Path) -> None:
    """The names that type checkers see are those that are offered (mypy runs over the whole tree in the gate)."""
    assert (SOURCE / "py.typed").exists()
    shown = (SOURCE / "__init__.py").read_text().partition("if TYPE_CHECKING:")[2].partition("__version__")[0]
    assert [name for name in levada.__all__ if name not in ("__version__", "open") and name not in shown] == []


def test_a_collection_is_made_where_there_is_none_and_keeps_its_settings(web: Web, tmp_path: Path) -> None:
    settings = levada.Settings.load(web.config)
    with levada.open(tmp_path / "new", settings) as news:
        assert news.stats().known == 0
        assert news.add(web.start[0], max_depth=3) == 1
        assert news.add(web.start[0]) == 0
    with levada.open(tmp_path / "new") as again:
        assert again.settings == settings.replace({"crawl.max_depth": 3})
        assert again.stats().known == 1


def test_where_there_must_be_a_collection_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(levada.NotFound, match="there is no collection in"):
        levada.open(tmp_path / "none", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(levada.UsageError, match="is not a folder"):
        levada.open(tmp_path / "file")


def test_a_closed_collection_says_so_whatever_is_asked(news: levada.Collection, web: Web) -> None:
    news.close()
    news.close()
    url = web.start[0]
    asked: list[Callable[[], object]] = [
        lambda: news.settings,
        lambda: news.add(url),
        lambda: news.crawl(once=True),
        lambda: news.events(),
        lambda: news.check(url),
        lambda: news.page(url),
        lambda: news.versions(url),
        lambda: news.diff(url),
        lambda: news.why(url),
        lambda: news.forecast(),
        lambda: news.search("x"),
        lambda: news.changes(),
        lambda: news.feed(),
        lambda: news.trends(),
        lambda: news.rows(),
        lambda: news.export("x.jsonl"),
        lambda: news.stats(),
        lambda: news.sites(),
        lambda: news.live(),
        lambda: news.pause(),
        lambda: news.drop_site("x"),
    ]
    for ask in asked:
        with pytest.raises(levada.UsageError, match="is closed: open it again"):
            ask()


def test_rules_that_are_none_are_named(news: levada.Collection, web: Web) -> None:
    with pytest.raises(levada.UsageError, match="no rule 'deep': known: scope, sitemaps, max_depth"):
        news.add(web.start[0], deep=3)
    with pytest.raises(levada.SettingsError, match=r'crawl\.scope must be "sites" or "any", not "host"'):
        news.add(web.start[0], scope="host")
    assert news.settings.crawl.scope == "sites"


def test_settings_are_replaced_by_section_and_key() -> None:
    settings = levada.Settings().replace({"budget.per_hour": 100, "crawl.scope": "any"})
    assert (settings.budget.per_hour, settings.crawl.scope, settings.fetch) == (100, "any", levada.Settings().fetch)
    for name in ("per_hour", "budget", ""):
        with pytest.raises(levada.SettingsError, match=r"named section\.key"):
            settings.replace({name: 1})
    with pytest.raises(levada.SettingsError, match="unknown section"):
        settings.replace({"budgets.per_hour": 1})


def test_a_crawl_tells_of_each_visit_and_ends_with_a_report(news: levada.Collection, web: Web) -> None:
    news.add(web.start[3])
    events = []
    crawl = news.events(once=True)
    while True:
        try:
            events.append(next(crawl))
        except StopIteration as end:
            report = end.value
            break
    assert isinstance(report, levada.Report)
    assert report.stopped == "done"
    assert web.start[3] in {event.url for event in events if event.outcome == "new"}
    assert report.new == sum(event.outcome in ("new", "moved") for event in events)
    assert all(event.at > 0 and event.next_visit is not None for event in events)


def test_leaving_the_loop_stops_the_crawl_and_leaves_nothing_behind(news: levada.Collection, web: Web) -> None:
    news.add(*web.start[3:8])
    before = set(threading.enumerate())  # other tests may have left some
    for _ in news.events():
        break
    assert set(threading.enumerate()) <= before
    assert news.live() is None
    assert news.stats().leased == 0
    assert news.crawl(once=True).stopped == "done"


def test_an_error_in_the_loop_stops_the_crawl_too(news: levada.Collection, web: Web) -> None:
    news.add(web.start[3])

    def fail() -> None:
        for _ in news.events():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert news.stats().leased == 0


def test_a_crawl_ends_after_its_time_or_its_pages(news: levada.Collection, web: Web) -> None:
    news.add(*web.start[3:8])
    assert news.crawl(max_pages=2).stopped == "limit"
    assert news.crawl(seconds=0.5).stopped == "limit"


def test_the_same_in_an_event_loop(news: levada.Collection, web: Web) -> None:
    async def story() -> tuple[list[str], levada.Report, levada.CheckResult]:
        async with aclosing(news.aevents(once=True)) as events:
            told = [event.url async for event in events]
        return told, await news.acrawl(once=True), await news.acheck(web.start[0])

    news.add(web.start[3])
    told, report, check = asyncio.run(story())
    assert web.start[3] in told
    assert (report.stopped, report.fetched) == ("done", 0)
    assert check.outcome == "unchanged"


def test_a_cancelled_crawl_gives_its_pages_back(news: levada.Collection, web: Web) -> None:
    async def story() -> None:
        task = asyncio.ensure_future(news.acrawl())
        while news.live() is None:  # noqa: ASYNC110 -- a file that the crawl writes
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    news.add(*web.start[3:8])
    asyncio.run(story())
    assert (news.stats().leased, news.live()) == (0, None)


@pytest.mark.parametrize("name", ["crawl", "events", "check"])
def test_a_synchronous_call_in_an_event_loop_names_the_other_one(name: str, news: levada.Collection, web: Web) -> None:
    async def story() -> None:
        getattr(news, name)(*([web.start[0]] if name == "check" else []))

    with pytest.raises(levada.UsageError, match=rf"'await collection\.a{name}\(\.\.\.\)'|aevents"):
        asyncio.run(story())


def test_a_crawl_of_nothing_says_what_to_do(web: Web, tmp_path: Path) -> None:
    with levada.open(tmp_path / "new") as news:
        with pytest.raises(levada.UsageError, match="add a start URL first"):
            news.crawl()
        with pytest.raises(levada.UsageError, match="add a start URL first"):
            list(news.events())


def test_a_crawl_that_stores_nothing_ends_by_itself(tmp_path: Path) -> None:
    with levada.open(tmp_path / "new") as news:
        news.add("http://127.0.0.1:9/")
        report = news.crawl()
    assert (report.stopped, report.pages) == ("done", 0)


def test_a_check_of_a_page_that_is_not_known_adds_it(web: Web, tmp_path: Path) -> None:
    with levada.open(tmp_path / "new", levada.Settings.load(web.config)) as news:
        check = news.check(web.start[0])
        assert (check.outcome, check.changed, check.diff) == ("new", False, None)
        assert news.page(web.start[0]).title == check.event.title
        assert news.stats().stored == 1
        assert [hit.url for hit in news.search("termos")] == [web.start[0]]


def test_a_check_is_refused_where_robots_txt_does(news: levada.Collection, web: Web) -> None:
    refused = next(
        example for site in news.sites() for reason, _, example in site.refused if reason is levada.Reason.ROBOTS
    )
    check = news.check(refused)
    assert (check.outcome, check.reason) == ("refused", levada.Reason.ROBOTS)


def test_checks_of_one_site_keep_its_delay(news: levada.Collection, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("levada.crawl.scheduler._PATIENCE", 0.05)
    news.settings = news.settings.replace({"politeness.delay": 3600.0})
    assert news.check(web.start[0]).outcome == "unchanged"
    with pytest.raises(levada.StoreLocked, match="its site just was: try again"):
        news.check(web.start[0])


def test_a_site_that_rests_or_was_dropped_is_not_checked(news: levada.Collection, web: Web) -> None:
    news.drop_site(web.start[0].split("/")[2])
    news.crawl(once=True)
    with pytest.raises(levada.Refused, match="was dropped"):
        news.check(web.start[0])


def test_beside_a_crawl_only_what_writes_is_locked(news: levada.Collection, web: Web) -> None:
    news.add(web.start[3])
    crawl = news.events()
    next(crawl)
    try:
        with levada.open("news") as other:
            assert other.stats().stored > 0
            assert other.page(web.start[0]).version == 1
            assert other.live() is not None
            for write in (
                lambda: other.crawl(once=True),
                lambda: other.add(web.start[4], max_depth=3),
                lambda: setattr(other, "settings", levada.Settings()),
            ):
                with pytest.raises(levada.StoreLocked, match="is in use by another crawl"):
                    write()
            with pytest.raises(levada.StoreLocked, match="waits for this thread to take its next event"):
                other.check(web.start[0])
            assert other.add(web.start[4]) == 1
            with closing(open_commands(DataFolder(Path("news")))) as commands:
                assert [command for _, command in commands.pending()] == [AddSeeds((web.start[4],))]
    finally:
        crawl.close()


def test_a_page_is_checked_beside_the_events_of_another_thread(news: levada.Collection, web: Web) -> None:
    checked: list[levada.CheckResult] = []
    crawls = threading.Event()

    def crawl() -> None:
        for _ in news.events():
            crawls.set()
            if checked:
                break

    news.add(web.start[3])
    thread = threading.Thread(target=crawl)
    thread.start()
    assert crawls.wait(60)
    checked.append(news.check(web.start[0]))
    news.check_later(web.start[0])  # its event ends the loop, if no other does
    thread.join(60)
    assert not thread.is_alive()
    assert (checked[0].url, str(checked[0].outcome)) == (web.start[0], "unchanged")


def test_a_page_is_checked_beside_a_crawl_of_the_same_loop(news: levada.Collection, web: Web) -> None:
    async def check_beside() -> levada.CheckResult:
        async with aclosing(news.aevents()) as events:
            await anext(events)
            return await news.acheck(web.start[0])

    news.add(web.start[3])
    assert str(asyncio.run(check_beside()).outcome) == "unchanged"


def test_control_commands_hold_for_the_next_crawl(news: levada.Collection, web: Web) -> None:
    news.add(web.start[3])
    news.pause()
    assert news.crawl(seconds=0.6).fetched == 0
    news.resume()
    assert news.crawl(once=True).fetched > 0
    with pytest.raises(levada.UsageError, match="per_hour must be from 0"):
        news.set_budget(-1)


def test_what_was_added_to_a_dropped_site_is_visited_again(news: levada.Collection, web: Web) -> None:
    site = web.start[0].split("/")[2]
    news.drop_site(site)
    news.crawl(once=True)
    news.add(web.start[0])
    news.crawl(once=True)
    assert news.check(web.start[0]).outcome == "unchanged"


def test_changes_since_a_time(news: levada.Collection) -> None:
    every = list(news.changes())
    assert len(every) == news.stats().stored
    assert [change.seq for change in every] == sorted(change.seq for change in every)
    middle = every[len(every) // 2].at
    assert [change.at >= middle for change in news.changes(since=middle)] == [
        True for change in every if change.at >= middle
    ]
    assert list(news.changes(since=datetime.fromtimestamp(every[-1].at + 1, UTC))) == []
    assert list(news.changes(site="nowhere.example")) == []
    with pytest.raises(levada.UsageError, match="is not a time"):
        news.changes(since="yesterday")


def test_pages_and_versions_that_are_not_there(news: levada.Collection, web: Web) -> None:
    with pytest.raises(levada.NotFound, match="is known in news"):
        news.page("https://nowhere.example/")
    with pytest.raises(levada.NotFound, match="no version 7"):
        news.page(web.start[0], 7)
    with pytest.raises(levada.NotFound, match="no such two versions"):
        news.diff(web.start[0], old=7)
    with pytest.raises(levada.UsageError, match="query is empty"):
        news.search("  ")


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.parquet", "pages.warc", "pages.warc.gz"])
def test_an_export_takes_its_form_from_its_name(name: str, news: levada.Collection) -> None:
    report = news.export(name)
    assert (report.pages, report.bytes) == (news.stats().stored, Path(name).stat().st_size)
    with pytest.raises(levada.UsageError, match="is there already"):
        news.export(name)


def test_an_export_that_names_no_form_says_which_there_are(news: levada.Collection) -> None:
    with pytest.raises(levada.UsageError, match=r"end its name in \.jsonl, \.md, \.parquet, \.warc"):
        news.export("pages.csv")
    with pytest.raises(levada.UsageError, match='no plug-in "csv"'):
        news.export("pages.csv", "csv")
    assert news.export("pages", "xml").pages == news.stats().stored


def test_rows_are_the_exported_ones(news: levada.Collection) -> None:
    rows = list(news.rows())
    news.export("pages.jsonl")
    lines = Path("pages.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=levada.ExportRow) for line in lines] == rows


def test_threads_may_share_a_collection(news: levada.Collection, web: Web) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(news.page(web.start[0]).title)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
