from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from levada.cli.terminal import bar, estimate_bars, time_line
from levada.core.records import Outcome, Visit
from levada.core.words import rough, rough_span
from levada.freshness.rates import RATES

moments = st.floats(0.0, 2e9)
visits = st.lists(st.tuples(moments, st.sampled_from(Outcome)), min_size=1, max_size=10).map(
    lambda met: [Visit(at, outcome) for at, outcome in met]
)


@given(visits, moments, st.none() | moments, st.integers(40, 100))
def test_a_line_never_grows_beyond_its_width(
    met: list[Visit], now: float, next_visit: float | None, width: int
) -> None:
    line, labels = time_line(met, now, next_visit, width, ("12 min ago", "now", "in 9 d"))
    assert len(line) <= width
    assert len(labels) <= width
    assert labels.startswith("12 min ago")


def test_visits_stand_at_their_times() -> None:
    met = [Visit(0.0, Outcome.FIRST), Visit(10.0, Outcome.CHANGED), Visit(15.0, Outcome.UNCHANGED)]
    line, labels = time_line(met, 20.0, 30.0, 31, ("20 s ago", "now", "in 10 s"))
    assert line == "+─────────●────○────│─────────▷"
    assert labels == "20 s ago           now  in 10 s"


def test_what_is_far_ahead_is_dashed() -> None:
    line, _ = time_line([Visit(0.0, Outcome.FIRST)], 20.0, 3000.0, 21, ("", "", ""))
    assert line == "+─────────│┄┄┄┄┄┄┄┄┄▷"


def test_of_two_visits_at_one_place_the_change_is_shown() -> None:
    met = [Visit(0.0, Outcome.CHANGED), Visit(0.1, Outcome.UNCHANGED), Visit(99.0, Outcome.UNCHANGED)]
    line, _ = time_line(met, 99.0, None, 11, ("", "", ""))
    assert line == "●─────────○"


def test_the_bars_stand_over_their_scale() -> None:
    bars, scale = estimate_bars([0.5, *[0.0] * 14, 1.0], RATES)
    assert bars == "██" + " " * 60 + "▄▄"
    assert scale.startswith("4min    18min   1.4h")
    assert scale.endswith("120d  never")
    assert scale.index("never") == bars.index("▄")


@given(st.floats(-1.0, 2.0), st.integers(1, 50))
def test_a_bar_stays_within_its_width(share: float, width: int) -> None:
    assert len(bar(share, width)) <= width


def test_a_guess_is_told_roughly() -> None:
    assert [rough(each) for each in (5.0, 90.0, 2400.0, 5400.0, 36_000.0, 1e6, 1e9)] == [
        "5 s",
        "1.5 min",
        "40 min",
        "1.5 h",
        "10 h",
        "12 d",
        "11,574 d",
    ]
    assert rough_span(5400.0, 25_200.0) == "between 1.5 and 7 h"
    assert rough_span(2400.0, 25_200.0) == "between 40 min and 7 h"
