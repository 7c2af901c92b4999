"""One time for all machines of a collection: that of its first database server.

Leases end, and visits happen, at points in time that one machine writes and another compares. A machine whose clock is
an hour ahead would give back every page that it is sent, and put off the sites that it visits by an hour.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from levada.core.clock import CorrectedClock, SystemClock, make_clock
from levada.core.errors import StoreError
from levada.core.protocols import Clock
from levada.core.settings import ClockSettings

log = logging.getLogger(__name__)

_AGAIN = 60.0  # seconds between two measurements


@asynccontextmanager
async def shared_clock(home: str, settings: ClockSettings) -> AsyncIterator[Clock]:
    """The clock that the settings ask for, by the time of the server `home`; "": by that of this machine."""
    own = make_clock(settings)
    if not home:
        yield own
        return
    clock = CorrectedClock(own, settings.speed)
    await _correct(clock, home, was_told := [False])
    keeping = asyncio.ensure_future(_keep_right(clock, home, was_told))
    try:
        yield clock
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


async def _keep_right(clock: CorrectedClock, home: str, was_told: list[bool]) -> None:
    while True:
        await asyncio.sleep(_AGAIN)
        await _correct(clock, home, was_told)


async def _correct(clock: CorrectedClock, home: str, was_told: list[bool]) -> None:
    from levada.store.postgresql.server_clock import clock_ahead, told

    try:
        ahead = await asyncio.to_thread(clock_ahead, home, SystemClock().now)
    except StoreError as error:  # what was known stays as good as it was
        log.debug("the clock of the database is not known: %s", error)
        return
    clock.correct(ahead)
    if ahead and not was_told[0]:
        log.warning("%s", told(ahead))
    was_told[0] = bool(ahead)
