"""Event loop driver for curl: no thread, no polling.

curl names the sockets and the timer that it waits for, and the loop (uvloop or asyncio's own) wakes it for exactly
these. `EpollSockets` watches the sockets where the system has epoll; `LoopSockets` does the same elsewhere, at a
higher cost. `watch` is curl's socket callback, and `ready(socket, event)` takes curl's event flags.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Any, Protocol

import pycurl

Ready = Callable[[int, int], None]


class Sockets(Protocol):
    def watch(self, wanted: int, fd: int, _multi: object = None, _data: object = None) -> None:
        """Watch `fd` for `wanted`: POLL_IN, POLL_OUT, both, or POLL_REMOVE for neither."""

    def close(self) -> None:
        """Remove everything from the loop."""


def sockets_of_curl(loop: asyncio.AbstractEventLoop, ready: Ready) -> Sockets:
    return EpollSockets(loop, ready) if hasattr(select, "epoll") else LoopSockets(loop, ready)


class LoopSockets:
    """Registers each socket as a reader or writer of the loop while curl waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._wanted: dict[int, int] = {}

    def watch(self, wanted: int, fd: int, _multi: object = None, _data: object = None) -> None:
        before = self._wanted.pop(fd, 0)
        now = 0 if wanted == pycurl.POLL_REMOVE else wanted
        if now:
            self._wanted[fd] = now
        loop = self._loop
        for poll, event, add, remove in (
            (pycurl.POLL_IN, pycurl.CSELECT_IN, loop.add_reader, loop.remove_reader),
            (pycurl.POLL_OUT, pycurl.CSELECT_OUT, loop.add_writer, loop.remove_writer),
        ):
            if now & ~before & poll:
                add(fd, self._ready, fd, event)
            elif before & ~now & poll:
                remove(fd)

    def close(self) -> None:
        for fd in tuple(self._wanted):
            self.watch(pycurl.POLL_REMOVE, fd)


if hasattr(select, "epoll"):
    _EVENTS = {
        pycurl.POLL_IN: select.EPOLLIN,
        pycurl.POLL_OUT: select.EPOLLOUT,
        pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
    }
    _CURL_EVENTS = {
        select.EPOLLIN: pycurl.CSELECT_IN,
        select.EPOLLOUT: pycurl.CSELECT_OUT,
        select.EPOLLIN | select.EPOLLOUT: pycurl.CSELECT_IN | pycurl.CSELECT_OUT,
    }


class EpollSockets:
    """An own epoll, which is the only file that the loop watches.

    A connection stays registered between two exchanges: removing its socket from the loop and adding it again costs
    more than anything else that an exchange needs of the loop. curl does not report that it closes such a socket,
    and need not: the kernel then removes it, and a new socket with the same number is not registered. So this class
    does not remember what is registered; it asks the kernel each time that curl waits for a socket.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._wanted: dict[int, int] = {}
        self._open()

    def watch(self, wanted: int, fd: int, _multi: object = None, _data: object = None) -> None:
        if wanted == pycurl.POLL_REMOVE:
            self._wanted.pop(fd, None)
            return
        self._wanted[fd] = wanted
        try:
            self._epoll.modify(fd, _EVENTS[wanted])
        except FileNotFoundError:  # it is new, or has the number of one that was closed
            self._epoll.register(fd, _EVENTS[wanted])

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _open(self) -> None:
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._dispatch)

    def _dispatch(self) -> None:
        for fd, events in self._epoll.poll(0):
            wanted = self._wanted.get(fd)
            if wanted is not None:
                self._ready(fd, _CURL_EVENTS.get(events, wanted))  # on an error or hang-up curl finds out by trying
            else:
                self._remove(fd)

    def _remove(self, fd: int) -> None:
        """Remove an idle connection that the other side closed or sent something unexpected on."""
        try:
            self._epoll.unregister(fd)
        except OSError:  # closed here, but open in a child process: only a new epoll is rid of it
            self.close()
            self._open()
            for each, wanted in self._wanted.items():
                self._epoll.register(each, _EVENTS[wanted])


Done = Callable[[Any, int, str], None]


class CurlDriver:
    """Runs curl handles and passes each to `done(handle, code, message)` at its end; code 0 is success."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Done, *, keep_connections: int) -> None:
        self._loop = loop
        self._done = done
        self._sockets = sockets_of_curl(loop, self._act)
        self._running = 0
        self._soon: asyncio.Handle | None = None
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0  # kept here, because a handle of uvloop may not know its time
        self._deadline: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, keep_connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._sockets.watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_alarm)

    def start(self, handle: Any) -> None:
        self._running += 1
        self._multi.add_handle(handle)  # curl sets its timer at once, which begins the transfer

    def stop(self, handle: Any) -> None:
        """Remove a handle, finished or not."""
        self._running -= 1
        self._multi.remove_handle(handle)

    def close(self) -> None:
        """Close every connection; all handles must have been stopped."""
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
        # curl moves its timer with every transfer: one that fires too early is cheaper than setting it each time.
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
            # The loop's clock may be slightly ahead of curl's, and curl does not repeat a timer that fired early.
            self._set_alarm(self._multi.timeout())

    def _ring_now(self) -> None:
        self._soon = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, event: int) -> None:
        _, running = self._multi.socket_action(fd, event)
        waiting = running < self._running
        while waiting:
            waiting, succeeded, failed = self._multi.info_read()
            for handle in succeeded:
                self._done(handle, 0, "")
            for handle, code, message in failed:
                self._done(handle, code, message)
