"""The fetch step: a leased page in, what the site answered out.

A page that was stored is asked for conditionally, so that "unchanged" costs no body; now and then, and where a site
was caught saying so wrongly, it is asked for whole.
"""

from __future__ import annotations

import msgspec

from levada.ports import Clock, Fetcher, RevisitPolicy
from levada.reasons import Reason
from levada.records import Lease, PageRecord, Request, Response

__all__ = ["FetchStep", "Fetched"]


class Fetched(msgspec.Struct, frozen=True):
    """A visit as far as the network goes: an answer, or the reason why none was asked for."""

    lease: Lease
    at: float
    response: Response | None = None
    refused: Reason | None = None


class FetchStep:
    def __init__(self, fetcher: Fetcher, clock: Clock, policy: RevisitPolicy) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._policy = policy

    async def __call__(self, lease: Lease) -> Fetched:
        page = lease.page
        conditions = _conditions(page)
        if conditions and self._policy.asks_whole(page):
            conditions = ()
        response = await self._fetcher.fetch(Request(page.url, conditions))
        return Fetched(lease, self._clock.now(), response)


def _conditions(page: PageRecord) -> tuple[tuple[str, str], ...]:
    conditions = []
    if page.body_digest is not None:  # only ask "has it changed?" about something that we hold
        if page.etag:
            conditions.append(("If-None-Match", page.etag))
        if page.last_modified:
            conditions.append(("If-Modified-Since", page.last_modified))
    return tuple(conditions)
