"""What a person and a program see of the stages."""

from __future__ import annotations

from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from levada.cli.demo.output import print_crawl
from levada.cli.run.screen import LiveScreen, PlainLines, screen, summary
from levada.core.records import CollectionStats
from levada.core.reports import StageSummary, StageView
from levada.crawl.engine import Crawl
from levada.demo.story import DemoRun
from tests.cli.test_demo_words import story
from tests.crawl.simulated_crawl import World

__all__ = ["story"]

VIEWS = (
    StageView("fetch", 28, 5, 5, 0, 32, "206/s arrive, 12 ms each: 2.5 busy, 28 waiting"),
    StageView("parse", 0, 0, 2, 0, 1, "100/s arrive, 1.4 ms each: 0.1 busy"),
    StageView("index", 3, 1, 1, 0, 1, "1 at most"),
)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Crawl:
    crawl = World(stage_pools=()).make_crawl()
    crawl.stats = CollectionStats(known=10, stored=7)
    monkeypatch.setattr(crawl, "stage_views", lambda: VIEWS)
    return crawl


def drawn(work: Crawl) -> str:
    console = Console(file=StringIO(), width=150, height=50)
    console.print(screen(work, 1.0))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_the_screen_shows_queue_busy_workers_wanted_and_why(work: Crawl) -> None:
    shown = drawn(work)
    assert "5 → 32" in shown
    assert "2 → 1" in shown
    assert "■■■■■" in shown
    assert "206/s arrive, 12 ms each: 2.5 busy, 28 waiting" in shown


@pytest.fixture
def full(work: Crawl, monkeypatch: pytest.MonkeyPatch) -> Crawl:
    """With more of everything than a small terminal has room for."""
    sites = [(f"{'long' * n}.example.org", 1_000, 4) for n in range(30)]
    monkeypatch.setattr(work.politeness_queue, "lengths", lambda: iter(sites))
    work.stats = CollectionStats(known=100_000, stored=70_000, unvisited=1_234_567, due=10_000)
    work.progress.refused.update({f"reason-number-{n}": 1_000 - n for n in range(8)})
    work.progress.recent.extend((1.0, "changed", f"http://a.test/{n}{'/long' * 40}") for n in range(8))
    return work


@pytest.mark.parametrize(("width", "height", "sites", "recent"), [(80, 24, 3, 3), (120, 40, 6, 5), (40, 10, 0, 0)])
def test_the_screen_shows_no_more_sites_and_pages_than_there_is_room_for(
    full: Crawl, width: int, height: int, sites: int, recent: int
) -> None:
    console = Console(file=StringIO(), width=width, height=height)
    lines = ["".join(part.text for part in line) for line in console.render_lines(screen(full, 1.0))]
    assert len([line for line in lines if "1000" in line and "●" in line]) == sites
    shown = [line for line in lines if "http://a.test/" in line]
    assert len(shown) == recent
    if recent:
        assert len(lines) <= height
        assert "http://a.test/7/" in shown[-1]
        assert "Ctrl-C stops" in lines[-1]


def test_nothing_of_the_screen_is_left_when_it_ends(full: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=StringIO(), width=80, height=24, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr("levada.cli.run.screen.Console", lambda stderr: terminal)
    live = LiveScreen()
    live.show(full, 1.0)
    before = len(terminal.file.getvalue())  # type: ignore[attr-defined]
    live.close()
    assert "╭" not in terminal.file.getvalue()[before:]  # type: ignore[attr-defined]


def test_the_screen_says_that_a_crawl_is_paused(work: Crawl) -> None:
    assert "Ctrl-C stops" in drawn(work)
    work._scheduler._execute.paused = True
    assert "paused by a command" in drawn(work)


def test_plain_lines_are_short_and_speak_of_workers_only_when_their_number_changes(
    work: Crawl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = PlainLines()

    def said(now: float = 1.0) -> list[str]:
        lines.show(work, now)
        return capsys.readouterr().err.splitlines()

    workers, first = said()
    assert first.startswith("visits 0 (0/s)  stored 7  new 0  due 0")
    assert workers == "workers: fetch 32, parse 1, index 1"
    assert said() == []  # nothing has happened since
    monkeypatch.setattr(work, "stage_views", lambda: (replace(VIEWS[0], wanted=8, queue=1, busy=2), *VIEWS[1:]))
    assert said() == [f"workers: fetch 32 -> 8 ({VIEWS[0].why})"]
    work.stats = CollectionStats(known=10, stored=8)
    assert said() == [first.replace("stored 7", "stored 8")]
    assert said(600.0) == []
    assert said(601.0) == [first.replace("stored 7", "stored 8")]
    assert len(first) <= 120


@pytest.mark.parametrize(("pages", "told"), [(1, "1 page stored in d;"), (2, "2 pages stored in d;")])
def test_a_summary_counts_one_page_as_one(story: DemoRun, pages: int, told: str) -> None:
    assert summary(replace(story.report, pages=pages), "d").startswith(told)


def test_a_summary_says_what_was_left_by_a_crawl_that_came_to_its_end(story: DemoRun) -> None:
    left = replace(story.report, unvisited=50, stopped="done")
    assert "not visited: 50 URLs of sites that failed and rest now" in summary(left, "d")
    assert "not visited" not in summary(replace(left, stopped="interrupted"), "d")
    assert "not visited" not in summary(replace(left, unvisited=0), "d")


def test_the_demo_ends_with_how_the_stages_grew_and_shrank(story: DemoRun, capsys: pytest.CaptureFixture[str]) -> None:
    stages = (StageSummary("fetch", 9000, 4, 12.3, 64, 140, 60, why="why"),)
    print_crawl(replace(story, report=replace(story.report, stages=stages)))
    shown = capsys.readouterr().out
    assert "Workers: fetch 4 to 64 (mean 12.3, 60 steps)." in shown
    assert len(shown.splitlines()) <= 25
