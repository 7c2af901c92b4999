"""Active hours: the clock on the wall decides, in every zone and at every change of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import SettingsError
from levada.core.settings import parse_settings
from levada.core.site_rules.hours import ActiveHours, active_hours
from levada.core.site_rules.section import SiteSettings
from levada.testing.common import properties

ZONES = ["", "Europe/Istanbul", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
MINUTE = 60.0


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%a %d %H:%M")


def test_weekdays_end_on_friday_evening_and_begin_on_monday_morning() -> None:
    hours = active_hours(("weekdays 8-18 Europe/Istanbul",))
    assert hours.is_open(at("2026-11-20T14:59"))
    assert not hours.is_open(at("2026-11-20T15:00"))
    assert shown(hours.opens_at(at("2026-11-20T15:00"))) == "Mon 23 05:00"
    assert shown(hours.closes_at(at("2026-11-20T09:00"))) == "Fri 20 15:00"


def test_a_night_belongs_to_the_day_on_which_it_begins() -> None:
    hours = active_hours(("fri 22-6",))
    assert shown(hours.opens_at(at("2026-11-20T12:00"))) == "Fri 20 22:00"
    assert shown(hours.closes_at(at("2026-11-21T01:00"))) == "Sat 21 06:00"
    assert not hours.is_open(at("2026-11-20T05:00"))
    assert not hours.is_open(at("2026-11-21T22:30"))


def test_several_spans_and_ways_to_name_days() -> None:
    hours = active_hours(("mon-thu 8:30-12", "Monday+sat 14-24", "weekends 0-1"))
    week = at("2026-11-16T00:00")  # a Monday
    opened = [shown(week + n * 1800.0) for n in range(336) if hours.is_open(week + n * 1800.0)]
    assert opened[:3] == ["Mon 16 08:30", "Mon 16 09:00", "Mon 16 09:30"]
    assert len(opened) == 4 * 7 + 2 * 20 + 2 * 2
    assert hours.share == pytest.approx(len(opened) / 336)


def test_when_the_clock_is_set_forward_the_hours_begin_with_the_first_minute_that_there_is() -> None:
    hours = active_hours(("sun 2:30-4 Europe/Berlin",))
    opens = hours.opens_at(at("2026-03-29T00:00", "Europe/Berlin"))
    assert opens == at("2026-03-29T01:00")  # 3:00 in Berlin, which follows 1:59
    assert hours.closes_at(opens) == at("2026-03-29T02:00")


def test_an_hour_that_comes_twice_is_open_twice() -> None:
    hours = active_hours(("sun 2-3 Europe/Berlin",))
    opens = hours.opens_at(at("2026-10-25T00:00", "Europe/Berlin"))
    assert hours.closes_at(opens) - opens == 2 * 3600.0


def test_hours_that_never_end_are_always_open() -> None:
    assert active_hours(("daily 0-24",)).opens_at(5.0) == 5.0
    assert active_hours(("daily 0-24",)).share == 1.0


SPANS = st.builds(
    lambda days, start, length, zone: f"{days} {start // 60}:{start % 60:02}-{_end(start + length)} {zone}".strip(),
    st.sampled_from(["daily", "weekdays", "weekends", "mon", "sun", "fri-mon", "tue+thu"]),
    st.integers(0, 1439),
    st.integers(1, 1439),
    st.sampled_from(ZONES),
)


def _end(minute: int) -> str:
    minute %= 1440
    return f"{minute // 60}:{minute % 60:02}"


@properties(150)
@given(st.lists(SPANS, min_size=1, max_size=3), st.integers(0, 2 * 365 * 24 * 60))
def test_the_next_opening_and_closing_are_the_first_moments_at_which_the_wall_clock_says_so(
    texts: list[str], minute: int
) -> None:
    hours = ActiveHours(texts)
    start = at("2026-01-01T00:00") + minute * MINUTE
    opens, closes = hours.opens_at(start), hours.closes_at(start)
    changes = max(opens, closes)
    is_open = by_the_wall(texts, start)
    assert hours.is_open(start) is is_open
    assert (opens == start) is is_open
    moment = start
    while moment < min(changes, start + 8 * 86_400.0):
        assert by_the_wall(texts, moment) is is_open
        moment += MINUTE * 7
    if changes < start + 13 * 86_400.0:
        assert by_the_wall(texts, changes) is not is_open
        assert by_the_wall(texts, changes - 1.0) is is_open


def by_the_wall(texts: list[str], moment: float) -> bool:
    """A plain reading of the clock, minute by minute."""
    week = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    groups = {
        "daily": week,
        "weekdays": week[:5],
        "weekends": week[5:],
        "fri-mon": ["fri", "sat", "sun", "mon"],
        "tue+thu": ["tue", "thu"],
    }
    for text in texts:
        days, times, zone = (*text.split(), "UTC")[:3]
        local = datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None)
        first, last = (int(each.split(":")[0]) * 60 + int(each.split(":")[1]) for each in times.split("-"))
        for day in (local, local - timedelta(days=1)):
            if week[day.weekday()] in groups.get(days, [days]):
                begin = day.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(minutes=first)
                end = begin + timedelta(minutes=(last - first - 1) % 1440 + 1)
                if begin <= local < end:
                    return True
    return False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8-18", "hours takes days, times and a time zone"),
        ("weekdays 8-18 Europe/Instanbul", "no time zone: did you mean Europe/Istanbul"),
        ("weekdays 8-18 ../../etc/passwd", "no time zone"),
        ("mondays 8-18", "'mondays' is no day"),
        ("daily 8", "no times: write 8-18, 8:30-17 or 22-6"),
        ("daily 8-25", "no times"),
        ("daily 8:60-9", "no times"),
        ("daily 8-8", "begins and ends at the same time: the whole day is 0-24"),
    ],
)
def test_hours_that_are_none_are_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        SiteSettings(match="example.org", hours=text)


def test_hours_may_be_one_text_or_several() -> None:
    one = parse_settings('[[site]]\nmatch = "a.test"\nhours = "daily 22-6"\n', "x").site[0]
    two = parse_settings('[[site]]\nmatch = "a.test"\nhours = ["daily 22-6", "sat 8-9"]\n', "x").site[0]
    assert (one.hours, two.hours) == (("daily 22-6",), ("daily 22-6", "sat 8-9"))


@pytest.mark.parametrize("key", ["hours", "delay", "per_hour", "max_pages"])
def test_what_holds_for_a_whole_site_is_not_written_for_a_path(key: str) -> None:
    value = '"daily 8-9"' if key == "hours" else 5
    with pytest.raises(SettingsError, match=f'{key} holds for a whole site: .* match = "example.org"'):
        parse_settings(f'[[site]]\nmatch = "example.org/docs/"\n{key} = {value}\n', "x")
