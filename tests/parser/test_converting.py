"""Converting to Markdown in a child: what it gives, and that no page holds or fills more than it may."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from levada.core.records import RawPage
from levada.core.settings import ParseSettings
from levada.parser import converting
from levada.parser.converting import MarkdownConverter

SETTINGS = ParseSettings()
PLAIN = RawPage("http://a.test/", b"<p>words", "text/html")


def convert(page: RawPage, title: str, settings: ParseSettings) -> str | None:
    with MarkdownConverter(settings) as converter:
        return converter.convert(page, title)


def test_a_page_is_converted_in_its_charset() -> None:
    body = "<h1>Größe</h1><p>straße</p>".encode("latin-1")
    assert convert(RawPage("http://a.test/", body, "text/html; charset=latin-1"), "t", SETTINGS) == "# Größe\n\nstraße"


@pytest.mark.parametrize(
    ("body", "kind"), [(b"plain words", "text/plain"), (b"\0\1\2", "image/png"), (b"", "text/html")]
)
def test_what_is_no_page_gives_nothing(body: bytes, kind: str) -> None:
    assert convert(RawPage("http://a.test/", body, kind), "", SETTINGS) is None


def test_a_child_without_enough_memory_gives_nothing() -> None:
    page = RawPage("http://a.test/", b"<p>" + b"words " * 100_000, "text/html")
    assert convert(page, "", replace(SETTINGS, memory=20_000_000)) is None


def test_a_child_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "_WALL", 0)
    assert convert(PLAIN, "", SETTINGS) is None


def test_one_child_converts_many_pages() -> None:
    with MarkdownConverter(SETTINGS) as converter:
        pages = [replace(PLAIN, body=b"<p>words " + b"%d " % number * number * 1_000) for number in range(1, 9)]
        found = [converter.convert(page, "") or "" for page in pages]
        child = converter._child
        assert [text.split()[:2] for text in found] == [["words", str(number)] for number in range(1, 9)]
        assert converter.convert(PLAIN, "") == "words"
        assert converter._child is child


def test_a_page_that_ends_its_child_does_not_harm_the_next() -> None:
    large = RawPage("http://a.test/", b"<p>" + b"<b>words</b> " * 700_000, "text/html")
    with MarkdownConverter(replace(SETTINGS, cpu_seconds=0.5)) as converter:
        assert converter.convert(PLAIN, "") == "words"
        assert converter.convert(large, "") is None
        assert converter.convert(PLAIN, "") == "words"
