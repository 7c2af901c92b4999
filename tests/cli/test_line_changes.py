"""A diff, read backwards and forwards, gives both texts."""

from __future__ import annotations

from collections import Counter
from difflib import Match, SequenceMatcher
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.cli.pages.diff import unified, word_by_word
from levada.collection import diff as alignment
from levada.collection.diff import Hunk, changes_between

LINES = st.lists(st.sampled_from(["a", "b", "the ferry at 8", "the ferry at 9", "a b c d", ""]), max_size=12)
DIFFLIB_AT_ONCE = st.sampled_from([0, 20, 100, alignment.MOST_STEPS])


def side(hunk: Hunk, sign: str) -> list[str]:
    return [each.text for each in hunk.lines if each.sign in (" ", sign)]


def changed(before: list[str], after: list[str], steps: int, context: int = 0) -> list[Hunk]:
    """The changes where difflib may take so many steps at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MOST_STEPS", steps)
        return changes_between(before, after, context)


def signed(hunks: list[Hunk], sign: str) -> list[str]:
    return [each.text for hunk in hunks for each in hunk.lines if each.sign == sign]


@given(LINES, LINES, st.integers(0, 3), DIFFLIB_AT_ONCE)
def test_each_hunk_holds_what_stood_there_before_and_after(
    before: list[str], after: list[str], context: int, steps: int
) -> None:
    hunks = changed(before, after, steps, context)
    for hunk in hunks:
        assert side(hunk, "-") == before[hunk.before_line - 1 :][: hunk.before_count]
        assert side(hunk, "+") == after[hunk.after_line - 1 :][: hunk.after_count]
        assert any(each.sign != " " for each in hunk.lines)
    assert bool(hunks) == (before != after)


@given(LINES, LINES, st.integers(0, 3), DIFFLIB_AT_ONCE)
def test_the_hunks_turn_the_one_text_into_the_other(
    before: list[str], after: list[str], context: int, steps: int
) -> None:
    made, place = [], 0
    for hunk in changed(before, after, steps, context):
        made += before[place : hunk.before_line - 1] + side(hunk, "+")
        place = hunk.before_line - 1 + hunk.before_count
    assert made + before[place:] == after


def test_only_the_words_that_differ_are_marked() -> None:
    (hunk,) = changes_between(["the ferry leaves at 8:15 from here"], ["the ferry leaves at 8:30 from here"])
    went, came = hunk.lines
    assert [text for text, differs in went.pieces if differs] == ["15 "]
    assert [text for text, differs in came.pieces if differs] == ["30 "]


def test_lines_that_share_nothing_are_not_compared_by_words() -> None:
    (hunk,) = changes_between(["one two three"], ["vier fünf sechs sieben"])
    assert [each.pieces for each in hunk.lines] == [(("one two three", True),), (("vier fünf sechs sieben", True),)]


def test_far_apart_changes_are_apart() -> None:
    before = [str(n) for n in range(40)]
    after = ["x", *before[1:39], "y"]
    assert [hunk.before_line for hunk in changes_between(before, after)] == [1, 37]
    assert len(changes_between(before, after, context=50)) == 1


@given(st.lists(st.sampled_from(["same", "new", "gone", "come", "twin"]), max_size=60))
def test_lines_that_each_text_has_once_are_anchors(what: list[str]) -> None:
    kinds = {"same": ("{}", "{}"), "new": ("old {}", "new {}"), "gone": ("{}", ""), "come": ("", "{}")}
    texts = [kinds.get(each, ("In stock", "In stock")) for each in what]
    before, after = ([pair[n].format(place) for place, pair in enumerate(texts) if pair[n]] for n in (0, 1))
    hunks = changed(before, after, 0)
    same = {f"{place}" for place, each in enumerate(what) if each == "same"}
    assert same.isdisjoint(signed(hunks, "-") + signed(hunks, "+"))


@given(LINES, LINES, DIFFLIB_AT_ONCE)
def test_no_line_is_replaced_by_itself(before: list[str], after: list[str], steps: int) -> None:
    for hunk in changed(before, after, steps):
        assert all(a != b for a, b in zip(signed([hunk], "-"), signed([hunk], "+"), strict=False))


@given(st.lists(st.sampled_from(["a", "b"]), max_size=40), st.sets(st.integers(0, 39)))
def test_of_lines_without_an_anchor_those_in_place_count_as_the_same(before: list[str], places: set[int]) -> None:
    after = [line if place not in places else f"new {line}" for place, line in enumerate(before)]
    assert len(signed(changed(before, after, 0), "-")) <= len(places)


def test_of_a_long_page_only_what_changed_is_shown() -> None:
    before = [f"line {n}" for n in range(20_000)]
    after = [f"{line} is new" if n % 500 == 7 else line for n, line in enumerate(before)]
    assert signed(changes_between(before, after), "-") == before[7::500]


def test_of_a_page_that_repeats_itself_only_what_changed_is_shown() -> None:
    before = [line for n in range(400) for line in (f"Product {n}", "In stock", f"{n}.99")]
    after = ["Product zero", *before[1:600], "Sold out", *before[601:-1], "1.00"]
    assert signed(changes_between(before, after), "+") == ["Product zero", "Sold out", "1.00"]


def test_a_row_at_each_end_does_not_shift_a_page_of_twins() -> None:
    before = ["yes", "no", "no"] * 1_500
    hunks = changes_between(before, ["maybe", *before, "never"])
    assert (signed(hunks, "-"), signed(hunks, "+")) == ([], ["maybe", "never"])


def test_of_a_long_line_only_the_words_that_differ_are_marked() -> None:
    words = [f"word{n}" for n in range(5_000)]
    (hunk,) = changes_between([" ".join(words)], [" ".join(["first", *words[1:-1], "last"])])
    assert [text for text, differs in hunk.lines[1].pieces if differs] == ["first ", "last"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pairs of equal ones that difflib walks through, match by match."""
    taken: list[int] = []

    class Counted(SequenceMatcher[str]):
        def set_seqs(self, a: list[str], b: list[str]) -> None:  # type: ignore[override]
            twins = Counter(b)
            self.twins = [twins[each] for each in a]
            super().set_seqs(a, b)

        def find_longest_match(self, *gap: int) -> Match:  # type: ignore[override]
            taken.append(sum(self.twins[gap[0] : gap[1]]))
            return super().find_longest_match(*gap)

    monkeypatch.setattr(alignment, "SequenceMatcher", Counted)
    return taken


@pytest.mark.parametrize("symbols", [1, 2, 30, 50_000])
def test_a_text_made_to_be_slow_gets_little_of_difflib(symbols: int, steps: list[int]) -> None:
    chance = Random(symbols)
    before, after = ([f"{chance.randrange(symbols)} x" for _ in range(50_000)] for _ in range(2))
    hunks = changes_between(["x", *before], ["y", *after, "z"])
    assert "x" in signed(hunks, "-")
    assert sum(steps) <= alignment.MOST_STEPS_IN_ALL


@pytest.mark.parametrize("symbols", [1, 3, 50])
def test_a_line_whose_words_recur_between_others_gets_little_of_difflib(symbols: int, steps: list[int]) -> None:
    before, after = (" ".join(f"{n % symbols} {name}{n}" for n in range(450)) for name in ("went", "came"))
    (hunk,) = changes_between([f"x {before} x"], [f"y {after} y"])
    assert sum(steps) <= alignment.MOST_STEPS
    assert sum(not differs for _, differs in hunk.lines[0].pieces) > 400


def difflib_changes(before: list[str], after: list[str]) -> list[tuple[str, ...]]:
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [tuple(before[i:j]) for tag, i, j, _, _ in opcodes if tag != "equal" and i < j]


def test_an_article_is_compared_as_difflib_does() -> None:
    chance = Random(1)
    words = [f"word{int(chance.paretovariate(0.7))} " for _ in range(2_000)]
    other = [f"word{place} " if chance.random() < 0.025 else word for place, word in enumerate(words)]
    (hunk,) = changes_between(["".join(words)], ["".join(other)])
    marked = [text for text, differs in hunk.lines[0].pieces if differs]
    assert marked == ["".join(each) for each in difflib_changes(words, other)]


def test_a_table_is_compared_as_difflib_does() -> None:
    chance = Random(1)
    lines = [text for n in range(170) for text in (f"Product {n}", chance.choice(["In stock", "Sold out"]), "Buy")]
    other = [chance.choice(["Soon", "Sold out"]) if chance.random() < 0.1 else line for line in lines][3:]
    gone = signed(changes_between(lines, other), "-")
    assert gone == [line for each in difflib_changes(lines, other) for line in each]


def test_one_line_among_a_hundred_thousand_is_found() -> None:
    before = [str(n) for n in range(100_000)]
    (hunk,) = changes_between(before, [*before[:500], "new", *before[500:]], context=1)
    assert [(each.sign, each.text) for each in hunk.lines] == [(" ", "499"), ("+", "new"), (" ", "500")]


def test_plain_output_is_a_unified_diff() -> None:
    hunks = changes_between(["a", "old word", "z"], ["a", "new word", "z"])
    assert [each.plain for each in unified(hunks)] == ["@@ -1,3 +1,3 @@", " a", "-old word", "+new word", " z"]


def test_words_can_be_shown_on_one_line() -> None:
    hunks = changes_between(["a", "one old word", "z", "went"], ["a", "one new word", "z", "came", "more"])
    shown = [each.plain for each in word_by_word(hunks)]
    assert shown == ["@@ -1,4 +1,5 @@", "a", "one [-old-] {+new+} word", "z", "[-went-]{+came+}", "{+more+}"]


@given(LINES, LINES)
def test_everything_can_be_shown(before: list[str], after: list[str]) -> None:
    hunks = changes_between(before, after)
    assert len(list(unified(hunks))) >= len(hunks)
    assert len(list(word_by_word(hunks))) >= len(hunks)


def test_brackets_of_a_page_are_not_markup() -> None:
    hunks = changes_between(["[bold]x[/bold] a"], ["[bold]x[/bold] b"])
    assert [each.plain for each in unified(hunks)][1:] == ["-[bold]x[/bold] a", "+[bold]x[/bold] b"]
