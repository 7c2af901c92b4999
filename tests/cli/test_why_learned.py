"""The explanation and the chart of a page under the learned policy."""

from __future__ import annotations

import json
import re
import shutil
from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from levada.collection.components import make_policy
from levada.collection.explain import explanation, rate_words, sentence
from levada.core.folder import DataFolder
from levada.core.records import (
    ChangeHint,
    DiscoveredBy,
    FoundUrl,
    Outcome,
    PageState,
    Signals,
    SiteRecord,
    Visit,
    VisitResult,
)
from levada.core.settings import BudgetSettings, ClockSettings, RevisitSettings, Settings
from levada.freshness.explain import RateEstimate
from levada.freshness.rates import RATES
from levada.store.sqlite import SqliteStore
from tests.cli.collection import HOUR, NOW, command, version
from tests.cli.test_why import page

why = command("why")
NEWS, TERMS, ONCE = "https://news.example/", "https://terms.example/", "https://news.example/once"
TOLD, SLOW = "https://news.example/told", "https://slow.example/"
SETTINGS = Settings(
    clock=ClockSettings(speed=1e-12, origin=NOW, started=1.0),
    budget=BudgetSettings(per_hour=2),
    revisit=RevisitSettings(importance={TERMS: 3.0}),
)
MET = {
    NEWS: [0, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1],
    TERMS: [0, 1, 1, 1, 1, 1, 1],
    SLOW: [0, 2, 2, 2],
    ONCE: [0],
    TOLD: [0, 1, 1, 1, 1],
}


@pytest.fixture(scope="session")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pages, visited every hour up to a quarter of an hour ago."""
    path = tmp_path_factory.mktemp("learned") / "levada-data"
    folder = DataFolder(path)
    folder.make()
    folder.save_settings(SETTINGS)
    store = SqliteStore(folder.database)
    try:
        _fill(store)
    finally:
        store.close()
    return path


def _fill(store: SqliteStore) -> None:
    policy = make_policy(SETTINGS)
    sites = {NEWS: "news.example", TERMS: "terms.example", SLOW: "slow.example"}
    store.add(
        [FoundUrl(url, sites.get(url, "news.example"), how=DiscoveredBy.SEED, admit=True) for url in MET],
        [],
        NOW - 1e5,
    )
    for url, outcomes in MET.items():
        for left, outcome in zip(range(len(outcomes), 0, -1), outcomes, strict=True):
            lease = next(each for each in store.lease(NOW + 1e9, 99, 60.0) if each.page.url == url)
            visit = Visit(NOW - HOUR * (left - 0.75), Outcome(outcome), said=_said(url, outcome))
            plan = policy.plan(lease.page, visit)
            new = version("Haberler", f"{url} {left}") if outcome != 1 else None
            after = visit.at + plan.interval
            result = VisitResult(
                lease,
                visit,
                PageState.LIVE,
                plan.interval,
                after,
                memory=plan.memory,
                version=new,
                text_digest=b"1",
            )
            store.commit([result])
            store.forget_leases()
    told = store.outdated([ChangeHint(TOLD, NOW - 60, Signals.SITEMAP)])
    store.bring_forward([(each, Signals.SITEMAP, NOW + 30.0) for each in told])
    store.save(SiteRecord("slow.example", admitted=True, delay=7200.0))


def _said(url: str, outcome: int) -> Signals:
    if url == NEWS:
        return Signals.DATED | Signals.DATE_MOVED if outcome == 2 else Signals.NOT_MODIFIED
    return Signals.NOTHING


def facts(url: str, data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(why(url, "--json", "--data", data).out)
    return found


def test_one_sentence_says_how_often_it_changes_and_when_it_is_visited(visited: Path) -> None:
    shown = why(NEWS, "--data", visited).out
    assert "Changed 6 of the last 10 visits; changes about every " in shown
    assert ", so a visit is worth its price after " in shown
    assert ": next visit in " in shown


def test_the_picture_fits_eighty_columns(visited: Path) -> None:
    for url in MET:
        lines = why(url, "--data", visited).out.splitlines()
        drawn = [each for each in lines if any(mark in each for mark in "─┄█▁")]
        assert len(drawn) == 2
        assert all(len(each) <= 80 for each in lines if each in drawn or each.endswith("  never"))


def test_the_visits_stand_on_a_line_of_time(visited: Path) -> None:
    shown = why(NEWS, "--data", visited).out
    line = next(each for each in shown.splitlines() if "▷" in each)
    assert [mark for mark in line if mark in "+○●│▷"] == list("○●●○●●○●●○│▷")
    assert "12 in all; the last 10: 6 met a change (●), 4 met none (○)" in shown


def test_who_said_what_is_told_with_how_far_it_is_believed(visited: Path) -> None:
    shown = why(NEWS, "--data", visited).out
    assert "Last-Modified: spoke at 6 visits; right 6 of 6 times on this site, trusted 90%" in shown
    assert "304: spoke at 4 visits; not put to the test yet, trusted 90%" in shown
    assert "sitemap" not in shown


def test_a_page_that_was_told_of_says_who_told(visited: Path) -> None:
    shown = why(TOLD, "--data", visited).out
    assert "a sitemap told of a change since the last visit: next visit in 30 s" in shown
    assert "sitemap: spoke at 0 visits; not put to the test yet, trusted 50%; tells of a change" in shown
    assert facts(TOLD, visited)["told"] == ["sitemap"]


def test_what_the_price_spends_is_told_and_not_what_the_budget_would_allow(visited: Path, tmp_path: Path) -> None:
    rich = DataFolder(Path(shutil.copytree(visited, tmp_path / "levada-data")))
    rich.save_settings(replace(SETTINGS, budget=replace(SETTINGS.budget, per_hour=100_000)))
    shown = why(NEWS, "--data", rich.path).out
    (spent,) = re.findall(r"that spends ([0-9.,]+) fetches per hour on 5 pages", shown)
    assert 0 < float(spent) <= 5 * HOUR / SETTINGS.revisit.floor


def test_the_price_and_the_budget_are_told(visited: Path) -> None:
    assert "that spends 2.0 fetches per hour on 5 pages" in why(NEWS, "--data", visited).out
    assert "its freshness counts 3 times (revisit.importance)" in why(TERMS, "--data", visited).out
    slow = why(SLOW, "--data", visited).out
    assert "are enough: this site cannot be asked more often" in slow
    assert "slow.example asks for 2 h between two requests" in slow


def test_the_paper_is_asked_too(visited: Path) -> None:
    assert "the paper's rule would come back in about 4 min" in why(NEWS, "--data", visited).out
    assert "the paper's rule would come back in 2 h 44 min" in why(TERMS, "--data", visited).out
    assert "the paper's rule would come back in 8 min" in why(SLOW, "--data", visited).out


def test_a_page_seen_once_is_taken_for_one_of_the_others(visited: Path) -> None:
    assert "Visited once; if it is like the others, it " in why(ONCE, "--data", visited).out


def test_json_tells_the_belief_in_numbers(visited: Path) -> None:
    news, terms = facts(NEWS, visited), facts(TERMS, visited)
    assert news["rate_low"] < news["rate_per_day"] < news["rate_high"]
    assert 5 < news["rate_per_day"] < 100
    assert terms["rate_per_day"] < 5
    assert terms["chance_static"] > news["chance_static"]
    assert terms["believed_current"] > news["believed_current"] > 0
    assert sum(each["chance"] for each in news["rates"]) == pytest.approx(1.0)
    assert news["price_seconds"] == pytest.approx(terms["price_seconds"])
    assert facts(SLOW, visited)["price_seconds"] > news["price_seconds"]
    assert news["interval_at_price"] < terms["interval_at_price"]
    assert (news["importance"], terms["importance"]) == (1.0, 3.0)
    assert news["budget_per_hour"] == pytest.approx(2.0)
    assert (news["paper_interval_exact"], terms["paper_interval_exact"]) == (False, True)
    assert terms["paper_interval"] == pytest.approx(HOUR * 1.2**6)
    assert [each["who"] for each in news["hearsay"]] == ["304", "Last-Modified", "sitemap", "feed"]
    assert news["history"][-1]["said"] == ["not-modified"]
    assert news["sentence"].startswith("Changed 6 of the last 10 visits; changes about every ")


def rate(static: float, median: float, low: float, high: float) -> RateEstimate:
    return RateEstimate((), (), median, low, high, static)


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (rate(0.0, 3 * HOUR, 1.5 * HOUR, 7 * HOUR), "changes about every 3 h (between 1.5 and 7 h)"),
        (rate(0.0, 3 * HOUR, 1800.0, 48 * HOUR), "changes about every 3 h (between 30 min and 2 d)"),
        (
            rate(0.2, 72 * HOUR, 8 * HOUR, inf),
            "changes about every 3 d (perhaps never, hardly more often than every 8 h)",
        ),
        (rate(0.6, inf, 8 * HOUR, inf), "probably never changes (60%), or hardly more often than every 8 h"),
        (rate(0.95, inf, inf, inf), "never changes, as far as can be seen (95%)"),
    ],
)
def test_a_belief_has_words(estimate: RateEstimate, words: str) -> None:
    assert rate_words(estimate) == words


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        (3120.0, "so a visit is worth its price after 52 min: next visit in 1 min"),
        (300.0, "so it is visited as often as may be, every 5 min (revisit.floor): next visit"),
        (30 * 24 * HOUR, "so it is visited as seldom as allowed, every 30 d (revisit.ceiling): next visit"),
        (600.0, "; as that is not certain, a visit is worth its price after 10 min: next visit"),
    ],
)
def test_the_bounds_are_named_where_they_decide(interval: float, told: str) -> None:
    estimate = rate(0.0, 3 * HOUR, 1.5 * HOUR, 7 * HOUR)
    record = page([(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)], interval)
    assert told in sentence(explanation(record, RevisitSettings(), NOW, estimate))


def test_failures_come_after_what_is_believed() -> None:
    record = page([(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)], failures=1)
    told = explanation(record, RevisitSettings(), NOW, RateEstimate.of([1 / len(RATES)] * len(RATES)))
    assert told[2].startswith("the last visit was refused")


def test_a_history_without_memory_is_no_trouble(data: Path) -> None:
    """Pages that an earlier Levada stored."""
    found = facts("https://example.org/vapur", data)
    assert found["believed_current"] > 0
    assert found["sentence"].startswith("Changed 2 of 3 visits; ")
