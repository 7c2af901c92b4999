"""Retention beside a crawl: versions that the settings do not keep go, a few pages at a time.

A new version makes its page's old ones go at once. This is for the pages that did not change since, and for those
that are gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import cast

from levada.core.errors import StoreError
from levada.core.protocols import Clock
from levada.core.settings import Settings
from levada.store.base import Capability, Forgetting, Store
from levada.store.opening import store_limits

log = logging.getLogger(__name__)

_AT_ONCE = 100  # pages
_BETWEEN = 1.0  # seconds between two batches
_AGAIN = 3600.0  # seconds after which it begins anew


def retention_beside(store: Store, settings: Settings, clock: Clock) -> list[Callable[[], Coroutine[None, None, None]]]:
    """What runs beside a crawl: nothing, where no rule depends on time."""
    if not store_limits(settings).retains_by_time or Capability.FORGET not in store.capabilities:
        return []
    return [partial(_apply_retention, cast("Forgetting", store), settings, clock)]


async def _apply_retention(forgetting: Forgetting, settings: Settings, clock: Clock) -> None:
    after, trouble = 0, ""
    while True:
        try:
            following = await asyncio.to_thread(_apply_some, forgetting, after, clock.now(), settings)
        except StoreError as error:  # the crawl itself finds out whether it can go on
            following = after
            if str(error) != trouble:
                trouble = str(error)
                log.warning("old versions stay for now: %s", error)
        await asyncio.sleep(_AGAIN if following is None else _BETWEEN)
        after = following or 0


def _apply_some(store: Forgetting, after: int, now: float, settings: Settings) -> int | None:
    following, _, expired = store.thin_out(after, _AT_ONCE, now, store_limits(settings).retention)
    if expired:
        store.erase(expired, only_gone=True)
    return following
