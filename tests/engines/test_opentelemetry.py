"""Spans tell what was asked, what came, and what went wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from levada.core.records import RawPage, Request, Response
from levada.engines.opentelemetry import ENDPOINTS, TracedFetcher, TracedParser, Tracing, traced
from levada.parser.inline import InlineParser
from tests.scripted_web import MemoryFetcher

FRONT = "http://site.example/"


def test_an_exchange_and_a_reading_are_a_span_each() -> None:
    spans = InMemorySpanExporter()

    async def story() -> None:
        tracing = Tracing(spans)
        script = {FRONT: Response("", 200, (), b"<title>Ferry</title>ferry times")}
        fetcher = TracedFetcher(MemoryFetcher(script), tracing.tracer, tracing)
        parser = TracedParser(InlineParser(), tracing.tracer)
        answer = await fetcher.fetch(Request(FRONT))
        await parser.parse(RawPage(FRONT, answer.body, "text/html"))
        await fetcher.fetch(Request("http://nowhere.example/"))
        await parser.close()
        await fetcher.close()

    asyncio.run(story())
    fetched, parsed, failed = spans.get_finished_spans()
    assert (fetched.name, parsed.name, failed.name) == ("fetch", "parse", "fetch")
    assert fetched.attributes is not None
    assert fetched.attributes["url.full"] == FRONT
    assert fetched.attributes["http.response.status_code"] == 200
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "dns"
    assert failed.status.status_code is StatusCode.ERROR
    assert fetched.resource.attributes["service.name"] == "levada"


def test_without_a_receiver_nothing_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    fetcher, parser = MemoryFetcher({}), InlineParser()
    assert traced(fetcher, parser) == (fetcher, parser)


def test_with_a_receiver_both_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:9")
    fetcher, parser = traced(MemoryFetcher({}), InlineParser())
    assert isinstance(fetcher, TracedFetcher)
    assert isinstance(parser, TracedParser)
    asyncio.run(fetcher.close())


def test_without_the_extra_an_untraced_crawl_runs_and_a_traced_one_says_what_to_install() -> None:
    script = (
        "import os, sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from levada.engines.opentelemetry import ENDPOINTS, traced\n"
        "os.environ.pop(ENDPOINTS[0], None), os.environ.pop(ENDPOINTS[1], None)\n"
        "assert traced(1, 2) == (1, 2)\n"
        "os.environ[ENDPOINTS[0]] = 'http://127.0.0.1:9'\n"
        "try:\n"
        "    traced(1, 2)\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "opentelemetry-sdk is not installed: pip install 'levada[otel]'\n"
