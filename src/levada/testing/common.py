"""Shared parts of the suites: property settings, tests in an event loop, and a stored page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from hypothesis import HealthCheck, settings
from msgspec.structs import replace

from levada.core.records import Document

P = ParamSpec("P")


def properties(examples: int = 50, *shared: HealthCheck) -> settings:
    """Settings of a property that subclasses inherit; `shared` names what its examples may share."""
    checks = [HealthCheck.differing_executors, *shared]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks, database=None)


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a coroutine as a test, in an event loop of its own."""

    @wraps(test)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        asyncio.run(test(*arguments, **options))

    return run


def a_document(number: int = 1, site: str = "example.org", **facts: object) -> Document:
    """A stored page."""
    text = f"words of page {number}"
    document = Document(
        page_id=number,
        url=f"http://{site}/{number}",
        site=site,
        version=1,
        title=f"Page {number}",
        language="en",
        charset="utf-8",
        text=text,
        body=f"<p>{text}</p>".encode(),
        status=200,
        headers=(("content-type", "text/html"),),
        fetched_at=1_700_000_000.0,
        checked_at=1_700_000_100.0,
        words=4,
        similarity=0.0,
        searchable=True,
    )
    return replace(document, **facts)
