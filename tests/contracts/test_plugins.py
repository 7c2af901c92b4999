"""The suites of the small extension points, run on the built-ins and on the smallest plug-ins."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import ClassVar

import msgspec
import pytest

from levada.core.clock import SystemClock
from levada.core.protocols import ChangeFilter, Extractor, Notifier, PageHook, PageReader
from levada.core.records import ChangeEvent, ReadPage, Request, Response, StoredPage
from levada.core.subscriptions import Subscription
from levada.follow.notify.sender import WebhookNotifier
from levada.pages.documents.recognition import reader_of
from levada.pages.parse import FeedReader, HtmlReader, SitemapReader, TextReader
from levada.pages.text import BuiltinExtractor, TrafilaturaExtractor
from levada.testing import (
    ChangeFilterContract,
    ExtractorContract,
    NotifierContract,
    PageHookContract,
    ReaderContract,
)
from tests.pages.documents.hostile import R, book, one_page, paragraphs, relation, show, word, zipped


class NoteReader:
    """Notes: a title, an empty line, a text."""

    content_types = ("text/x-note",)

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        title, found, text = body.decode("utf-8", "replace").partition("\n\n")
        if not found:
            raise ValueError("a note has a title, an empty line, and a text")
        return ReadPage(title=title, text=text)


class TestNoteReader(ReaderContract):
    samples: ClassVar = {"text/x-note": b"Harbour\n\nThe ferry leaves at noon."}
    expected = "ferry"

    def make(self) -> PageReader:
        return NoteReader()


class TestHtmlReader(ReaderContract):
    samples: ClassVar = dict.fromkeys(
        HtmlReader.content_types, b"<title>Harbour</title><p>The ferry leaves at <a href=/noon>noon</a>."
    )
    expected = "ferry"

    def make(self) -> PageReader:
        return HtmlReader()


class TestTextReader(ReaderContract):
    samples: ClassVar = {"text/plain": b"Harbour\nThe ferry leaves at noon."}
    expected = "ferry"

    def make(self) -> PageReader:
        return TextReader()


class TestSitemapReader(ReaderContract):
    samples: ClassVar = dict.fromkeys(
        SitemapReader.content_types, b"<urlset><url><loc>http://a.test/ferry</loc></url></urlset>"
    )
    expected = "ferry"

    def make(self) -> PageReader:
        return SitemapReader()


class TestFeedReader(ReaderContract):
    samples: ClassVar = dict.fromkeys(
        FeedReader.content_types, b"<rss><channel><item><link>http://a.test/ferry</link></item></channel></rss>"
    )
    expected = "ferry"

    def make(self) -> PageReader:
        return FeedReader()


class _DocumentReader(ReaderContract):
    """A built-in reader of documents, by its name."""

    expected = "ferry"
    name: ClassVar[str]

    def make(self) -> PageReader:
        return reader_of(self.name)


class TestPdfReader(_DocumentReader):
    name = "pdf"
    samples: ClassVar = dict.fromkeys(reader_of("pdf").content_types, one_page(show("The ferry leaves at noon.")))


class TestWordReader(_DocumentReader):
    name = "word"
    samples: ClassVar = dict.fromkeys(reader_of("word").content_types, word(paragraphs("The ferry leaves at noon.")))


class TestSpreadsheetReader(_DocumentReader):
    name = "spreadsheet"
    samples: ClassVar = dict.fromkeys(
        reader_of("spreadsheet").content_types,
        zipped(
            {
                "xl/workbook.xml": f'<workbook {R}><sheet name="The ferry" r:id="a"/></workbook>'.encode(),
                "xl/_rels/workbook.xml.rels": relation("worksheet", "sheet1.xml"),
                "xl/sheet1.xml": b"<worksheet><row><c><v>12</v></c></row></worksheet>",
            }
        ),
    )


class TestPresentationReader(_DocumentReader):
    name = "presentation"
    samples: ClassVar = dict.fromkeys(
        reader_of("presentation").content_types,
        zipped(
            {
                "ppt/presentation.xml": f'<presentation {R}><sldId id="7" r:id="a"/></presentation>'.encode(),
                "ppt/_rels/presentation.xml.rels": relation("slide", "one.xml"),
                "ppt/one.xml": b"<sld><p><r><t>The ferry leaves at noon.</t></r></p></sld>",
            }
        ),
    )


class TestOpenDocumentReader(_DocumentReader):
    name = "opendocument"
    samples: ClassVar = dict.fromkeys(
        reader_of("opendocument").content_types, zipped({"content.xml": b"<d><p>The ferry leaves at noon.</p></d>"})
    )


class TestEpubReader(_DocumentReader):
    name = "epub"
    samples: ClassVar = dict.fromkeys(reader_of("epub").content_types, book(b"<p>The ferry leaves at noon."))


class TestCsvReader(_DocumentReader):
    name = "csv"
    samples: ClassVar = dict.fromkeys(reader_of("csv").content_types, b"ferry,noon\n")


class TestJsonReader(_DocumentReader):
    name = "json"
    samples: ClassVar = dict.fromkeys(reader_of("json").content_types, b'{"ferry": "noon"}')


class TestXmlTextReader(_DocumentReader):
    name = "xml"
    samples: ClassVar = dict.fromkeys(reader_of("xml").content_types, b"<t>The ferry leaves at noon.</t>")


class TestBuiltinExtractor(ExtractorContract):
    def make(self) -> Extractor:
        return BuiltinExtractor()


class TestTrafilaturaExtractor(ExtractorContract):
    def make(self) -> Extractor:
        return TrafilaturaExtractor()


class DigitFilter:
    def filter(self, text: str, url: str) -> str:
        return re.sub(r"\d+", "", text)


class TestDigitFilter(ChangeFilterContract):
    same = ("Seen 12 times. The ferry leaves.", "Seen 9 times. The ferry leaves.")

    def make(self) -> ChangeFilter:
        return DigitFilter()


class ListNotifier:
    def __init__(self, outbox: list[ChangeEvent]) -> None:
        self._outbox = outbox

    def notify(self, changes: Sequence[ChangeEvent]) -> None:
        self._outbox.extend(changes)


class TestListNotifier(NotifierContract):
    def make(self) -> Notifier:
        self.outbox: list[ChangeEvent] = []
        return ListNotifier(self.outbox)

    def sent(self) -> list[str]:
        return [change.url for change in self.outbox]


class Target:
    """Takes what a webhook sends."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    async def fetch(self, request: Request) -> Response:
        self.urls += [each["url"] for each in msgspec.json.decode(request.body or b"")["changes"]]
        return Response(request.url, 204)

    async def close(self) -> None:
        """Nothing is held that needs closing."""


class WaitedFor:
    """The webhook runs on the server's loop; here each call has one of its own."""

    def __init__(self, notifier: WebhookNotifier) -> None:
        self._notifier = notifier

    def notify(self, changes: Sequence[ChangeEvent]) -> None:
        asyncio.run(self._notifier.notify(changes))


class TestWebhookNotifier(NotifierContract):
    def make(self) -> Notifier:
        self.target = Target()
        hook = Subscription("a", "http://target.test/", "secret")

        def facts(changes: Sequence[ChangeEvent]) -> list[dict[str, str]]:
            return [{"url": change.url} for change in changes]

        return WaitedFor(WebhookNotifier(hook, self.target, SystemClock(), facts))

    def sent(self) -> list[str]:
        return self.target.urls


class CountingHook:
    def __init__(self) -> None:
        self.pages = 0

    def after_page(self, page: StoredPage) -> None:
        self.pages += 1


class TestCountingHook(PageHookContract):
    def make(self) -> PageHook:
        self.hook = CountingHook()
        return self.hook

    def effects(self) -> int:
        return self.hook.pages


def test_a_filter_that_keeps_everything_is_found_out() -> None:
    class KeepAll:
        def filter(self, text: str, url: str) -> str:
            return text

    class Keeping(ChangeFilterContract):
        same = ("Seen 12 times.", "Seen 9 times.")

        def make(self) -> ChangeFilter:
            return KeepAll()

    with pytest.raises(AssertionError):
        Keeping().test_what_does_not_count_is_left_out()
