"""The order of evidence."""

from __future__ import annotations

import msgspec
import pytest

from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, ParsedPage, RawPage
from levada.core.site_rules.visit import ReadingRule
from levada.pages.change import answer_mark, is_read_by, judge, page_digest, same_bytes
from levada.pages.parse import parse_page
from levada.pages.text import READER

URL = "http://example.org/"
TEXT = "one two three four five six seven eight nine ten"


def parsed(html: str) -> ParsedPage:
    return parse_page(RawPage(URL, html.encode(), "text/html"))


def record(html: str | None = None) -> PageRecord:
    blank = PageRecord(1, URL, "example.org", PageKind.PAGE, PageState.NEW, DiscoveredBy.SEED, 0, 0, 0.0)
    if html is None:
        return blank
    facts = parsed(html)
    return msgspec.structs.replace(
        blank, body_digest=answer_mark(html.encode()), text_digest=facts.text_digest, sketch=facts.sketch
    )


def test_a_304_is_compared_with_nothing() -> None:
    assert judge(record(), 304) == (Outcome.UNCHANGED, 1.0)
    assert judge(record(f"<p>{TEXT}"), 304, b"x", parsed("<p>other")) == (Outcome.UNCHANGED, 1.0)


def test_the_same_bytes_need_no_parsing() -> None:
    page = record(f"<p>{TEXT}")
    assert same_bytes(page, 200, page.body_digest)
    assert judge(page, 200, page.body_digest) == (Outcome.UNCHANGED, 1.0)


@pytest.mark.parametrize(
    "html", [f"<p class=x>{TEXT}</p><!-- rendered in 3 ms -->", "<p>" + TEXT.replace(" ", " \n\t ") + "</p>  "]
)
def test_markup_and_white_space_are_no_change(html: str) -> None:
    assert judge(record(f"<p>{TEXT}"), 200, answer_mark(html.encode()), parsed(html)) == (Outcome.UNCHANGED, 1.0)


def test_other_words_are_a_change_and_the_grade_says_how_much() -> None:
    page = record(f"<p>{TEXT}")
    little = judge(page, 200, b"", parsed(f"<p>{TEXT} eleven"))
    much = judge(page, 200, b"", parsed("<p>nothing of the old words"))
    assert little.outcome is much.outcome is Outcome.CHANGED
    assert little.similarity == pytest.approx(10 / 11)
    assert much.similarity == 0.0


def test_the_first_text_is_neither_changed_nor_unchanged() -> None:
    assert judge(record(), 200, b"x", parsed(f"<p>{TEXT}")) == (Outcome.FIRST, 0.0)


def test_new_bytes_cannot_be_judged_unread() -> None:
    with pytest.raises(ValueError, match="parsed"):
        judge(record(), 200, b"x")


@pytest.mark.parametrize("earlier", [0, READER + 1])
def test_a_text_that_another_version_of_the_reader_finds_is_no_change(earlier: int) -> None:
    digest = page_digest(b"Home Books Music one two three", "", asked=False, on_page=False, reader=earlier)
    stored = msgspec.structs.replace(record(f"<p>{TEXT}"), text_digest=digest, version=1)
    assert judge(stored, 200, b"", parsed(f"<p>{TEXT}")).outcome is Outcome.UNCHANGED
    again = msgspec.structs.replace(stored, text_digest=parsed(f"<p>{TEXT}").text_digest)
    assert judge(again, 200, b"", parsed("<p>nothing of the old words")).outcome is Outcome.CHANGED


def test_another_version_of_the_reader_is_no_other_rule() -> None:
    rule = ReadingRule(select=("main",))
    for each in (None, rule):
        digest = page_digest(b"text", "", asked=False, on_page=False, rule=each, reader=READER)
        assert is_read_by(digest, each)
        assert not is_read_by(digest, rule if each is None else None)
