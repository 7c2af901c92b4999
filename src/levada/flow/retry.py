"""How long until we try again what did not work, and which moment does a header name?

Doubling waits with a spread that depends on the page alone, so that pages which failed together do not come back
together, and a rerun decides the same.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from zlib import crc32

__all__ = ["doubling", "http_date", "retry_after"]


def doubling(first: float, times: int, most: float, url: str) -> float:
    """`first`, doubled `times` times, at most `most`, spread by up to a fifth."""
    spread = 0.9 + 0.2 * (crc32(url.encode()) / 2**32)
    return float(min(first * 2 ** min(max(times, 0), 60), most)) * spread


def retry_after(value: str | None, now: float, most: float) -> float | None:
    """Seconds that a Retry-After header asks for; None if it asks for nothing that can be understood."""
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), most)
    moment = http_date(value)
    return None if moment is None else min(max(moment - now, 0.0), most)


def http_date(value: str | None) -> float | None:
    """The moment that a header names; None if it names none that can be understood. No zone means UTC."""
    if not value:
        return None
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
