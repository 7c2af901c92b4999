"""Is the site well? What an answer, or the lack of one, says about its site.

Kept apart from the page: one page's 404 says nothing about the site; five unanswered requests in a row do.
"""

from __future__ import annotations

from levada.flow.fetch import Fetched
from levada.flow.retry import retry_after
from levada.flow.sitebook import SiteBook
from levada.reasons import Reason

__all__ = ["Weather"]

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


class Weather:
    def __init__(self, sites: SiteBook) -> None:
        self._sites = sites

    async def after(self, fetched: Fetched) -> float | None:
        """Note how the site did; until when it should be left alone, if it should."""
        site, now = fetched.lease.page.site, fetched.at
        response = fetched.response
        trouble = fetched.refused if response is None else response.reason
        if response is not None and response.status in (429, 503):
            wait = retry_after(response.header("retry-after"), now, _MOST_WAIT)
            if wait is not None:
                await self._sites.told_to_wait(site, now + wait)
                return now + wait
        if trouble in _SITE_TROUBLE or (
            response is not None and (response.status >= 500 or response.status == 429)
        ):
            return await self._sites.failed(site, now)
        if response is not None and response.status:
            await self._sites.answered(site)
        return None
