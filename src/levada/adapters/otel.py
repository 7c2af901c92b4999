"""What took how long, for OpenTelemetry? A span around each exchange and each reading, by wrapping the ports.

Source: OpenTelemetry's semantic conventions for HTTP clients.
"""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from levada import __version__
from levada.ports import Fetcher, Parser
from levada.records import ParsedPage, RawPage, Request, Response

__all__ = ["TracedFetcher", "TracedParser", "Tracing"]


class Tracing:
    """Sends spans to where the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT`), or to `exporter`."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "levada", "service.version": __version__})
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer("levada", __version__)

    def close(self) -> None:
        """What has gathered is sent."""
        self._provider.shutdown()


class TracedFetcher:
    def __init__(self, fetcher: Fetcher, tracer: Tracer, close: Tracing | None = None) -> None:
        self._fetcher = fetcher
        self._tracer = tracer
        self._tracing = close

    async def fetch(self, request: Request) -> Response:
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
