"""Traces, where the environment asks for them."""

from __future__ import annotations

import os

from levada.errors import MissingExtra
from levada.ports import Fetcher, Parser

__all__ = ["traced"]

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def traced(fetcher: Fetcher, parser: Parser) -> tuple[Fetcher, Parser]:
    """The same two, with a span around whatever they do if OpenTelemetry's usual variables name a receiver."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return fetcher, parser
    try:
        from levada.adapters.otel import TracedFetcher, TracedParser, Tracing
    except ImportError as error:
        raise MissingExtra(error.name or "opentelemetry-sdk", "otel") from None
    tracing = Tracing()
    return TracedFetcher(fetcher, tracing.tracer, tracing), TracedParser(parser, tracing.tracer)
