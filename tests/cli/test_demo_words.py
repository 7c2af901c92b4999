"""What stays on the screen after a demo and a crawl."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from levada.cli.demo.output import print_crawl, print_rest
from levada.cli.run.screen import screen, summary
from levada.cli.terminal import doing
from levada.core.balance import CountReport, MethodLoad
from levada.core.folder import DataFolder
from levada.core.reports import Report, StageSummary
from levada.core.search_records import Hit, Hits, Trend
from levada.demo.actual import ActualFreshness
from levada.demo.child import Web
from levada.demo.story import DemoRun, ShardCost, ShardStory, WarmStory, changed_page
from levada.store.reading import open_collection
from tests.cli.collection import FRONT, SCRIPT, VAPUR, build
from tests.crawl.simulated_crawl import World

REPORT = Report(
    pages=1144,
    fetched=10_846,
    new=1463,
    changed=1250,
    unchanged=7000,
    gone=37,
    failed={"protocol": 42},
    refused={"robots": 2024},
    found=1523,
    unvisited=0,
    bytes=8_607_578,
    seconds=22_500.0,
    believed_current=0.987,
    stopped="limit",
)
OURS = ActualFreshness(1046, 8576, 0.954, 0.9, 1877, 1250, 60.0)
TURNS = ActualFreshness(1046, 8576, 0.919, 0.9, 1877, 900, 60.0)
STAGE = StageSummary("fetch", 9000, 4, 12.3, 64, 140, 60, why="why")
SHARDS = ShardStory(
    120,
    ShardCost("hash(url)", 3.1, 0.3, (1, 2)),
    ShardCost("hash(site), section, url", 1.35, 0.8, (2, 1)),
    "why",
    900,
    1.0,
)
WARM = WarmStory(11_808, 90_000.0, 900_000.0, 162_241.0, 45_744.0)
HIT = Hit("http://a.localhost/", "a.localhost", "[bold]İstanbul", 1.0, "tr", 0.0)


@pytest.fixture
def story() -> DemoRun:
    web = Web(
        start=("http://a.localhost/",),
        config="levada.toml",
        port=1,
        origin=0.0,
        started=0.0,
        speed=500.0,
        seed=1,
        pages=1046,
    )
    hits = Hits(1, (HIT, HIT))
    trend = Trend("kimlik", "tr", 60.0, 31, 279, 6, 871, "documents", 15, 37)
    loads = tuple(MethodLoad(name, (1, 2), 1.0, 1.041, 1.15) for name in ("levelled", "key", "partial"))
    counting = CountReport(records=3, balance=loads)
    page = "http://a.localhost/x"
    return DemoRun(web, REPORT, OURS, TURNS, 0.967, hits, page, "demo-data", (trend,), counting)


def told(story: DemoRun, capsys: pytest.CaptureFixture[str]) -> str:
    print_crawl(story)
    print_rest(story)
    return capsys.readouterr().out


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns, as far as anybody can tell."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_what_is_believed_stands_beside_the_truth(story: DemoRun, capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(story, capsys)
    assert "Current in the end: estimated 98.7% of the stored pages, actually 96.7%." in shown
    assert "The web's own 1,046 pages: 1,877 changes, 1,250 caught by 8,576 of the fetches." in shown
    assert "Fresh, measured: 95.4% of the time; round robin, as many fetches: 91.9%." in shown
    assert "levada why --budget --data demo-data" in shown
    assert "[bold]İstanbul" in shown


def test_what_stays_fits_a_terminal_of_80_columns_in_25_lines(
    story: DemoRun, terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"some-reason-{number}": 1000 - number for number in range(30)}
    report = replace(REPORT, refused=many, failed=many, stages=(STAGE, STAGE))
    full = replace(story, report=report, trends=story.trends * 4, shards=SHARDS, warm=WARM)
    lines = told(full, capsys).splitlines()
    assert len(lines) <= 25
    assert all(len(plain(each)) <= 80 for each in lines)
    assert any("some-reason-0 1,000" in each and "other reasons" in each for each in lines)


def test_nothing_is_cut_when_piped(story: DemoRun, capsys: pytest.CaptureFixture[str]) -> None:
    many = {f"some-reason-{number}": 1 for number in range(30)}
    long = "http://a.localhost/" + "x" * 200
    hits = Hits(1, (replace(HIT, url=long),))
    shown = told(replace(story, hits=hits, report=replace(REPORT, refused=many)), capsys)
    assert long in shown
    assert "some-reason-29 1." in shown


def test_pages_are_compared_only_if_one_changed(story: DemoRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert "levada diff http://a.localhost/x --data demo-data" in told(story, capsys)
    shown = told(replace(story, changed=""), capsys)
    assert "levada diff" not in shown
    assert f"levada why {HIT.url} --data" in shown


def test_a_page_to_compare_has_two_versions(tmp_path: Path) -> None:
    with open_collection(DataFolder(build(tmp_path))) as collection:
        kept = {url: len(collection.store.versions(url)) for url in (FRONT, VAPUR, SCRIPT)}
        assert set(kept.values()) > {1}
        chosen = changed_page(collection.store, kept)
        assert kept[chosen] > 1
        assert changed_page(collection.store, ["https://example.org/sitemap.xml"]) == ""


def test_what_is_trending_and_how_the_counting_was_shared_out_are_a_line_each(
    story: DemoRun, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(story, capsys)
    assert "Trending, by the changes that added it: kimlik (tr, 31 of 279)." in shown
    assert "Terms on 2 workers: fullest 1.04 x mean, a term on 1.15 (key 1.04 and 1.15, partial 1.04 and" in shown
    assert "levada trends --data demo-data" in shown
    assert story.summary()["trends"][0]["term"] == "kimlik"
    assert story.summary()["counting"]["records"] == 3


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_what_is_being_done_is_said_unless_a_program_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with doing("counting", quiet=True):
        assert capsys.readouterr().err == ""
    with doing("counting", quiet=False):
        assert capsys.readouterr().err == "counting ...\n"


def test_the_screen_does_not_say_that_a_demo_goes_on() -> None:
    console = Console(file=StringIO(), width=100, height=50)
    console.print(screen(World(stage_pools=()).make_crawl(), 1.0, "Ctrl-C ends it early"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Ctrl-C ends it early" in shown
    assert "goes on" not in shown


def test_programs_are_told_both_too(story: DemoRun) -> None:
    facts = story.summary()
    assert facts["current_at_end"] == {"true": 0.967, "believed": 0.987}
    assert facts["freshness"] == {"levada": 0.954, "round_robin": 0.919}
    assert facts["fetches"] == {"levada": 8576, "round_robin": 8576}


def test_a_crawl_ends_with_what_is_believed() -> None:
    assert "estimated current: 98.7% of the stored pages" in summary(REPORT, "levada-data")
