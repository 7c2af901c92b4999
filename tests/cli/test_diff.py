from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from levada.collection.addresses import spellings
from levada.core.errors import BadUrl
from levada.core.folder import DataFolder
from levada.core.reasons import Reason
from levada.core.records import Outcome, PageState
from levada.store.sqlite import SqliteStore
from tests.cli.collection import BLOCKED, ESCAPE, FRONT, NEW, NOW, VAPUR, build, command, settle

diff = command("diff")


def test_the_last_change_is_shown(data: Path) -> None:
    answer = diff(VAPUR, "--data", data)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[:2] == ["Vapur saatleri (yeni)", VAPUR]
    assert "version 2 → 3, 10 min ago (2027-01-15 07:50 UTC): 75% the same" in lines[2]
    assert "title before: Vapur saatleri" in lines
    assert "-Beşiktaş 10:00" in lines
    assert "+Beşiktaş 10:45 ve 11:00" in lines
    assert "+yeni hat" in lines


def test_older_changes_are_counted_back_from_the_last(data: Path) -> None:
    assert "+Kadıköy 08:30" in diff(VAPUR, "--at", 2, "--data", data).out
    beyond = diff(VAPUR, "--at", 3, "--data", data)
    assert beyond.code == 3
    assert "versions 1 to 3" in beyond.said


def test_context_and_words_can_be_chosen(data: Path) -> None:
    lines = diff(VAPUR, "--at", 2, "--words", "--context", 0, "--data", data).out.splitlines()
    assert lines[-2:] == ["@@ -2,1 +2,1 @@", "Kadıköy 08:[-15-]{+30+}"]


def test_versions_are_listed(data: Path) -> None:
    shown = diff(VAPUR, "--versions", "--data", data).out
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [
        ["--at", "1"],
        ["--at", "2"],
        ["oldest", "version"],
    ]
    listed = json.loads(diff(VAPUR, "--versions", "--json", "--data", data).out)
    assert [each["version"] for each in listed["versions"]] == [3, 2, 1]


def test_json_has_the_change(data: Path) -> None:
    change = json.loads(diff(VAPUR, "--json", "--data", data).out)
    assert (change["from"]["version"], change["to"]["version"]) == (2, 3)
    assert (change["removed"], change["added"]) == (1, 2)
    signs = [line["sign"] for hunk in change["hunks"] for line in hunk["lines"]]
    assert signs.count("+") == 2


def test_a_page_that_never_changed_says_so(data: Path) -> None:
    answer = diff(FRONT, "--data", data)
    assert answer.code == 0
    assert "has not changed since it was first stored, 10 h ago" in answer.out
    assert json.loads(diff(FRONT, "--json", "--data", data).out)["from"] is None
    assert diff(FRONT, "--at", 2, "--data", data).code == 3


def test_the_scheme_may_be_left_out(data: Path) -> None:
    assert VAPUR in diff("example.org/vapur", "--data", data).out
    assert "http://plain.example:8080/" in diff("plain.example:8080", "--data", data).out
    assert VAPUR in diff("HTTPS://Example.ORG:443/vapur#top", "--data", data).out


def test_an_unknown_page_names_its_neighbours(data: Path) -> None:
    answer = diff("example.org/vapurr", "--data", data)
    assert answer.code == 3
    assert f"known there: {VAPUR}" in answer.said
    assert "known there" not in diff("https://unknown.example/", "--data", data).said


@pytest.mark.parametrize("url", [BLOCKED, NEW])
def test_a_page_of_which_nothing_is_stored_leads_to_why(data: Path, url: str) -> None:
    answer = diff(url, "--data", data)
    assert answer.code == 3
    assert f"levada why {url} --data {data}" in answer.said


def test_a_page_whose_content_is_elsewhere_says_where(tmp_path: Path) -> None:
    data = build(tmp_path)
    with closing(SqliteStore(DataFolder(data).database)) as store:
        moved = {"state": PageState.ELSEWHERE, "reason": Reason.REDIRECTED, "leads_to": VAPUR}
        settle(store, NEW, NOW, Outcome.FIRST, **moved)  # type: ignore[arg-type]
    answer = diff(NEW, "--data", data)
    assert answer.code == 3
    assert f"its content is that of {VAPUR}" in answer.said


def test_a_hostile_title_is_harmless(data: Path) -> None:
    answer = diff(ESCAPE, "--data", data)
    assert answer.out.splitlines()[0] == "kırmızı haber"


@pytest.mark.parametrize(
    "wrong",
    [
        ["ftp://example.org/"],
        ["file:///etc/passwd"],
        ["https://"],
        ["http://u:p@example.org/"],
        [""],
        [],
        [FRONT, "--at", "0"],
    ],
)
def test_what_is_no_address_is_wrong_usage(data: Path, wrong: list[str]) -> None:
    assert diff(*wrong, "--data", data).code == 2


def test_spellings_try_https_first() -> None:
    assert spellings("example.org/x") == ["https://example.org/x", "http://example.org/x"]
    assert spellings("example.org:8080") == ["https://example.org:8080/", "http://example.org:8080/"]
    assert spellings("http://example.org") == ["http://example.org/"]
    with pytest.raises(BadUrl):
        spellings("ws://example.org/")
