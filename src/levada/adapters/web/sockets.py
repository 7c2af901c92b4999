"""Which of curl's sockets are ready?

`EpollSockets` where there is epoll, `LoopSockets` elsewhere: the same answer, at a higher price. `watch` has the
form of curl's own callback, and `ready(socket, event)` is told in curl's words.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol

import pycurl

__all__ = ["EpollSockets", "LoopSockets", "Sockets", "sockets_of_curl"]

Ready = Callable[[int, int], None]


class Sockets(Protocol):
    def watch(self, wanted: int, fd: int, _multi: object = None, _data: object = None) -> None:
        """From now on curl waits for `wanted` (POLL_IN, POLL_OUT, both, or POLL_REMOVE: nothing) on `fd`."""

    def close(self) -> None:
        """Leave nothing behind in the loop."""


def sockets_of_curl(loop: asyncio.AbstractEventLoop, ready: Ready) -> Sockets:
    return EpollSockets(loop, ready) if hasattr(select, "epoll") else LoopSockets(loop, ready)


class LoopSockets:
    """Every socket is a reader or writer of the loop for just as long as curl waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._wanted: dict[int, int] = {}

    def watch(self, wanted: int, fd: int, _multi: object = None, _data: object = None) -> None:
        before = self._wanted.pop(fd, 0)
        now = 0 if wanted == pycurl.POLL_REMOVE else wanted
        if now:
            self._wanted[fd] = now
        if (now ^ before) & pycurl.POLL_IN:
            if now & pycurl.POLL_IN:
                self._loop.add_reader(fd, self._ready, fd, pycurl.CSELECT_IN)
            else:
                self._loop.remove_reader(fd)
        if (now ^ before) & pycurl.POLL_OUT:
            if now & pycurl.POLL_OUT:
                self._loop.add_writer(fd, self._ready, fd, pycurl.CSELECT_OUT)
            else:
                self._loop.remove_writer(fd)

    def close(self) -> None:
        for fd in tuple(self._wanted):
            self.watch(pycurl.POLL_REMOVE, fd)


if hasattr(select, "epoll"):
    _EVENTS = {
        pycurl.POLL_IN: select.EPOLLIN,
        pycurl.POLL_OUT: select.EPOLLOUT,
        pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
    }
    _TOLD = {
        select.EPOLLIN: pycurl.CSELECT_IN,
        select.EPOLLOUT: pycurl.CSELECT_OUT,
        select.EPOLLIN | select.EPOLLOUT: pycurl.CSELECT_IN | pycurl.CSELECT_OUT,
    }


class EpollSockets:
    """An epoll of our own, which is the one thing that the loop watches.

    Between two exchanges a connection stays in it: taking its socket out of the loop and putting it in again costs
    more than anything else that an exchange asks of the loop. curl does not say when it closes such a socket, and
    need not: the kernel then takes it out by itself, and whoever gets its number next is not in. So what is in is
    never remembered here; the kernel is asked each time that curl waits for a socket again.
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
        self._loop.add_reader(self._epoll.fileno(), self._tell)

    def _tell(self) -> None:
        for fd, events in self._epoll.poll(0):
            wanted = self._wanted.get(fd)
            if wanted is not None:
                self._ready(fd, _TOLD.get(events, wanted))  # an error or a hang-up: curl finds out by trying
            else:
                self._take_out(fd)

    def _take_out(self, fd: int) -> None:
        """A connection that nobody uses was closed by the other side, or says something that nobody asked for."""
        try:
            self._epoll.unregister(fd)
        except OSError:  # closed here, but a child process has it open: only a new epoll gets rid of it
            self.close()
            self._open()
            for each, wanted in self._wanted.items():
                self._epoll.register(each, _EVENTS[wanted])
