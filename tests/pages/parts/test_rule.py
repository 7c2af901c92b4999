"""Reading rules: what is selected, removed and ignored, and what no rule can do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.core.selectors import check_selector
from levada.core.site_rules.section import SiteSettings
from levada.core.site_rules.visit import ReadingRule
from levada.pages.parts.rule import compiled_rule
from levada.testing.common import properties
from tests.pages.parts.reading import read, shown

PAGE = """<!doctype html><title>Shop (3)</title><nav><a href=/all>All</a></nav><main><h1>Lamp</h1>
<div class=price>10 <b>EUR</b><div class=old>12 EUR</div></div><p class=note>Fine <script>x()</script>light</p>
<p id=clock>12:30</p></main>"""


def rule(**keys: Sequence[str]) -> ReadingRule:
    given: dict[str, Any] = {name: tuple(value) for name, value in keys.items()}
    return ReadingRule(**given)


def compared(text: str, *ignored: str) -> str:
    return compiled_rule(rule(ignore=ignored)).compared_text(text.encode()).decode()


def test_selected_parts_stand_in_the_order_of_the_list_and_nothing_twice() -> None:
    assert shown(PAGE, rule=rule(select=[".note", ".price", ".old", "main div"])) == "Fine light\n10 EUR\n12 EUR"


def test_title_links_and_language_are_those_of_the_whole_page() -> None:
    part, whole = read(PAGE, rule=rule(select=[".price"])), read(PAGE)
    assert (part.title, part.links, part.language) == (whole.title, whole.links, whole.language)


def test_a_page_without_what_is_selected_has_no_text_and_a_reason() -> None:
    missing = read(PAGE, rule=rule(select=[".stock"]))
    assert (missing.reason, missing.content_zstd, missing.links) == (Reason.NO_MATCH, b"", read(PAGE).links)
    empty = read("<p class=stock><p>more", rule=rule(select=[".stock"]))
    assert empty.reason is Reason.NO_MATCH


def test_selectors_for_another_kind_of_page_say_nothing() -> None:
    assert shown(PAGE, rule=rule(select=["json:$.price"])) == shown(PAGE)
    assert shown("plain words", "text/plain", rule(select=[".price"])) == "plain words"
    assert shown('{"a": 1}', "application/json", rule(select=[".price"])) == "a: 1"


def test_xpath_sees_the_page_as_a_browser_builds_it() -> None:
    table = "<table><tr><td>one<tr><td>two"
    assert shown(table, rule=rule(select=["xpath:/html/body/table/tbody/tr[2]/td"])) == "two"


def test_xpath_reads_pages_that_are_no_xml() -> None:
    odd = '<p @click=go a"b=c x:y=z>one\x01 <x:odd 1=2>two</x:odd> <svg:rect/>three</p>\x0b<!-- c -->'
    assert shown(odd, rule=rule(select=["xpath:string(//p)"])) == "one two three"


def test_numbers_of_json_are_compared_as_numbers_and_shown_as_written() -> None:
    data = '{"items": [{"n": "a", "p": 1.50}, {"n": "b", "p": 1e2}, {"n": "c", "p": 99999999999999999999}]}'
    assert shown(data, "application/json", rule(select=["json:$.items[?@.p < 200].p"])) == "1.50\n1e2"
    assert shown(data, "application/json", rule(select=["json:$.items[-1].p"])) == "99999999999999999999"


def test_several_entries_of_one_list_are_removed() -> None:
    data = '{"a": [1, 2, 3, 4], "b": {"c": 5}}'
    assert shown(data, "application/json", rule(remove=["json:$.a[0, 2]", "json:$..c"])) == "a: 2, 4"
    assert shown(data, "application/json", rule(remove=["json:$.a[?@ > 1]"])) == "a: 1\nb.c: 5"


def test_the_title_does_not_count_beside_selected_parts_and_is_ignored_like_the_text() -> None:
    other = PAGE.replace("Shop (3)", "Shop (4)")
    for each in (rule(select=[".price"]), rule(ignore=["numbers"])):
        assert read(PAGE, rule=each).text_digest == read(other, rule=each).text_digest
    assert read(PAGE).text_digest != read(other).text_digest


@pytest.mark.parametrize(
    ("date", "left"),
    [
        ("Updated 2026-03-12T10:22:05Z now", "Updated now"),
        ("am 12. März 2026 um 10:15", "am"),
        ("March 12th, 2026", ""),
        ("Thu, 12 Mar 2026 10:00:00 GMT", ""),
        ("12 Mart 2026", ""),
        ("12/03/26 or 12.03.2026", "or"),
        ("3 hours ago, vor 3 Stunden, il y a 2 jours, 5 dakika önce", ", , ,"),
        ("2026年3月12日", ""),
        ("10:30 pm", ""),
        ("costs 12.50, 3:2 at best, version 1.2.3, you may", "costs 12.50, 3:2 at best, version 1.2.3, you may"),
    ],
)
def test_dates_are_ignored_in_many_forms_and_other_numbers_stay(date: str, left: str) -> None:
    assert compared(date, "dates") == left


@properties(100)
@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_with_numbers_ignored_no_number_counts(one: list[int], other: list[int]) -> None:
    text = "seen {} times, {:,} today; {} left"
    assert compared(text.format(*one), "numbers") == compared(text.format(*other), "numbers")


@properties(100)
@given(st.lists(st.sampled_from(["a", "b", "c d", "e1"]), max_size=8), st.randoms(use_true_random=False))
def test_with_order_and_repeats_ignored_only_the_set_of_lines_counts(lines: list[str], random: Random) -> None:
    shuffled = [*lines, *lines[:3]]
    random.shuffle(shuffled)
    assert compared("\n".join(lines), "order", "repeats") == compared("\n".join(shuffled), "order", "repeats")
    assert compared("\n".join(lines), "order") == "\n".join(sorted(lines))


TEXTS = st.text("aA9.$*()[]| -:/é\n", max_size=40)


@properties(200)
@given(TEXTS, TEXTS.filter(lambda text: "\n" not in text and not text.startswith("re:") and bool(text.strip())))
def test_plain_texts_take_out_the_lines_that_have_them_and_are_no_patterns(text: str, ignored: str) -> None:
    want = [line for line in text.split("\n") if ignored.lower() not in line.lower()]
    assert compared(text, ignored) == "\n".join(" ".join(line.split()) for line in want if line.strip())


_WRITTEN = """p|main .price|:not(p)|*|p:first-child|xpath://p|xpath://*|xpath://@*|xpath://text()|xpath:/
xpath:count(//*)|xpath://p/..|xpath:string(//p)|xpath://comment()|json:$|json:$..*|json:$[*]"""
SELECTORS = st.sampled_from(re.split(r"[|\n]", _WRITTEN))


@properties(300)
@given(
    st.text("<>/p divtableul='\"&;!-a b\n\x00\x01é{}[]:,1", max_size=120),
    st.lists(SELECTORS, max_size=3),
    st.lists(SELECTORS, max_size=3),
    st.sampled_from(["text/html", "application/json"]),
)
def test_any_rule_reads_any_page(body: str, select: list[str], remove: list[str], kind: str) -> None:
    each = rule(select=select, remove=remove)
    assert read(body, kind, each) == read(body, kind, each)


def test_a_property_of_structured_data_is_selected_wherever_it_stands() -> None:
    page = """<title>Lamp</title><div itemscope itemtype="https://schema.org/Product">
      <b itemprop=name>Lamp</b><span itemprop=brand itemscope><i itemprop=name>Acme</i></span>
      <span itemprop=offers itemscope><i itemprop=price>1.299,00 EUR</i></span></div><p class=stock>In stock"""
    assert shown(page, rule=rule(select=["data:price"])) == "1299.00 EUR"
    cheaper = [rule(select=["data:price"], trigger=[f"price below {limit}"]) for limit in (1200, 1300)]
    assert [read(page, rule=each).told for each in cheaper] == [False, True]
    assert shown(page, rule=rule(select=["data:currency", "data:Brand", ".stock"])) == "EUR\nAcme\nIn stock"
    assert read(page, rule=rule(select=["data:availability"])).reason is Reason.NO_MATCH
    assert shown('{"price": 5}', "application/json", rule(select=["data:price"])) == "price: 5"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"select": ["a["]}, "select: 'a[' is no CSS selector that can be used: it does not parse"),
        ({"select": ["//h1"]}, "write xpath: before an XPath"),
        ({"remove": ["$.price"]}, "write json: before a JSONPath"),
        ({"remove": ["xpath://a["]}, "remove: '//a[' is no XPath that can be used"),
        ({"select": ["xpath://a[foo()]"]}, "XPath 1.0 has no function foo()"),
        ({"select": ["xpath:document('/etc/passwd')"]}, "XPath 1.0 has no function document()"),
        ({"select": ["xpath://a[re:test(., 'a')]"]}, "no functions of other namespaces, such as re:test()"),
        ({"select": ["xpath:$x"]}, "there are no variables"),
        ({"select": ["xpath://x:p"]}, "undefined namespace prefix"),
        ({"select": ["json:price"]}, "it begins with $"),
        ({"select": ["json:$.a["]}, "'$.a[' is no JSONPath that can be used"),
        ({"select": ["json:$[?@.a =~ /b/]"]}, "is no JSONPath that can be used"),
        ({"select": ["data:"]}, "'' is no property of structured data that can be used: write its name"),
        ({"select": ["data:$.price"]}, "is no property of structured data that can be used"),
        ({"remove": ["data:price"]}, "remove: 'data:price' is nothing on the page that could be taken out"),
        ({"select": ["p" * 1001]}, "a selector has at most 1000 characters"),
        ({"ignore": ["re:("]}, 'ignore: "(" is no regular expression'),
        ({"ignore": ["re:(?=a)"]}, "look-around"),
        ({"ignore": ["number"]}, "did you mean numbers?"),
    ],
)
def test_a_selector_or_pattern_that_cannot_be_used_is_refused_in_one_sentence(
    keys: dict[str, list[str]], said: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert({"match": "a.test", **keys}, SiteSettings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@properties(300)
@given(st.text("abcd:/@*[]()'\".$|=<> \\1?", max_size=40), st.sampled_from(["", "css:", "xpath:", "json:"]))
def test_whatever_is_typed_is_a_selector_or_is_refused(text: str, prefix: str) -> None:
    try:
        check_selector(prefix + text)
    except ValueError:
        return
    each = rule(select=[prefix + text])
    read(PAGE, rule=each)
    read('{"a": [1, {"b": "c"}]}', "application/json", each)


def test_regular_expressions_of_jsonpath_are_linear_in_the_text() -> None:
    data = '{"a": [{"n": "' + "a" * 50_000 + 'b"}]}'
    assert shown(data, "application/json", rule(select=['json:$.a[?match(@.n, "(a+)+$")].n'])) == ""
    assert shown(data, "application/json", rule(select=['json:$.a[?search(@.n, "(a+)+b$")].n'])) != ""
