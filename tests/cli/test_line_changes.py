"""A diff, read backwards and forwards, gives both texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from levada.cli.coloured_diff import unified, word_by_word
from levada.telling.line_changes import Hunk, changes_between

LINES = st.lists(st.sampled_from(["a", "b", "the ferry at 8", "the ferry at 9", "a b c d", ""]), max_size=12)


def side(hunk: Hunk, sign: str) -> list[str]:
    return [each.text for each in hunk.lines if each.sign in (" ", sign)]


@given(LINES, LINES, st.integers(0, 3))
def test_each_hunk_holds_what_stood_there_before_and_after(
    before: list[str], after: list[str], context: int
) -> None:
    hunks = changes_between(before, after, context)
    for hunk in hunks:
        assert side(hunk, "-") == before[hunk.before_line - 1 :][: hunk.before_count]
        assert side(hunk, "+") == after[hunk.after_line - 1 :][: hunk.after_count]
        assert any(each.sign != " " for each in hunk.lines)
    assert bool(hunks) == (before != after)


@given(LINES, LINES, st.integers(0, 3))
def test_the_hunks_turn_the_one_text_into_the_other(before: list[str], after: list[str], context: int) -> None:
    made, place = [], 0
    for hunk in changes_between(before, after, context):
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


def test_a_text_made_to_be_slow_is_replaced_as_a_whole() -> None:
    before = ["x", *["a", "b"] * 2_000, "y"]
    after = ["z", *["a", "b", "c"] * 2_000, "w"]
    (hunk,) = changes_between(before, after)
    assert hunk.before_count == len(before)
    assert hunk.after_count == len(after)


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
