"""How a running crawl can be seen and steered from outside its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from socket import gethostname

import msgspec
import pytest
from msgspec.structs import replace

from levada.collection.commands import open_commands
from levada.collection.crawling import open_crawl
from levada.collection.live import LiveStatus, live_content, read_live
from levada.collection.search import open_search
from levada.collection.starts import seeds
from levada.core.commands import AddSeeds, ChangeBudget, DesiredState, DropSite, Pause, Resume
from levada.core.errors import StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.records import Outcome
from levada.core.reports import Report
from levada.core.search_records import Query
from levada.core.settings import Settings, parse_settings
from levada.crawl.engine import Crawl
from tests.crawl.simulated_crawl import page
from tests.scripted_web import MemoryFetcher

A = "http://a.test/"
QUICK = parse_settings("[politeness]\ndelay = 0\n[crawl]\nsitemaps = false", "a test")


def web() -> MemoryFetcher:
    fetcher = MemoryFetcher()
    for site, word in (("a", "page"), ("b", "leaf")):
        fetcher.script(f"http://{site}.test/", page(f"home {word}", *(f"/{n}" for n in range(10))))
        for n in range(10):
            fetcher.script(f"http://{site}.test/{n}", page(f"{word} {n}"))
    return fetcher


def status(pid: int) -> LiveStatus:
    return LiveStatus(pid, 1.0, 1.0, 2.0, 3, 4, 5, 6, 7, 0.5, 0, None, {}, {})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of a file: nothing tells us
            await asyncio.sleep(0.02)


def test_a_crawl_can_be_watched_and_steered_while_it_runs(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    seen: list[LiveStatus] = []

    async def run() -> None:
        async with open_crawl(folder, QUICK, seeds([A]), fetcher=web()) as crawl:
            running = asyncio.create_task(crawl.run())
            await until(lambda: (live := read_live(folder.live_file)) is not None and live.stored == 11)
            commands = open_commands(folder)
            commands.submit(Pause())
            await until(lambda: crawl.paused)
            commands.submit(AddSeeds(("http://b.test/",)))
            commands.submit(ChangeBudget(100_000))
            await until(lambda: crawl.per_hour == 100_000)
            commands.submit(Resume())
            await until(lambda: (live := read_live(folder.live_file)) is not None and live.stored == 22)
            commands.close()
            live = read_live(folder.live_file)
            assert live is not None
            seen.append(live)
            crawl.stop()
            await running

    asyncio.run(run())
    (live,) = seen
    assert live.pid == os.getpid()
    assert live.fetched >= 22
    assert [view.name for view in live.stages] == ["fetch", "parse", "index"]
    assert all(view.why for view in live.stages)
    assert set(live.history) == {"fetch", "parse", "index"}
    assert (live.paused, live.per_hour) == (False, 100_000)
    assert read_live(folder.live_file) is None
    assert not (tmp_path / "live.json").exists()


def test_processes_end_when_idle_and_come_back_with_the_work(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    settings = replace(QUICK, stages=replace(QUICK.stages, idle=0.2, period=0.05))

    def workers(crawl: Crawl, *names: str) -> list[int]:
        return [view.on for view in crawl.stage_views() if view.name in names]

    async def run() -> Report:
        async with open_crawl(folder, settings, seeds([A]), fetcher=web()) as crawl:
            running = asyncio.create_task(crawl.run())
            await until(lambda: crawl.progress.outcomes[Outcome.FIRST] == 11)
            await until(lambda: workers(crawl, "parse", "index") == [0, 0])
            commands = open_commands(folder)
            commands.submit(AddSeeds(("http://b.test/",)))
            commands.close()
            await until(lambda: crawl.progress.outcomes[Outcome.FIRST] == 22)
            await until(lambda: workers(crawl, "index") == [1])
            crawl.stop()
            return await running

    report = asyncio.run(run())
    assert {stage.name: (stage.least, stage.most) for stage in report.stages if stage.name != "fetch"} == {
        "parse": (0, 1),
        "index": (0, 1),
    }
    with open_search(folder) as (_, index):
        assert index.search(Query("page30 AND leaf30")).total == 0
        assert index.search(Query("leaf30")).total == 1
        assert index.search(Query("page30")).total == 1


def test_a_killed_crawls_last_words_are_not_taken_for_life(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert read_live(folder.live_file) is None
    folder.save_live(live_content(status(os.getpid())))
    assert read_live(folder.live_file) == status(os.getpid())
    folder.save_live(live_content(status(2**22 + 1)))  # no process has this number
    assert read_live(folder.live_file) is None
    far = status(2**22 + 1)
    folder.save_live(live_content(far))
    live = tmp_path / "live.json"
    live.write_text(live.read_text().replace(f'"{gethostname()}"', '"another-machine"'))
    assert read_live(folder.live_file) == far, (
        "processes of other machines cannot be looked up: who wrote just now is alive"
    )
    os.utime(live, (0, 0))
    assert read_live(folder.live_file) is None
    live.write_bytes(b"half a rec")
    assert read_live(folder.live_file) is None
    folder.forget_live()
    folder.forget_live()


@pytest.mark.parametrize("what", ["folder", "lock", "database"])
def test_a_crawl_does_not_write_on_in_what_was_deleted(tmp_path: Path, what: str) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    with folder.locked():
        folder.save_live(live_content(status(1)))
        folder.database.touch()
        folder.save_live(live_content(status(1)))
        if what == "folder":
            folder.path.rename(tmp_path / "elsewhere")
        else:
            (folder.path / {"lock": "lock", "database": "levada.db"}[what]).unlink()
        with pytest.raises(StoreError, match="was deleted or replaced"):
            folder.save_live(live_content(status(1)))


def test_a_status_that_cannot_be_written_holds_nobody_up(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "nowhere")
    folder.save_live(live_content(status(1)))
    folder.forget_live()


def test_a_dropped_site_that_is_named_again_stays_so_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = DataFolder(tmp_path)

    async def stored_after(*urls: str) -> int:
        async with open_crawl(folder, QUICK, seeds(urls), once=True, fetcher=web()) as crawl:
            return (await crawl.run()).pages

    commands = open_commands(folder)
    commands.submit(DropSite("a.test"))
    assert asyncio.run(stored_after()) == 0
    assert caplog.messages == []
    assert asyncio.run(stored_after(A)) == 0
    assert caplog.messages == ["a.test was dropped and is not visited: add it in the dashboard to take it up again"]
    commands.submit(AddSeeds((A,)))
    commands.close()
    assert asyncio.run(stored_after()) == 11


@pytest.mark.parametrize(("later", "left"), [(10, 777), (20, None)])
def test_an_ordered_budget_holds_until_the_settings_name_another(tmp_path: Path, later: int, left: int | None) -> None:
    folder = DataFolder(tmp_path)
    before = msgspec.convert({"budget": {"per_hour": 10}}, Settings)
    folder.save_settings(before)
    commands = open_commands(folder)
    commands.mark_done(commands.submit(ChangeBudget(777)), DesiredState(per_hour=777))
    commands.close()
    again = open_commands(folder, msgspec.convert({"budget": {"per_hour": later}}, Settings))
    told = [order for _, order in again.pending()]
    again.close()
    assert told == ([] if left else [ChangeBudget(None)])


def test_a_least_that_the_machine_cannot_have_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    settings = parse_settings("[stages]\nmin_parse = 5000", "a test")

    async def run() -> None:
        async with open_crawl(DataFolder(tmp_path / "data"), settings, [], fetcher=web()):
            pass

    with pytest.raises(UsageError, match="least <= most"):
        asyncio.run(run())
    assert not (tmp_path / "data").exists()
