"""When may curl read or write? asyncio's running loop tells it: no thread, no polling.

curl says which sockets and which alarm it waits for; the loop (uvloop or asyncio's own) wakes it for exactly these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pycurl

from levada.adapters.web.sockets import sockets_of_curl

__all__ = ["CurlDriver"]

Done = Callable[[Any, int, str], None]


class CurlDriver:
    """Runs curl handles to their end and hands each to `done(handle, code, message)`; code 0 is success."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Done, *, keep_connections: int) -> None:
        self._loop = loop
        self._done = done
        self._sockets = sockets_of_curl(loop, self._act)
        self._running = 0
        self._soon: asyncio.Handle | None = None
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0  # kept here: uvloop's handle for "almost now" does not know its own time
        self._deadline: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, keep_connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_alarm)

    def start(self, handle: Any) -> None:
        self._running += 1
        self._multi.add_handle(handle)  # curl asks for an alarm at once, which begins the transfer

    def stop(self, handle: Any) -> None:
        """Forget a handle, finished or not."""
        self._running -= 1
        self._multi.remove_handle(handle)

    def close(self) -> None:
        """Close every connection; all handles were stopped before."""
        self._multi.close()
        self._sockets.close()
        for timer in (self._soon, self._alarm):
            if timer is not None:
                timer.cancel()

    def _set_alarm(self, milliseconds: int) -> None:
        if milliseconds <= 0:
            self._deadline = None
            if milliseconds == 0 and self._soon is None:
                self._soon = self._loop.call_soon(self._ring_now)
            return
        self._deadline = self._loop.time() + milliseconds / 1000
        # curl moves its alarm with every transfer: one that rings too early is cheaper than one set anew each time.
        if self._alarm is None or self._alarm_at > self._deadline:
            self._rearm(self._deadline)

    def _rearm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._ring)
        self._alarm_at = when

    def _ring(self) -> None:
        self._alarm = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._rearm(self._deadline)
            return
        self._deadline = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        if self._deadline is None:
            # A loop's clock may be a little ahead of curl's, which does not repeat an alarm that rang too early.
            self._set_alarm(self._multi.timeout())

    def _ring_now(self) -> None:
        self._soon = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, event: int) -> None:
        _, running = self._multi.socket_action(fd, event)
        if running < self._running:
            self._collect()

    def _collect(self) -> None:
        waiting = 1
        while waiting:
            waiting, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                self._done(handle, 0, "")
            for handle, code, message in failed:
                self._done(handle, code, message)
