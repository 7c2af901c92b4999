"""Text from outside is printed, never executed by the terminal."""

from __future__ import annotations

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.cli.terminal import printer
from levada.core.durations import duration, iso, moment, relative
from levada.core.errors import UsageError
from levada.core.words import harmless, line, paragraphs, plural, shortened, size
from levada.search.query import length_of_time, since_moment

ANYTHING = st.text(
    st.one_of(st.characters(codec=None), st.sampled_from("\x1b\x9b\x9d\x07[]0;m\\\r\n\t\x85\u2028\u202e")),
    max_size=60,
)


@given(ANYTHING)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (line(text), harmless(text), *paragraphs(text)):
        assert all(unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in shown)
        assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jclear", "clear"),
        ("\x1bcreset", "reset"),
        ("a\r\nb\u2028c\td", "a b c d"),
        ("\u202eevil", "evil"),
        ("İstanbul’da çöğüş", "İstanbul’da çöğüş"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("half \ud83d pair", "half pair"),
    ],
)
def test_a_line_is_harmless_and_keeps_its_words(hostile: str, shown: str) -> None:
    assert line(hostile) == shown


def test_lines_stay_lines() -> None:
    assert paragraphs("one\n\x1b[1mtwo\x1b[0m\r\nthree") == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (0.7, "1 s"),
        (45, "45 s"),
        (59.9, "1 min"),
        (720, "12 min"),
        (3_600, "1 h"),
        (7_500, "2 h 5 min"),
        (50_000, "14 h"),
        (100_000, "1 d 4 h"),
        (1e7, "116 d"),
    ],
)
def test_durations_are_told_in_the_unit_that_fits(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@given(st.floats(min_value=0, max_value=1e12))
def test_every_duration_can_be_told(seconds: float) -> None:
    number, unit, *_ = duration(seconds).split()
    assert int(number) >= 0
    assert unit in ("s", "min", "h", "d")


def test_times_are_told_from_now_and_absolutely() -> None:
    assert relative(1_000 + 720, 1_000) == "in 12 min"
    assert relative(1_000, 1_000 + 10_800) == "3 h ago"
    assert relative(5.0, 5.2) == "now"
    assert moment(1_800_000_000) == "2027-01-15 08:00 UTC"
    assert iso(1_800_000_000.25) == "2027-01-15T08:00:00.250Z"
    assert iso(None) is None
    assert moment(1e300) == "unknown"
    assert iso(float("nan")) is None


def test_since_means_what_it_means_in_a_search() -> None:
    assert since_moment("24h", 100_000.0) == 100_000.0 - 86_400.0
    assert since_moment("2027-01-15", 0.0) == 1_799_971_200.0


@pytest.mark.parametrize("typed", ["", "soon", "7", "-3d", "7d OR lang:tr", "7d x", '7d"', "2026-13-01"])
def test_what_is_no_time_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        since_moment(typed, 0.0)


def test_sizes_and_counts_are_short() -> None:
    assert [size(n) for n in (0, 999, 1_400, 2_500_000, 3e9, 5e15)] == [
        "0 bytes",
        "999 bytes",
        "1.4 kB",
        "2.5 MB",
        "3.0 GB",
        "5,000 TB",
    ]
    assert plural(1, "page") == "1 page"
    assert plural(2_000, "page") == "2,000 pages"
    assert (plural(1, "query"), plural(0, "query"), plural(2, "day")) == ("1 query", "0 queries", "2 days")
    assert shortened("abcdef", 4) == "abc…"


def test_a_screen_that_says_it_has_no_columns_is_written_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    out = StringIO()
    printer(out).print("here")
    assert out.getvalue() == "here\n"


@pytest.mark.parametrize("typed", ["", "x", "0h", "-1d", "2026-01-31", "99999999999999d"])
def test_what_is_no_length_of_time_is_refused_by_its_name(typed: str) -> None:
    with pytest.raises(UsageError, match=r"^window .* is not a duration"):
        length_of_time(typed, "window")


def test_a_length_of_time_is_in_seconds() -> None:
    assert (length_of_time("90m", "window"), length_of_time("1d", "window")) == (5400.0, 86_400.0)
