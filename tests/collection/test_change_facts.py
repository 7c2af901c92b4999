"""What is told of a change: short, true to the diff, and honest about what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import levada
from levada.collection.change_facts import PERIODS, Period, digests_of, facts_of_changes
from levada.core.durations import iso
from levada.core.records import ChangeEvent, ChangeFacts, ChangeKind, Document, VersionInfo
from tests.cli.collection import VAPUR, build


class Kept:
    """A store that holds these versions of one page."""

    def __init__(self, versions: dict[int, tuple[str, str]]) -> None:
        self._versions = versions
        self.read = 0

    def document(self, url: str, version: int | None = None) -> Document | None:
        self.read += 1
        found = self._versions.get(version or max(self._versions))
        if found is None:
            return None
        title, text = found
        return Document(
            page_id=1,
            url=url,
            site="a.example",
            version=version or 1,
            title=title,
            language="en",
            charset="utf-8",
            text=text,
            body=b"",
            status=200,
            headers=(),
            fetched_at=0.0,
            checked_at=0.0,
            words=0,
            similarity=0.5,
            searchable=True,
        )

    def versions(self, url: str) -> list[VersionInfo]:
        return [VersionInfo(each, 0.0, "", 0, 0.5) for each in sorted(self._versions, reverse=True)]


def event(version: int = 2, what: ChangeKind = ChangeKind.CHANGED, similarity: float = 0.5) -> ChangeEvent:
    return ChangeEvent(7, 60.0, what, 1, "https://a.example/x", "a.example", version, similarity, "X")


def told(before: str, after: str) -> ChangeFacts:
    store = Kept({1: ("X", before), 2: ("X", after)})
    return facts_of(store, event())


def facts_of(store: Kept, change: ChangeEvent, dashboard: str = "") -> ChangeFacts:
    return facts_of_changes(store, [change], dashboard)[0]  # type: ignore[arg-type]


def test_a_rewritten_line_is_shown_before_and_after_with_the_words_that_differ() -> None:
    facts = told("one\nthe price is 10 euros\nthree", "one\nthe price is 12 euros\nthree")
    assert (facts.added, facts.removed, facts.note) == (1, 1, "")
    assert facts.diff == "-the price is 10 euros\n+the price is 12 euros"
    assert [piece for piece, differs in facts.lines[1].pieces if differs] == ["12 "]


def test_of_a_long_line_the_surroundings_of_the_change_are_shown() -> None:
    facts = told(f"{'word ' * 400}old{' tail' * 400}", f"{'word ' * 400}new{' tail' * 400}")
    assert "new" in facts.lines[1].text
    assert facts.lines[1].text.startswith("…")
    assert facts.lines[1].text.endswith("…")
    assert len(facts.diff) < 700


def test_what_is_left_out_is_counted() -> None:
    facts = told("\n".join(f"old {n}" for n in range(40)), "\n".join(f"new line {n}" for n in range(40, 90)))
    assert (facts.added, facts.removed) == (50, 40)
    assert [line.sign for line in facts.lines] == ["-"] * 6 + ["+"] * 6
    assert facts.note == "78 more changed lines not shown"


def test_a_new_page_shows_how_it_begins() -> None:
    facts = facts_of(Kept({1: ("X", "first\n\nsecond")}), event(1, ChangeKind.NEW, 0.0))
    assert (facts.added, facts.removed, facts.diff) == (2, 0, "+first\n+second")


@pytest.mark.parametrize(
    ("kept", "change", "note"),
    [
        ({3: ("X", "c")}, event(2), "version 2 is no longer kept"),
        ({2: ("X", "b")}, event(2), "version 1 is no longer kept: nothing to compare with"),
        ({1: ("X", "a")}, event(1, ChangeKind.GONE), "the page is gone; what was last stored of it is version 1"),
        ({1: ("X", "a")}, event(1, ChangeKind.BACK, 1.0), "the page is back as it was"),
        ({1: ("X", "a"), 2: ("X", "a")}, event(2), "the main text is the same; what changed is around it"),
        ({1: ("W", "a"), 2: ("X", "a")}, event(2), "the title was 'W'"),
    ],
)
def test_a_change_without_a_diff_says_why(kept: dict[int, tuple[str, str]], change: ChangeEvent, note: str) -> None:
    facts = facts_of(Kept(kept), change)
    assert (facts.diff, facts.note) == ("", note)


def test_where_versions_were_thinned_out_a_change_is_compared_with_the_next_older_one() -> None:
    facts = facts_of(Kept({1: ("X", "a"), 3: ("X", "b"), 8: ("X", "c"), 9: ("X", "d")}), event(8))
    assert (facts.diff, facts.note) == ("-b\n+c", "compared with version 3, as no version between is kept")
    facts = facts_of(Kept({1: ("X", "a"), 8: ("X", "a")}), event(8))
    assert facts.note.endswith("what changed is around it; compared with version 1, as no version between is kept")


def test_the_link_leads_to_the_dashboard_where_its_address_is_known() -> None:
    store = Kept({1: ("X", "a"), 2: ("X", "b")})
    assert facts_of(store, event()).link == "https://a.example/x"
    for dashboard in ("https://levada.example", "https://levada.example/"):
        link = facts_of(store, event(), dashboard).link
        assert link == "https://levada.example/#/page?url=https%3A%2F%2Fa.example%2Fx&after=2"


def test_without_diffs_no_text_is_read() -> None:
    store = Kept({1: ("X", "a"), 2: ("X", "b")})
    (facts,) = facts_of_changes(store, [event()], diffs=False)  # type: ignore[arg-type]
    assert (store.read, facts.added, facts.diff, facts.note) == (0, None, "", "")


def test_many_large_changes_share_one_limit_of_work() -> None:
    large = "\n".join(f"line {n} of a large page" for n in range(100_000))
    store = Kept({1: ("X", large), 2: ("X", large + "\nmore")})
    facts = facts_of_changes(store, [event()] * 20, "")  # type: ignore[arg-type]
    compared = [each for each in facts if each.added is not None]
    assert 1 < len(compared) < 20
    assert all(each.diff == "+more" for each in compared)
    assert "not compared here" in facts[-1].note


LINES = st.lists(st.text(alphabet="abc \u202e\x1b[31m<&", max_size=60), max_size=40)


@given(LINES, LINES)
def test_a_short_diff_is_part_of_the_whole_and_its_counts_are_the_whole(
    before: Sequence[str], after: Sequence[str]
) -> None:
    facts = told("\n".join(before), "\n".join(after))
    shown = [each for each in facts.lines if each.sign == "+"]
    assert facts.added is not None
    assert facts.removed is not None
    assert len(facts.lines) <= 12
    assert len(facts.lines) == facts.added + facts.removed or "not shown" in facts.note
    assert "\x1b" not in facts.diff
    assert "\u202e" not in facts.diff
    assert len(shown) <= facts.added


@given(st.lists(st.floats(0, 1e7), max_size=50), st.sampled_from(list(PERIODS)))
def test_every_change_is_in_the_one_digest_of_its_time(times: list[float], period: Period) -> None:
    changes = [ChangeFacts(str(n), str(iso(at)), "new", "", "", "", 1, 1.0) for n, at in enumerate(times)]
    digests = digests_of(changes, period)
    assert sorted(each.id for digest in digests for each in digest.changes) == sorted(each.id for each in changes)
    assert [each.start for each in digests] == sorted({each.start for each in digests}, reverse=True)
    for digest in digests:
        assert digest.end - digest.start == PERIODS[period]
        for each in digest.changes:
            assert digest.start <= times[int(each.id)] + 0.0005 <= digest.end + 0.0005


def test_a_collection_says_what_came_and_went_with_each_change(tmp_path: Path) -> None:
    with levada.open(build(tmp_path / "data")) as news:
        changes = [news.facts(each) for each in news.changes() if each.url == VAPUR]
        assert [each.what for each in changes] == ["new", "changed", "changed"]
        assert changes[2].diff == "-Beşiktaş 10:00\n+Beşiktaş 10:45 ve 11:00\n+yeni hat"
        assert [each.what for each in map(news.facts, news.changes(kinds="gone"))] == ["gone"]
        with pytest.raises(levada.BadQuery, match="a change is new, changed, gone, back, not 'old'"):
            news.changes(kinds="old")
