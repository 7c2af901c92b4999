"""What does a crawl need of the world?"""

from __future__ import annotations

import msgspec

from levada.ports import Census, Clock, Fetcher, Frontier, Notices, Orders, Parser, RevisitPolicy, Sites

__all__ = ["CrawlPorts"]


class CrawlPorts(msgspec.Struct, frozen=True):
    """Everything outside that a crawl needs."""

    clock: Clock
    frontier: Frontier
    sites: Sites
    notices: Notices
    census: Census
    fetcher: Fetcher
    parser: Parser
    policy: RevisitPolicy
    orders: Orders | None = None
