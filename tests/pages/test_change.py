"""The order of evidence."""

from __future__ import annotations

import msgspec
import pytest

from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, ParsedPage, RawPage
from levada.pages.change import answer_mark, judge, same_bytes
from levada.pages.parse import parse_page

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
