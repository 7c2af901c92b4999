"""`levada changes`: what changed lately, for people and programs, and as it comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, Outcome, PageState, Visit, VisitResult
from levada.store.sqlite import SqliteStore
from tests.cli.collection import ESCAPE, GONE, HOUR, NOW, VAPUR, build, command, version

changes = command("changes")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return build(tmp_path / "levada-data")


def test_changes_are_grouped_by_day_with_the_lines_that_came_and_went(data: Path) -> None:
    answer = changes("--since", "30d", "--data", data)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert [line for line in lines if line.endswith("(UTC)")] == ["2027-01-14 (UTC)", "2027-01-15 (UTC)"]
    last = lines[lines.index("2027-01-15 (UTC)") :]
    assert last[1:] == [
        "  07:50  changed  Vapur saatleri (yeni)",
        "         https://example.org/vapur  25% of the words; 2 lines came, 1 went",
        "         -Beşiktaş 10:00",
        "         +Beşiktaş 10:45 ve 11:00",
        "         +yeni hat",
        "         (the title was 'Vapur saatleri')",
        "9 changes since 30d: 6 new, 2 changed, 1 gone",
    ]
    assert "\x1b" not in answer.out
    assert ESCAPE in answer.out


def test_programs_get_a_line_for_each_change(data: Path) -> None:
    answer = changes("--since", "30d", "--json", "--kind", "changed,gone", "--data", data)
    told = [json.loads(line) for line in answer.out.splitlines()]
    assert [each["url"] for each in told] == [GONE, VAPUR, VAPUR]
    assert told[1]["diff"] == "-Kadıköy 08:15\n+Kadıköy 08:30"


def test_filters_and_limits_hold(data: Path) -> None:
    answer = changes("--since", "30d", "--limit", 1, "--words", "vapur", "--least", 0.2, "--no-diff", "--data", data)
    assert "+yeni hat" not in answer.out
    assert answer.out.splitlines()[-1] == "2 changes since 30d: 1 new, 1 changed; the newest 1 shown"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--since", "1m"), "nothing changed since 1m"),
        (("--since", "soon"), "--since 'soon' is not a time"),
        (("--kind", "old"), "a change is new, changed, gone, back, not 'old'"),
        (("--site", "http://example.org/x"), "is not a host name"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_cannot_be_shown_is_said_in_a_sentence(
    data: Path, typed: tuple[str, ...], more: tuple[str, ...], said: str
) -> None:
    answer = changes(*typed, *more, "--data", data)
    assert (answer.code != 0, answer.out) == (True, "")
    assert said in answer.said


def test_followed_changes_are_printed_as_they_come_until_ctrl_c(data: Path) -> None:
    words = [sys.executable, "-m", "levada", "changes", "--follow", "--json", "--since", "30d", "--limit", "1"]
    with subprocess.Popen([*words, "--data", str(data)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"] == VAPUR  # the newest one; it follows from here on
        for number in range(3):
            url = f"https://later.example/{number}"
            add_page(data, url)
            told = json.loads(process.stdout.readline())
            assert (told["what"], told["url"], told["diff"]) == ("new", url, f"+text {number}")
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == ""
        assert process.wait(20) == 0


def add_page(data: Path, url: str) -> None:
    store = SqliteStore(DataFolder(data).database)
    store.add([FoundUrl(url, "later.example", admit=True)], [], NOW)
    lease = next(each for each in store.lease(NOW, 100, 60.0) if each.page.url == url)
    stored = version("later", f"text {url[-1]}")
    visit = Visit(NOW, Outcome.FIRST)
    store.commit([VisitResult(lease, visit, PageState.LIVE, HOUR, NOW + HOUR, version=stored)])
    store.close()
