"""What a person and a program see of the stages."""

from __future__ import annotations

from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from levada.cli.demo_story import Story, told
from levada.cli.screen import PlainLines, screen
from levada.flow.crawl import Crawl
from levada.flow.progress import StageSummary
from levada.flow.staffing import StageView
from levada.records import Standing
from tests.cli.test_demo_words import story
from tests.flow.world import World

__all__ = ["story"]

VIEWS = (
    StageView("fetch", 28, 5, 5, 0, 32, "206/s arrive, 12 ms each: 2.5 busy, 28 waiting"),
    StageView("parse", 0, 0, 2, 0, 1, "100/s arrive, 1.4 ms each: 0.1 busy"),
    StageView("index", 3, 1, 1, 0, 1, "1 at most"),
)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Crawl:
    crawl = World(staff=()).make_crawl()
    crawl.standing = Standing(known=10, stored=7)
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


def test_the_screen_says_that_a_crawl_is_paused(work: Crawl) -> None:
    assert "Ctrl-C stops" in drawn(work)
    work._obey.paused = True
    assert "paused by an order" in drawn(work)


def test_plain_lines_say_the_same(work: Crawl, capsys: pytest.CaptureFixture[str]) -> None:
    PlainLines().show(work, 1.0)
    said = capsys.readouterr().err
    assert "fetch 5 -> 32 (queue 28, busy 5: 206/s arrive" in said
    assert "index 1 (queue 3, busy 1: 1 at most)" in said


def test_the_demo_ends_with_how_the_stages_grew_and_shrank(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = (StageSummary("fetch", 9000, 4, 12.3, 64, 140, 60, why="why"),)
    told(replace(story, report=replace(story.report, stages=stages)))
    shown = capsys.readouterr().out
    assert "Workers: fetch 4 to 64 (mean 12.3, 60 decisions)." in shown
    assert len(shown.splitlines()) <= 25
