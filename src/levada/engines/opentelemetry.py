"""OpenTelemetry spans around each fetch and each parse.

Source: OpenTelemetry's semantic conventions for HTTP clients. Its packages are an extra, and are imported only when
a crawl is traced.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from levada import __version__
from levada.core.errors import MissingExtra
from levada.core.protocols import Fetcher, Parser
from levada.core.records import ParsedPage, RawPage, Request, Response

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def traced(fetcher: Fetcher, parser: Parser) -> tuple[Fetcher, Parser]:
    """Both with spans, if the environment variables of OpenTelemetry name a receiver; otherwise unchanged."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return fetcher, parser
    try:
        tracing = Tracing()
    except ImportError:
        raise MissingExtra("opentelemetry-sdk", "otel") from None
    return TracedFetcher(fetcher, tracing.tracer, tracing), TracedParser(parser, tracing.tracer)


class Tracing:
    """Sends spans to the receiver that the environment names (`OTEL_EXPORTER_OTLP_ENDPOINT`), or to `exporter`."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "levada", "service.version": __version__})
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer("levada", __version__)

    def close(self) -> None:
        """Send the spans that have gathered, and end."""
        self._provider.shutdown()


class TracedFetcher:
    def __init__(self, fetcher: Fetcher, tracer: Tracer, close: Tracing | None = None) -> None:
        self._fetcher = fetcher
        self._tracer = tracer
        self._tracing = close

    async def fetch(self, request: Request) -> Response:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        method = "GET" if request.body is None else "POST"
        about = {"http.request.method": method, "url.full": request.url}
        with self._tracer.start_as_current_span("fetch", kind=SpanKind.CLIENT, attributes=about) as span:
            answer = await self._fetcher.fetch(request)
            span.set_attribute("http.response.status_code", answer.status)
            span.set_attribute("http.response.size", answer.wire_bytes)
            if answer.reason is not None:
                span.set_attribute("error.type", str(answer.reason))
                span.set_status(Status(StatusCode.ERROR, answer.detail))
            return answer

    async def close(self) -> None:
        await self._fetcher.close()
        if self._tracing is not None:
            self._tracing.close()


class TracedParser:
    def __init__(self, parser: Parser, tracer: Tracer) -> None:
        self._parser = parser
        self._tracer = tracer

    async def parse(self, page: RawPage) -> ParsedPage:
        about: dict[str, str | int] = {"url.full": page.url, "levada.body_bytes": len(page.body)}
        with self._tracer.start_as_current_span("parse", attributes=about) as span:
            parsed = await self._parser.parse(page)
            span.set_attribute("levada.words", parsed.words)
            if parsed.reason is not None:
                span.set_attribute("error.type", str(parsed.reason))
            return parsed

    async def close(self) -> None:
        await self._parser.close()
