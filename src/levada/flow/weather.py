"""Is the site well? What an answer, or the lack of one, says about its site.

Kept apart from the page: one page's 404 says nothing about the site; five unanswered requests in a row do.
"""

from __future__ import annotations

import msgspec

from levada.flow.fetch import Fetched
from levada.flow.retry import retry_after
from levada.flow.sitebook import SiteBook
from levada.reasons import Reason

__all__ = ["Rest", "Weather"]

_SITE_TROUBLE = frozenset(
    {
        Reason.DNS,
        Reason.CONNECT,
        Reason.TLS,
        Reason.PROTOCOL,
        Reason.SECONDS,
        Reason.MIN_RATE,
        Reason.ROBOTS_UNREACHABLE,
    }
)
_MOST_WAIT = 86_400.0


class Rest(msgspec.Struct, frozen=True):
    """A site should be left alone for a while: because it failed, or because it said how long."""

    until: float
    was_asked_for: bool


class Weather:
    def __init__(self, sites: SiteBook) -> None:
        self._sites = sites

    async def after(self, fetched: Fetched) -> Rest | None:
        """Note how the site did; the rest that it should have now, if any."""
        site, now = fetched.lease.page.site, fetched.at
        response = fetched.response
        trouble = fetched.refused if response is None else response.reason
        if response is not None and response.status in (429, 503):
            wait = retry_after(response.header("retry-after"), now, _MOST_WAIT)
            if wait:  # a wait that is over already says nothing of when the site works again
                await self._sites.told_to_wait(site, now + wait)
                return Rest(now + wait, was_asked_for=True)
        if trouble in _SITE_TROUBLE or (
            response is not None and (response.status >= 500 or response.status == 429)
        ):
            until = await self._sites.failed(site, now)
            return None if until is None else Rest(until, was_asked_for=False)
        if response is not None and response.status:
            await self._sites.answered(site)
        return None
