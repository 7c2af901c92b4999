"""Scrapy, tuned: asyncio reactor on uvloop, the page reading that Levada uses in that row, own seen-set, no
logging.

With `--store` it keeps and indexes the pages, and its queue is on disk (JOBDIR). With `--trimmed` it goes as
far as a Scrapy user could: no cookies, referer, statistics or extensions, and CONCURRENT_ITEMS at 1 (Scrapy
starts that many tasks for every response, 100 unless told otherwise). What Levada does too stays on: robots,
retry, redirects, depth, URL length, compression, time-outs, size limits.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from lean import lean_parse
from scrapy.crawler import CrawlerProcess

from levada.core.records import Change, Document, ParsedPage, RawPage
from levada.pages.change import answer_mark
from levada.pages.compression import unpack_text
from levada.pages.parse import parse_page
from levada.pages.urls import site_of
from levada.search.tantivy.index import TantivyIndex

SETTINGS = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "USER_AGENT": "benchmark",
}
TRIMMED = {
    "COOKIES_ENABLED": False,
    "REFERER_ENABLED": False,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "EXTENSIONS_BASE": {},
    "CONCURRENT_ITEMS": 1,
}


class Shelf:
    """What a Scrapy user would write to keep pages: SQLite in batches, zstd, and the same index as Levada's."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "pages.db", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("CREATE TABLE pages (url TEXT PRIMARY KEY, title, digest, content)")
        self._index = TantivyIndex(folder / "index", writer=True)
        self._waiting: list[tuple[Any, ...]] = []
        self._changes: list[Change] = []
        self._count = 0

    def keep(self, url: str, page: ParsedPage, body_digest: bytes) -> None:
        self._waiting.append((url, page.title, body_digest, page.content_zstd))
        self._count += 1
        self._changes.append(self._change(url, page))
        if self._count % 200 == 0:
            self._flush()
        if self._count % 1000 == 0:
            self._apply()

    def close(self) -> None:
        self._flush()
        self._apply()
        self._index.close()
        self._database.close()

    def _change(self, url: str, page: ParsedPage) -> Change:
        text = unpack_text(page.content_zstd).decode()
        document = Document(
            page_id=self._count,
            url=url,
            site=site_of(url),
            version=1,
            title=page.title,
            language=page.language,
            charset=page.charset,
            text=text,
            body=b"",
            status=200,
            headers=(),
            fetched_at=0.0,
            checked_at=0.0,
            words=page.words,
            similarity=0.0,
            searchable=True,
        )
        return Change(self._count, self._count, url, document.site, document)

    def _apply(self) -> None:
        self._index.apply(self._changes)
        self._changes.clear()

    def _flush(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", self._waiting)
        self._database.execute("COMMIT")
        self._waiting.clear()


class Spider(scrapy.Spider):
    name = "peer"

    def __init__(self, starts: list[str], shelf: Shelf | None) -> None:
        super().__init__()
        self._starts = starts
        self._origins = tuple(starts)
        self._seen = set(starts)
        self._page_summaries = shelf
        self.pages = 0

    async def start(self) -> AsyncIterator[Any]:
        for url in self._starts:
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response: Any) -> Iterator[Any]:
        body_digest = answer_mark(response.body)
        kind = response.headers.get("Content-Type", b"").decode()
        read = parse_page if self._page_summaries is not None else lean_parse
        page = read(RawPage(response.url, response.body, kind))
        self.pages += 1
        if self._page_summaries is not None:
            self._page_summaries.keep(response.url, page, body_digest)
        for url in (*page.links, *(link.url for link in page.marked)):
            if url not in self._seen and url.startswith(self._origins):
                self._seen.add(url)
                yield scrapy.Request(url, dont_filter=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--trimmed", action="store_true")
    parser.add_argument("starts", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder)) if options.store else None
        # Levada's frontier is on disk too: a crawl that is stored can be resumed.
        resumable = {"JOBDIR": f"{folder}/job"} if options.store else {}
        process = CrawlerProcess({**SETTINGS, **resumable, **(TRIMMED if options.trimmed else {})})
        crawler = process.create_crawler(Spider)
        process.crawl(crawler, starts=options.starts, shelf=shelf)
        process.start()
        if shelf is not None:
            shelf.close()
        print(json.dumps({"pages": crawler.spider.pages}))


if __name__ == "__main__":
    main()
