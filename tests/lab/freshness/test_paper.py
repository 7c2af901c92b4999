from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from levada.lab.freshness.histories import FIRST_HOUR, HOURS, classes_met, fitted_world
from levada.lab.freshness.measures import hourly
from levada.lab.freshness.paper import MISPRINTS, fitted_sections, trace_section
from levada.lab.freshness.worlds import class_counts
from levada.lab.reference import Section, judge, reference_rows
from tests.lab.freshness.small import visits_of, world_of


@pytest.fixture(scope="module")
def sections() -> list[Section]:
    return fitted_sections((1, 2))


def test_every_interval_of_the_trace_comes_out_within_print_rounding() -> None:
    first, *others = trace_section().claims
    assert len(others) == len(reference_rows("freshness_url1041.csv")) - 1 == 11
    assert {claim.verdict for claim in others} == {"holds"}
    assert (first.verdict, first.printed) == ("misprint", 45.15)
    assert first.measured == pytest.approx(60 / 1.3, abs=1e-3)


def test_the_trace_is_the_rule_seen_from_the_printed_outcomes() -> None:
    """Each row by the text of the rule alone, from the outcomes printed in the row before it."""
    rows = reference_rows("freshness_url1041.csv")
    before, interval = [1] * 10, 60.0
    for row, claim in zip(rows, trace_section().claims, strict=True):
        outcomes = [int(each) for each in row["last_ten_oldest_first"].split(",")]
        changes = before.count(2)
        interval = interval / (1.3 + 0.08 * changes) if outcomes[-1] == 2 else interval * (1.2 + 0.08 * changes)
        assert claim.measured == pytest.approx(interval, abs=1e-3)
        before = outcomes


def test_the_paper_contradicts_itself_where_we_say_so() -> None:
    hours = reference_rows("freshness_hourly.csv")
    unique = {(row["policy"], row["hour"]): int(row["unique_urls"]) for row in hours}
    for row in hours:
        records = 1046 + int(row["changed"]) + int(row["unique_urls"])
        assert records / unique["ema", row["hour"]] == pytest.approx(float(row["efficiency"]), abs=0.011)
        assert int(row["changed"]) + int(row["unchanged"]) == int(row["fetches"])
        assert 100 * int(row["changed"]) / 1046 == pytest.approx(float(row["precision_percent"]), abs=0.011)
    sums = [sum(counts) for counts in class_counts("real-time").values()]
    held = [sum(counts) for counts in class_counts("ema").values()]
    assert str(sums)[1:-1].replace(", 277", " and 277") in MISPRINTS[2]
    assert str(held)[1:-1].replace(", 281", " and 281") in MISPRINTS[2]


def test_the_class_counts_and_hours_of_the_rule_come_out_again(sections: list[Section]) -> None:
    classes, hours = sections
    assert len(classes.claims) == 2 * 6 * 4
    assert len(hours.claims) == 2 * (12 * 4 + 1)
    by_rule = Counter(claim.verdict for claim in hours.claims if "ema" in claim.name)
    assert by_rule["holds"] >= 36
    totals = {claim.name: claim for claim in classes.claims if claim.name.startswith("all, ema")}
    assert {name.split(": ")[1] for name, claim in totals.items() if claim.verdict == "holds"} >= {
        "static URLs",
        "medium URLs",
    }


def test_precision_of_the_rule_grows_as_in_the_paper(sections: list[Section]) -> None:
    found = [claim.measured for claim in sections[1].claims if "ema: precision" in claim.name]
    assert len(found) == HOURS
    assert np.mean(found[-4:]) > 1.5 * np.mean(found[:4])


def test_every_page_of_the_fitted_world_is_visited_before_the_first_hour() -> None:
    world = fitted_world(1)
    assert world.begins.max() < FIRST_HOUR
    assert world.horizon == FIRST_HOUR + HOURS * 3600
    assert len(hourly(world, visits_of(), FIRST_HOUR, HOURS)) == HOURS


def test_the_classes_have_the_borders_of_the_paper() -> None:
    world = world_of([], [], [], [], [], horizon=1e5)
    changed = (0, 1, 1, 2, 3)  # of four or five visits
    visits = [(page, 4000.0 + 10 * turn) for page in range(5) for turn in range(5 if page == 1 else 4)]
    met = [turn < changed[page] for page in range(5) for turn in range(5 if page == 1 else 4)]
    order = sorted(range(len(visits)), key=lambda place: visits[place][1])
    classes = classes_met(world, visits_of(*visits), np.array(met)[order])
    assert list(classes) == [0, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("measured", "corrected", "verdict"),
    [
        (10.5, None, "holds"),
        (11.5, None, "misses"),
        (20.5, 20.0, "misprint"),
        (10.5, 20.0, "misses"),
        (float("nan"), None, "misses"),
    ],
)
def test_a_claim_is_judged_by_its_band(measured: float, corrected: float | None, verdict: str) -> None:
    assert judge("a figure", 10.0, measured, within=1, corrected=corrected).verdict == verdict


def test_a_band_is_a_distance_or_a_share_whichever_is_wider() -> None:
    assert judge("a figure", 100.0, 100.0, within=1, share=0.1).band == (90.0, 110.0)
    assert judge("a figure", 1.0, 1.0, within=1, share=0.1).band == (0.0, 2.0)
