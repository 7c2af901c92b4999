"""Contract suite of the parser: untrusted bytes in, a `ParsedPage` out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.errors import ParserDied
from levada.core.protocols import Parser
from levada.core.records import PageKind, ParsedPage, RawPage
from levada.parser.inline import InlineParser
from levada.testing.common import in_loop, properties

_FERRY = b"<html lang=en><title>One</title><p>The ferry leaves at noon from the old pier.<a href=/two>two</a>"
_TURKISH = "<p>Işık, su ve vapur".encode("iso-8859-9")
_SITEMAP = b"<urlset><url><loc>http://a.test/x</loc><lastmod>2026-01-31</lastmod></url></urlset>"
_URL = "http://a.test/"
_PAGES = {
    "a page": RawPage(_URL, _FERRY, "text/html"),
    "a page that asks not to be indexed": RawPage(_URL, b"<meta name=robots content=noindex><p>quiet", "text/html"),
    "a page in another charset": RawPage(_URL, _TURKISH, "text/html; charset=iso-8859-9"),
    "a sitemap": RawPage(f"{_URL}sitemap.xml", _SITEMAP, "application/xml", PageKind.SITEMAP),
    "an image that says it is a page": RawPage(_URL, b"\x89PNG\r\n\x1a\n" + bytes(100), "text/html"),
    "nothing": RawPage(_URL, b"", "text/html"),
}


class ParserContract:
    """Every parser reads a page as the reference `InlineParser` does, many at once, and survives any bytes.

    ```python
    class TestMyParser(ParserContract):
        def make(self) -> Parser:
            return MyParser()
    ```
    """

    def make(self) -> Parser:
        """A new parser; it is called inside a running event loop."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Parser]:
        """A new parser, closed at the end."""
        parser = self.make()
        try:
            yield parser
        finally:
            await parser.close()

    @pytest.mark.parametrize("page", _PAGES.values(), ids=_PAGES)
    @in_loop
    async def test_a_page_is_read_as_the_reference_reads_it(self, page: RawPage) -> None:
        async with self.opened() as parser:
            assert await parser.parse(page) == await InlineParser().parse(page)

    @in_loop
    async def test_many_pages_are_read_at_once_and_each_gets_its_own_answer(self) -> None:
        async with self.opened() as parser:
            titles = [f"page {n}" for n in range(100)]
            pages = [RawPage(f"http://a.test/{n}", f"<title>{t}</title>".encode()) for n, t in enumerate(titles)]
            parsed = await asyncio.gather(*map(parser.parse, pages))
            assert [each.title for each in parsed] == titles

    @in_loop
    async def test_a_text_that_is_known_is_not_packed_again(self) -> None:
        async with self.opened() as parser:
            page = _PAGES["a page"]
            first = await parser.parse(page)
            assert first.content_zstd
            again = await parser.parse(replace(page, known_text=first.text_digest))
            assert (again.text_digest, again.content_zstd) == (first.text_digest, b"")

    @properties(5)
    @given(st.lists(st.binary(max_size=300), min_size=1, max_size=20))
    @in_loop
    async def test_any_bytes_are_read_or_refused(self, bodies: list[bytes]) -> None:
        async with self.opened() as parser:
            pages = [RawPage(_URL, body, "text/html") for body in bodies]
            for parsed in await asyncio.gather(*map(parser.parse, pages), return_exceptions=True):
                assert isinstance(parsed, ParsedPage | ParserDied)

    @in_loop
    async def test_a_cancelled_page_disturbs_no_other(self) -> None:
        async with self.opened() as parser:
            parses = [asyncio.ensure_future(parser.parse(_PAGES["a page"])) for _ in range(6)]
            await asyncio.sleep(0)
            for each in parses[::2]:
                each.cancel()
            ended = await asyncio.gather(*parses, return_exceptions=True)
            assert [each.title for each in ended[1::2] if isinstance(each, ParsedPage)] == ["One"] * 3

    @in_loop
    async def test_a_parser_may_be_closed_again(self) -> None:
        async with self.opened() as parser:
            await parser.close()
