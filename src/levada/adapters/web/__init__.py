"""How do we ask a web server? `CurlFetcher` is the network's adapter: libcurl on asyncio's running loop."""

from __future__ import annotations

from levada.adapters.web.fetcher import CurlFetcher
from levada.adapters.web.limits import FetchLimits

__all__ = ["CurlFetcher", "FetchLimits"]
