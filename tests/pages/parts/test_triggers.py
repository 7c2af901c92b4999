"""Triggers: what they say of a text, and the law by which one is met."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.site_rules.triggers import parsed_trigger
from levada.core.site_rules.visit import ReadingRule
from levada.pages.parts.triggers import Triggers
from levada.testing.common import properties
from tests.pages.parts.reading import read


def holds(trigger: str, text: str) -> bool:
    return Triggers([trigger]).hold(text)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In stock", True),
        ("now IN  STOCK again!", True),
        ("in-stock", True),
        ("instock", False),
        ("in the stock", False),
        ("in\nstock", False),
        ("stock in", False),
        ("", False),
    ],
)
def test_a_text_is_there_if_its_words_stand_in_a_row_in_one_line(text: str, expected: bool) -> None:
    assert holds("appears: in stock", text) is expected
    assert holds("disappears: in stock", text) is not expected


@pytest.mark.parametrize(
    ("trigger", "text"), [("appears: Stokta yok", "STOKTA YOK"), ("appears: 在庫", "商品在庫あり")]
)
def test_letters_of_other_languages_are_words_too(trigger: str, text: str) -> None:
    assert holds(trigger, text)


@pytest.mark.parametrize(
    ("trigger", "text", "expected"),
    [
        ("price below 100", "99 EUR", True),
        ("price below 100", "99 pieces", False),
        ("price below 100", "1.099,00 EUR", False),
        ("price above 100", "$1,099.00", True),
        ("number below 100", "99 pieces", True),
        ("number below 100 near pieces left", "left: 5\n120 pieces left", False),
        ("number below 100 near pieces left", "pieces left: 5", True),
        ("number above -1", "0", True),
        ("price below 100", "", False),
        ("price above 100", "", False),
    ],
)
def test_a_limit_is_crossed_by_any_number_of_its_kind(trigger: str, text: str, expected: bool) -> None:
    assert holds(trigger, text) is expected


TRIGGERS = ["appears: sold out", "disappears: in stock", "price below 100", "number above 7 near seats"]
texts = st.lists(st.sampled_from(["Sold out", "In stock", "99 EUR", "120 EUR", "8 seats", "3 seats"]), max_size=4).map(
    "\n".join
)


@properties(200)
@given(st.lists(st.sampled_from(TRIGGERS), max_size=12), st.lists(texts, min_size=1, max_size=6))
def test_a_change_is_told_exactly_if_a_trigger_begins_to_hold(written: Sequence[str], versions: Sequence[str]) -> None:
    rule = ReadingRule(select=("p",), trigger=tuple(written))
    before, known = "", None
    for version in versions:
        parsed = read("".join(f"<p>{line}" for line in version.split("\n")), rule=rule, known=known)
        begins = any(holds(each, version) and not holds(each, before) for each in written)
        assert parsed.told is (begins or not written)
        before, known = version, parsed.text_digest


def test_what_another_rule_read_says_nothing_about_triggers() -> None:
    before = read("<p>Sold out", rule=ReadingRule(trigger=("appears: in stock",))).text_digest
    now = read("<p>Sold out", rule=ReadingRule(trigger=("appears: sold out",)), known=before)
    assert now.told


def test_triggers_look_at_what_is_compared() -> None:
    rule = ReadingRule(remove=("b",), ignore=("numbers",), trigger=("appears: new", "number below 100"))
    assert not read("<p>99 lamps <b>new</b>", rule=rule).told


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("in stock", "'in stock' is no trigger: write \"appears: In stock\""),
        ("price under 5", "is no trigger"),
        ("price below five", "'five' is no number: write it with a point and without grouping"),
        ("price below nan", "'nan' is no number"),
        ("price below 1e5", "'1e5' is no number"),
        ("price below 5 near x", 'near goes with "number", not with "price"'),
        ("number below 5 near !", "there is no word in '!'"),
        ("appears: ", "is no trigger"),
        ("appears: $", "there is no word in '$': write re: before a regular expression for signs"),
        ("appears: re:(", "is no regular expression"),
        ("appears: re:(?=a)", "look-around and named groups of Perl are not possible"),
    ],
)
def test_what_is_no_trigger_is_refused_in_one_sentence(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        parsed_trigger(written)
    assert said in str(refused.value)
