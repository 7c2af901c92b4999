"""Settings in, the engine behind each port out."""

from __future__ import annotations

import gc
import os

from levada.clock import ScaledClock, SystemClock
from levada.flow.settings import ClockSettings, ParseSettings, RevisitSettings, Settings
from levada.freshness import EmaRevisit, FixedRevisit
from levada.ports import Clock, Fetcher, Parser, RevisitPolicy

__all__ = ["calm_collector", "make_clock", "make_fetcher", "make_parser", "make_policy", "user_agent"]


def calm_collector() -> None:
    """Let the garbage collector look less often: a crawl makes many objects and hardly a cycle, and looking after
    every 700 of them costs a tenth of its CPU."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def make_clock(settings: ClockSettings) -> Clock:
    if settings.speed == 1.0 and not settings.started:
        return SystemClock()
    return ScaledClock(settings.speed, settings.origin, settings.started)


def make_policy(settings: RevisitSettings) -> RevisitPolicy:
    if settings.policy == "fixed":
        return FixedRevisit(settings.first)
    return EmaRevisit(settings.first, settings.floor, settings.ceiling)


def make_parser(settings: ParseSettings) -> Parser:
    from levada.adapters.parser_pool import ParserPool

    children = settings.children or max(1, (os.cpu_count() or 2) - 1)
    return ParserPool(
        children, memory=settings.memory, cpu_seconds=settings.cpu_seconds, main_text=settings.main_text
    )


def make_fetcher(settings: Settings) -> Fetcher:
    from levada.adapters.guard import AddressGuard
    from levada.adapters.web import CurlFetcher, FetchLimits

    fetch = settings.fetch
    limits = FetchLimits(
        max_bytes=fetch.max_bytes,
        max_decoded_bytes=fetch.max_decoded_bytes,
        max_header_bytes=fetch.max_header_bytes,
        max_buffered_bytes=fetch.max_buffered_bytes,
        seconds=fetch.seconds,
        connect_seconds=fetch.connect_seconds,
        min_rate=fetch.min_rate,
        min_rate_seconds=fetch.min_rate_seconds,
    )
    return CurlFetcher(
        limits,
        AddressGuard(settings.guard.allow),
        agent=user_agent(settings),
        ca_file=fetch.ca_file or None,
        connections=2 * fetch.slots,
        http2=fetch.http2,
    )


def user_agent(settings: Settings) -> str:
    from levada import __version__

    polite = settings.politeness
    contact = f" (+{polite.contact})" if polite.contact else ""
    return f"{polite.agent}/{__version__}{contact}"
