"""When a message comes: digests and quiet hours, also on days on which clocks are moved."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.errors import UsageError
from levada.core.subscriptions import Schedule
from levada.follow.notify.schedule import checked, next_daily, quiet_hours, quiet_until, release_at

LISBON = "Europe/Lisbon"
FORWARD, BACK = "2026-03-29", "2026-10-25"  # at 01:00 UTC clocks in Lisbon skip an hour, and show one twice
ZONES = (LISBON, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")


def at(written: str, zone: str = LISBON, fold: int = 0) -> float:
    return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def is_quiet(schedule: Schedule, moment: float) -> bool:
    return quiet_until(schedule, moment) != moment


@given(
    st.sampled_from(ZONES),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from([FORWARD, BACK, "2026-03-08", "2026-11-01", "2026-04-05", "2026-07-01"]),
    st.integers(0, 2 * 1440),
)
@settings(max_examples=300, deadline=None)
def test_quiet_hours_end_at_the_first_minute_that_is_not_quiet(
    zone: str, start: int, end: int, day: str, minute: int
) -> None:
    if start == end:
        return
    clock = f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    schedule = Schedule(quiet=clock, zone=zone)
    now = at(f"{day}T00:00", zone) + 60.0 * minute
    until = quiet_until(schedule, now)
    assert not is_quiet(schedule, until)
    if until != now:
        assert all(is_quiet(schedule, now + 60.0 * step) for step in range(int((until - now) // 60)))


@pytest.mark.parametrize(
    ("now", "time", "expected"),
    [
        (at("2026-07-01T07:00"), "08:00", at("2026-07-01T08:00")),
        (at("2026-07-01T08:00"), "08:00", at("2026-07-02T08:00")),
        (at(f"{FORWARD}T00:10"), "01:30", at(f"{FORWARD}T02:00")),  # 01:30 is skipped: when clocks are moved
        (at("2026-03-28T09:00"), "08:00", at(f"{FORWARD}T08:00")),
        (at(f"{BACK}T00:10"), "01:30", at(f"{BACK}T01:30")),
        (at(f"{BACK}T01:30"), "01:30", at("2026-10-26T01:30")),  # the second 01:30 of that day is not another
    ],
)
def test_a_daily_digest_comes_once_a_day_also_when_clocks_are_moved(now: float, time: str, expected: float) -> None:
    assert next_daily(now, time, LISBON) == expected


def test_what_waits_for_a_digest_is_due_at_the_next_run_however_late_it_is() -> None:
    """A crontab that runs once an hour finds it due at the first run after its time."""
    schedule = Schedule(digest="daily", at="07:30", zone=LISBON)
    seen = at("2026-07-01T10:00")
    due = [
        hour
        for hour in range(24, 72)
        if release_at(schedule, seen, False, at("2026-07-01T00:00") + 3600.0 * hour)
        <= at("2026-07-01T00:00") + 3600.0 * hour
    ]
    assert due[0] == 24 + 8


def test_hours_are_those_of_the_zone() -> None:
    schedule = Schedule(digest="hourly", zone="Asia/Kathmandu")  # 5:45 ahead
    assert release_at(schedule, at("2026-07-01T10:05", "Asia/Kathmandu"), False, 0.0) == at(
        "2026-07-01T11:00", "Asia/Kathmandu"
    )


def test_quiet_hours_hold_back_what_is_full_and_what_a_digest_brings() -> None:
    night = Schedule(quiet="22:00-07:00", zone=LISBON)
    assert release_at(night, at("2026-07-01T23:00"), True, at("2026-07-01T23:01")) == at("2026-07-02T07:00")
    digest = Schedule(digest="daily", at="06:00", quiet="22:00-07:00", zone=LISBON)
    assert release_at(digest, at("2026-07-01T12:00"), False, at("2026-07-01T12:00")) == at("2026-07-02T07:00")


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        (Schedule(zone="Mars/Base"), "no time zone"),
        (Schedule(zone="../../etc/passwd"), "no time zone"),
        (Schedule(at="24:00"), "time of day"),
        (Schedule(at="8"), "time of day"),
        (Schedule(quiet="22:00"), "must be like"),
        (Schedule(quiet="22:00-22:00"), "the whole day"),
        (Schedule(quiet="22:00-7"), "time of day"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(schedule: Schedule, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        checked(schedule)


def test_quiet_hours_are_read_with_or_without_spaces() -> None:
    assert quiet_hours("22:00 - 7:05") == (1320, 425)
