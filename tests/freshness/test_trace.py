"""The paper's own trace of one URL, all rows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from levada.freshness.paper import ema
from levada.lab.reference import reference_rows

MINUTE = 60.0
ROUNDING = 0.011  # the paper prints two digits, some of them cut off
MISPRINTS = {0: (45.15, 60 / 1.3)}  # the row after it starts from 46.15 too

Row = tuple[list[int], float]


def rows() -> list[Row]:
    """The last ten outcomes, oldest first, and the printed interval in minutes."""
    return [
        ([int(code) for code in row["last_ten_oldest_first"].split(",")], float(row["interval_minutes"]))
        for row in reference_rows("freshness_url1041.csv")
    ]


def intervals(outcomes: list[int]) -> list[float]:
    """The intervals that follow, in minutes; the first visit is implied."""
    rule = ema(first=60 * MINUTE)
    memory = [0.0] * rule.width
    last = rule.step(memory, rule.parameters, 0.0, 0)
    found = []
    for outcome in outcomes:
        last = rule.step(memory, rule.parameters, last, outcome)
        found.append(last / MINUTE)
    return found


def test_the_trace_is_one_sequence_of_outcomes() -> None:
    histories = [last_ten for last_ten, _ in rows()]
    assert len(histories) == 12
    assert all(later[:-1] == sooner[1:] for sooner, later in pairwise(histories))


def test_every_row_is_met_within_print_rounding() -> None:
    printed = [MISPRINTS[place][1] if place in MISPRINTS else row[1] for place, row in enumerate(rows())]
    assert intervals([last_ten[-1] for last_ten, _ in rows()]) == pytest.approx(printed, abs=ROUNDING)


@pytest.mark.parametrize("place", MISPRINTS)
def test_a_misprint_is_one(place: int) -> None:
    printed, meant = MISPRINTS[place]
    assert rows()[place][1] == printed
    assert abs(printed - meant) > ROUNDING
    following = rows()[place + 1][1]
    assert abs(meant * 1.28 - following) <= ROUNDING < abs(printed * 1.28 - following)


def test_the_real_time_since_the_last_visit_plays_no_part() -> None:
    rule = ema()
    punctual, late = [0.0] * rule.width, [0.0] * rule.width
    for outcome in (0, 1, 2, 1):
        met = [
            rule.step(memory, rule.parameters, elapsed, outcome) for memory, elapsed in ((punctual, 1.0), (late, 1e6))
        ]
        assert met[0] == met[1]
