from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.cli import why as why_module
from levada.cli.reckoning import account, last_step
from levada.flow.settings import RevisitSettings
from levada.freshness import EmaRevisit
from levada.reasons import Reason
from levada.records import How, Outcome, PageKind, PageRecord, PageState, Visit
from tests.cli.collection import BLOCKED, DOWN, FRONT, GONE, NEW, NOW, PLAIN, VAPUR, command

why = command(why_module.register)


def test_the_next_visit_is_explained_by_the_last_ones(data: Path) -> None:
    answer = why(VAPUR, "--data", data)
    assert answer.code == 0
    assert "+ 10 h  ● 9 h  ● 10 min ago; 3 in all" in answer.out
    assert "changed 2 of 3 visits" in answer.out
    assert "the interval went from 46 to 33 min" in answer.out
    assert "next visit in 23 min (2027-01-15 08:23 UTC)" in answer.out
    assert f"link on {FRONT}" in answer.out
    assert "1 to 3 are stored" in answer.out


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (BLOCKED, "refused: robots"),
        (BLOCKED, "robots.txt of example.org, read 2027-01-14 22:00 UTC, does not allow this page for 'levada'"),
        (DOWN, "the last 2 visits failed (connect): tried again after 5 min, doubling up to 1 d"),
        (GONE, "the last visit found it gone"),
        (NEW, "first visit due since 10 h"),
        (NEW, "none yet"),
        (PLAIN, "rests after 6 failures in a row: asked again in 10 min"),
        (PLAIN, "next visit due since 9 h"),
        (FRONT, "the first interval is 1 h"),
        (FRONT, "given by the user"),
    ],
)
def test_every_state_is_explained(data: Path, url: str, told: str) -> None:
    assert told in why(url, "--data", data).out


def test_json_has_all_facts(data: Path) -> None:
    facts = json.loads(why(VAPUR, "--json", "--data", data).out)
    assert facts["state"] == "live"
    assert facts["found_on"] == FRONT
    assert [visit["outcome"] for visit in facts["history"]] == ["first", "changed", "changed"]
    assert facts["previous_interval"] == pytest.approx(3600 / 1.3)
    assert facts["interval"] == pytest.approx(3600 / 1.3 / 1.38)
    assert facts["next_visit"].startswith("2027-01-15T08:23:26")
    assert facts["versions"] == [3, 2, 1]
    assert json.loads(why(PLAIN, "--json", "--data", data).out)["site_rests_until"] == "2027-01-15T08:10:00.000Z"


def test_unknown_pages_are_status_3(data: Path, tmp_path: Path) -> None:
    assert why("https://example.org/nothing-like-it", "--data", data).code == 3
    assert why(FRONT, "--data", tmp_path).code == 3
    assert why("nonsense://x", "--data", data).code == 2
    assert why("--data", data).code == 2


def page(history: list[tuple[float, Outcome]], interval: float | None = 3600.0, **facts: object) -> PageRecord:
    visits = tuple(Visit(at, outcome) for at, outcome in history)
    record = PageRecord(1, FRONT, "example.org", PageKind.PAGE, PageState.LIVE, How.SEED, 0, 0, 0.0)
    given = {"visits": len(visits), "history": visits, "interval": interval, "next_visit": NOW + 60, **facts}
    return replace(record, **given)


def test_the_rule_run_backwards_gives_what_it_was_given() -> None:
    rule = EmaRevisit(3600.0)
    history: list[tuple[float, Outcome]] = [(0.0, Outcome.FIRST)]
    interval = rule.next_interval(None, [], Outcome.FIRST)
    settings = RevisitSettings(floor=0.0, ceiling=1e9)
    for number, outcome in enumerate([2, 1, 1, 2, 2, 1, 2, 1, 1], 1):
        before = interval
        interval = rule.next_interval(before, [Visit(*each) for each in history], Outcome(outcome))
        history.append((float(number), Outcome(outcome)))
        step = last_step(page(history, interval), settings)
        assert step is not None
        assert step.exact
        assert step.before == pytest.approx(before)


def test_after_ten_visits_the_oldest_outcome_is_forgotten_and_said_so() -> None:
    record = page([(float(n), Outcome.UNCHANGED) for n in range(10)], 7200.0, visits=30)
    step = last_step(record, RevisitSettings())
    assert step is not None
    assert not step.exact
    told = account(record, RevisitSettings(), NOW)
    assert told[0] == "changed 0 of the last 10 visits"
    assert "from about 1 h 40 min to 2 h" in told[1]


def test_floor_and_ceiling_are_named() -> None:
    visits = [(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)]
    assert "held at the floor of 5 min" in account(page(visits, 300.0), RevisitSettings(), NOW)[1]
    assert "held at the ceiling of 30 d" in account(page(visits, 30 * 86_400.0), RevisitSettings(), NOW)[1]


def test_a_page_that_came_back_begins_anew() -> None:
    visits = [(0.0, Outcome.FIRST), (1.0, Outcome.GONE), (2.0, Outcome.CHANGED)]
    assert "the first interval is 1 h" in account(page(visits), RevisitSettings(), NOW)


def test_round_robin_says_that_it_does_not_look() -> None:
    told = account(page([(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)]), RevisitSettings(policy="fixed"), NOW)
    assert "every page is visited every 1 h, whatever it does" in told


def test_a_quarantined_page_is_not_visited_again() -> None:
    record = page([(0.0, Outcome.REFUSED)], None, failures=3, next_visit=None, state=PageState.QUARANTINED)
    told = account(replace(record, reason=Reason.QUARANTINED), RevisitSettings(), NOW)
    assert told[-2:] == ["the last 3 visits killed the parser: the page is not read again", "no next visit"]
