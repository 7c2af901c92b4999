"""Lines that are another at each visit are learnt, and count again once they stand still."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.records import Outcome, Visit
from levada.pages.unsteady import CLOSE, LEARNT, MOST_LINES, Watch, changes_in_a_row

SENTENCES = [f"The council of town {number} met again and talked about the bridge." for number in range(12)]


def text(*, motto: str = "", price: str = "12,50", number: int = 0) -> bytes:
    lines = list(SENTENCES)
    lines[3] = f"The ticket costs {price} EUR."
    lines[9] = f"The vote was {number} to 3."
    return "\n".join([*lines[:6], *([motto] if motto else []), *lines[6:]]).encode()


def visited(texts: list[bytes], changes: int | None = None) -> tuple[Watch, list[bytes]]:
    """What is known after visits of these texts, and what of each was compared."""
    watch, compared = Watch(), list[bytes]()
    for run, each in enumerate(texts):
        watch = Watch.unpacked(watch.after(each, run if changes is None else changes).packed())
        compared.append(watch.compared(each))
    return watch, compared


MOTTOS = [f"A thought for hour {number}" for number in range(20)]


def test_a_line_that_is_another_at_each_visit_is_learnt_and_left_out() -> None:
    _, compared = visited([text(motto=motto) for motto in MOTTOS])
    versions = [one != other for one, other in pairwise(compared)]
    assert versions == [True] * (LEARNT + 1) + [False] * (len(MOTTOS) - LEARNT - 2)
    assert compared[-1] == text()


@pytest.mark.parametrize("edited", [text(motto="Another", price="13,50"), text(motto="Another", number=7)])
def test_an_edit_beside_a_learnt_line_is_seen(edited: bytes) -> None:
    watch, compared = visited([text(motto=motto) for motto in MOTTOS])
    assert watch.after(edited, 0).compared(edited) != compared[-1]


@pytest.mark.parametrize(
    "value", ["{},50 EUR", "{} EUR", "€{}", "{} to 2, or {}:2", "version 3.{}", "{}%", "2 May, {}:00"]
)
def test_prices_scores_and_releases_are_never_learnt(value: str) -> None:
    texts = [text(motto="Now: " + value.format(number, number)) for number in range(20)]
    assert visited(texts)[1] == texts


def test_what_was_the_same_at_one_visit_is_not_learnt() -> None:
    texts = [text(number=visit // 2) for visit in range(40)]
    runs = (each for _ in count() for each in (0, 1))
    watch = Watch()
    for each in texts:
        watch = watch.after(each, next(runs))
        assert watch.compared(each) == each


def test_a_learnt_line_that_stands_still_counts_again() -> None:
    watch, _ = visited([text(motto=motto) for motto in MOTTOS])
    still = text(motto="From now on the office is closed on Mondays.")
    for _ in range(3):
        watch = watch.after(still, 0)
    assert watch.compared(still) == still


def test_a_new_line_beside_the_learnt_one_is_seen() -> None:
    watch, compared = visited([text(motto=motto) for motto in MOTTOS])
    longer = text(motto="The office is closed.\nA thought for hour 21")
    assert watch.after(longer, 0).compared(longer) != compared[-1]


def test_lists_that_grow_are_content() -> None:
    texts = [
        "\n".join(["Results", *(f"Goal {goal}" for goal in range(visit, 0, -1)), *SENTENCES]).encode()
        for visit in range(12)
    ]
    assert visited(texts)[1] == texts


def test_a_page_that_changes_as_a_whole_is_content() -> None:
    texts = ["\n".join(f"{sentence} {visit}" for sentence in SENTENCES).encode() for visit in range(12)]
    assert visited(texts)[1] == texts


def test_what_is_kept_of_a_page_is_bounded() -> None:
    lines = [f"Line {number}" for number in range(MOST_LINES + 1)]
    assert not Watch().after("\n".join(lines).encode(), 3).packed()
    assert len(Watch().after("\n".join(lines[1:]).encode(), 3).packed()) < 1_000
    assert not Watch().after(text(), 0).packed()


def test_only_changes_that_follow_each_other_closely_count() -> None:
    def history(*outcomes: tuple[float, Outcome]) -> tuple[Visit, ...]:
        return tuple(Visit(at, outcome) for at, outcome in outcomes)

    changed, unchanged = Outcome.CHANGED, Outcome.UNCHANGED
    assert changes_in_a_row(history((0, changed), (100, changed)), 200) == 2
    assert changes_in_a_row(history((0, changed), (100, unchanged), (200, changed)), 300) == 1
    assert changes_in_a_row(history((0, changed), (100, changed)), 101 + CLOSE) == 0
    assert changes_in_a_row((), 5) == 0


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), max_size=12), st.lists(st.integers(0, 9), min_size=12)
)
def test_whatever_is_met_nothing_is_left_out_of_a_page_without_learnt_places(
    pages: list[list[str]], changes: list[int]
) -> None:
    watch = Watch()
    for page, run in zip(pages, changes, strict=False):
        each = "\n".join(page).encode()
        watch = Watch.unpacked(watch.after(each, run).packed())
        if not any(place.is_learnt for place in watch.places):
            assert watch.compared(each) == each
        assert set(watch.compared(each).split(b"\n")) <= set(each.split(b"\n"))
