from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.collection.explain import explanation, last_step, sentence
from levada.core.folder import DataFolder
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, Visit
from levada.core.settings import RevisitSettings
from levada.freshness.paper import ema
from tests.cli.collection import BLOCKED, DOWN, FRONT, GONE, NEW, NOW, PLAIN, VAPUR, build, command, drop

why = command("why")
EMA = RevisitSettings(policy="ema")


@pytest.fixture(scope="session")
def by_the_paper(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same collection, under the paper's rule."""
    path = shutil.copytree(data, tmp_path_factory.mktemp("paper") / "levada-data")
    folder = DataFolder(path)
    folder.save_settings(replace(folder.settings(), revisit=EMA))
    return Path(path)


def test_the_next_visit_is_explained_by_the_last_ones(by_the_paper: Path) -> None:
    answer = why(VAPUR, "--data", by_the_paper)
    assert answer.code == 0
    assert "3 in all: 2 met a change (●), 0 met none (○)" in answer.out
    assert "Changed 2 of 3 visits" in answer.out
    assert "the paper's rule" not in answer.out
    assert "the interval went from 46 to 33 min" in answer.out
    assert "next visit in 23 min (2027-01-15 08:23 UTC)" in answer.out
    assert f"link on {FRONT}" in answer.out
    assert f"1 to 3 are stored; levada diff {VAPUR} --data {by_the_paper}" in answer.out


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (BLOCKED, "refused: robots"),
        (BLOCKED, "robots.txt of example.org, read 2027-01-14 22:00 UTC, does not allow this page for 'levada'"),
        (DOWN, "the last 2 visits failed (connect): tried again after 5 min, doubling up to 30 d"),
        (GONE, "the last visit found it gone"),
        (NEW, "first visit due since 10 h"),
        (NEW, "none yet"),
        (PLAIN, "rests after 6 failures in a row: asked again in 10 min"),
        (PLAIN, "next visit due since 9 h"),
        (FRONT, "the first interval is 1 h"),
        (FRONT, "given by the user"),
    ],
)
def test_every_state_is_explained(by_the_paper: Path, url: str, told: str) -> None:
    assert told in why(url, "--data", by_the_paper).out


def test_a_page_of_a_dropped_site_has_no_next_visit(tmp_path: Path) -> None:
    data = build(tmp_path / "levada-data")
    assert "next visit due since" in why(FRONT, "--data", data).out
    drop(data, "example.org")
    told = why(FRONT, "--data", data).out
    assert "no next visit." in told
    assert " due" not in told
    assert "example.org was dropped: adding it in the dashboard takes it up again" in told
    facts = json.loads(why(FRONT, "--json", "--data", data).out)
    assert (facts["site_dropped"], facts["site_rests_until"], facts["next_visit"]) == (True, None, None)
    assert json.loads(why(PLAIN, "--json", "--data", data).out)["site_dropped"] is False


def test_json_has_all_facts(by_the_paper: Path) -> None:
    data = by_the_paper
    facts = json.loads(why(VAPUR, "--json", "--data", data).out)
    assert facts["state"] == "live"
    assert facts["found_on"] == FRONT
    assert [visit["outcome"] for visit in facts["history"]] == ["first", "changed", "changed"]
    assert facts["previous_interval"] == pytest.approx(3600 / 1.3)
    assert facts["interval"] == pytest.approx(3600 / 1.3 / 1.38)
    assert facts["next_visit"].startswith("2027-01-15T08:23:26")
    assert facts["versions"] == [3, 2, 1]
    assert facts["policy"] == "ema"
    assert facts["price_seconds"] is None
    assert facts["sentence"].startswith("Changed 2 of 3 visits; the last visit met a change: the interval went")
    assert facts["paper_interval"] == pytest.approx(facts["interval"])
    assert json.loads(why(PLAIN, "--json", "--data", data).out)["site_rests_until"] == "2027-01-15T08:10:00.000Z"


def test_unknown_pages_are_status_3(data: Path, tmp_path: Path) -> None:
    assert why("https://example.org/nothing-like-it", "--data", data).code == 3
    assert why(FRONT, "--data", tmp_path).code == 3
    assert why("nonsense://x", "--data", data).code == 2
    assert why("--data", data).code == 2
    assert why(FRONT, "--budget", "--data", data).code == 2


def page(history: list[tuple[float, Outcome]], interval: float | None = 3600.0, **facts: object) -> PageRecord:
    visits = tuple(Visit(at, outcome) for at, outcome in history)
    record = PageRecord(1, FRONT, "example.org", PageKind.PAGE, PageState.LIVE, DiscoveredBy.SEED, 0, 0, 0.0)
    given = {"visits": len(visits), "history": visits, "interval": interval, "next_visit": NOW + 60, **facts}
    return replace(record, **given)


def test_the_rule_run_backwards_gives_what_it_was_given() -> None:
    rule = ema()
    memory = [0.0] * rule.width
    history: list[tuple[float, Outcome]] = [(0.0, Outcome.FIRST)]
    interval = rule.step(memory, rule.parameters, 0.0, 0)
    settings = RevisitSettings(policy="ema", floor=0.0, ceiling=1e9)
    for number, outcome in enumerate([2, 1, 1, 2, 2, 1, 2, 1, 1], 1):
        before = interval
        interval = rule.step(memory, rule.parameters, before, outcome)
        history.append((float(number), Outcome(outcome)))
        step = last_step(page(history, interval), settings)
        assert step is not None
        assert step.exact
        assert step.before == pytest.approx(before)


def test_after_ten_visits_the_oldest_outcome_is_forgotten_and_said_so() -> None:
    record = page([(float(n), Outcome.UNCHANGED) for n in range(10)], 7200.0, visits=30)
    step = last_step(record, EMA)
    assert step is not None
    assert not step.exact
    told = explanation(record, EMA, NOW)
    assert told[0] == "changed 0 of the last 10 visits"
    assert "from about 1 h 40 min to 2 h" in told[1]


def test_floor_and_ceiling_are_named() -> None:
    visits = [(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)]
    assert "held at the floor of 5 min" in explanation(page(visits, 300.0), EMA, NOW)[1]
    assert "held at the ceiling of 30 d" in explanation(page(visits, 30 * 86_400.0), EMA, NOW)[1]


def test_a_page_that_came_back_begins_anew() -> None:
    visits = [(0.0, Outcome.FIRST), (1.0, Outcome.GONE), (2.0, Outcome.CHANGED)]
    assert "the first interval is 1 h" in explanation(page(visits), EMA, NOW)


def test_round_robin_says_that_it_does_not_look() -> None:
    told = explanation(page([(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)]), RevisitSettings(policy="fixed"), NOW)
    assert "every page is visited every 1 h, whatever it does" in told


def test_a_quarantined_page_is_not_visited_again() -> None:
    record = page([(0.0, Outcome.REFUSED)], None, failures=3, next_visit=None, state=PageState.QUARANTINED)
    told = explanation(replace(record, reason=Reason.QUARANTINED), EMA, NOW)
    assert told[-2:] == ["the last 3 visits killed the parser: the page is not read again", "no next visit"]


def test_other_rules_name_themselves() -> None:
    told = explanation(page([(0.0, Outcome.FIRST), (1.0, Outcome.CHANGED)]), RevisitSettings(policy="nutch"), NOW)
    assert "the rule 'nutch' came to an interval of 1 h" in told


@pytest.mark.parametrize(
    ("reason", "leads"),
    [(Reason.REDIRECTED, "it redirects to"), (Reason.DUPLICATE, "it is a copy of")],
)
def test_an_address_that_leads_elsewhere_says_so(reason: Reason, leads: str) -> None:
    target = "https://b.example/x"
    record = page([(0.0, Outcome.FIRST)], state=PageState.ELSEWHERE, reason=reason, leads_to=target)
    assert f"{leads} {target}, and is looked at again after 1 h" in explanation(record, EMA, NOW)


def test_an_account_is_one_sentence() -> None:
    assert sentence(["never visited yet", "no next visit"]) == "Never visited yet: no next visit."
    assert sentence(["once", "failed: again", "now"]) == "Once; failed: again; now."
    assert sentence(["now"]) == "Now."
