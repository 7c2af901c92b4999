"""`levada why` for a URL that is not known: what kept it out."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.core.folder import DataFolder
from levada.core.reasons import Reason
from levada.core.records import Outcome, PageState, Refusal, Visit, VisitResult
from levada.store.sqlite import SqliteStore
from tests.cli.collection import FRONT, NOW, PLAIN, build, command, drop

why = command("why")
diff = command("diff")

HIDDEN = "https://example.org/account/1"


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("refusing") / "levada-data")
    store = SqliteStore(DataFolder(path).database)
    try:
        store.add([], [Refusal(HIDDEN, "example.org", Reason.NOFOLLOW)], NOW)
    finally:
        store.close()
    drop(path, "plain.example:8080")
    return path


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (HIDDEN, "it was refused when it was found: nofollow"),
        ("https://example.org/private/y", "robots.txt of example.org does not allow it"),
        ("exmaple.org", "exmaple.org is none of the start sites"),
        (f"{PLAIN}x", "plain.example:8080 was dropped: adding it in the dashboard takes it up again"),
        ("https://example.org/a/a/a/a/a/a", "an address like this is not followed (repeating-path)"),
    ],
)
def test_an_address_that_is_kept_out_says_by_what(refusing: Path, url: str, told: str) -> None:
    for ask in (why, diff):
        answer = ask(url, "--data", refusing)
        assert answer.code == 3
        assert told in answer.said


def test_a_page_with_more_links_than_are_taken_says_so_and_so_does_a_page_that_may_be_among_them(
    tmp_path: Path,
) -> None:
    path = build(tmp_path / "levada-data")
    store = SqliteStore(DataFolder(path).database)
    try:
        lease = store.lease_url(FRONT, NOW, 60.0, out_of_turn=True)
        assert lease is not None
        cut = Refusal("https://example.org/entry/9", "example.org", Reason.LINKS, 1_200)
        visit = Visit(NOW, Outcome.UNCHANGED)
        result = VisitResult(lease, visit, PageState.LIVE, 60.0, NOW + 60.0, reason=Reason.LINKS, refused=(cut,))
        assert store.commit([result]) == [True]
    finally:
        store.close()
    assert "it has more links than are taken of one page" in why(FRONT, "--data", path).out
    told = why("https://example.org/entry/77", "--data", path)
    assert told.code == 3
    assert "it may be one of the 1,200 that were left out (links)" in told.said
