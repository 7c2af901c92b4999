"""What stays on the screen after a demo and a crawl."""

from __future__ import annotations

import pytest

from levada.cli.demo_story import Story, told
from levada.cli.screen import summary
from levada.demo.child import Web
from levada.demo.truth import Truth
from levada.flow.balance import CountReport, MethodLoad
from levada.flow.progress import Report
from levada.flow.trending import Trend
from levada.searching import Hit, Hits

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
    bytes=8_607_578,
    seconds=22_500.0,
    believed_current=0.987,
    stopped="limit",
)
OURS = Truth(1046, 8576, 0.954, 0.9, 1877, 1250, 60.0)
TURNS = Truth(1046, 8576, 0.919, 0.9, 1877, 900, 60.0)
HIT = Hit("http://a.localhost/", "a.localhost", "[bold]İstanbul", 1.0, "tr", 0.0)


@pytest.fixture
def story() -> Story:
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
    return Story(web, REPORT, OURS, TURNS, 0.967, hits, page, "demo-data", (trend,), counting)


def test_what_is_believed_stands_beside_the_truth(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    told(story)
    shown = capsys.readouterr().out
    assert "Current in the end: believed 98.7% of the stored pages, by the truth 96.7%." in shown
    assert (
        "Fresh, by the truth: 95.4% of the time; round robin with as many fetches (8,576): 91.9% (+3.5 points)."
        in shown
    )
    assert "levada why --budget --data demo-data" in shown
    assert "[bold]İstanbul" in shown
    assert len(shown.splitlines()) <= 25


def test_what_is_trending_and_how_the_counting_was_shared_out_are_a_line_each(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    told(story)
    shown = capsys.readouterr().out
    assert "Trending, by the changes that added it: kimlik (tr, 31 of 279)." in shown
    assert "The terms once more, shared out over 2 workers: the fullest 1.041 x the mean, 1.15 workers per" in shown
    assert "(by key 1.041 x the mean" in shown
    assert "levada trends --data demo-data" in shown
    assert story.summary()["trends"][0]["term"] == "kimlik"
    assert story.summary()["counting"]["records"] == 3


def test_programs_are_told_both_too(story: Story) -> None:
    facts = story.summary()
    assert facts["current_at_end"] == {"true": 0.967, "believed": 0.987}
    assert facts["freshness"] == {"levada": 0.954, "round_robin": 0.919}
    assert facts["fetches"] == {"levada": 8576, "round_robin": 8576}


def test_a_crawl_ends_with_what_is_believed() -> None:
    assert "believed current: 98.7% of the stored pages" in summary(REPORT, "levada-data")
