"""curl hears of the sockets that it waits for, and of no others, however their numbers are reused."""

from __future__ import annotations

import asyncio
import os
import re
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pycurl
import pytest
import uvloop

from levada.core.records import Request, Response
from levada.fetch import CurlFetcher
from levada.fetch.event_loop import EpollSockets, LoopSockets, Sockets, sockets_of_curl
from tests.fetch.fetching import with_fetcher
from tests.fetch.servers import Answer, Exchange, answer, web
from tests.needs import needs

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
KINDS: dict[str, Callable[..., Sockets]] = {"loop": LoopSockets}
if hasattr(select, "epoll"):
    KINDS["epoll"] = EpollSockets
needs_epoll = needs("epoll" in KINDS, "there is no epoll here")
IN, OUT, BOTH, NOTHING = pycurl.POLL_IN, pycurl.POLL_OUT, pycurl.POLL_INOUT, pycurl.POLL_REMOVE


class Told:
    """What curl would have been told; each readable socket is read, as curl does."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.change_kind = asyncio.Event()

    def ready(self, fd: int, event: int) -> None:
        self.events.append((fd, event))
        if event & pycurl.CSELECT_IN:
            os.read(fd, 1000)
        self.change_kind.set()

    async def next(self) -> tuple[int, int]:
        await asyncio.wait_for(self.change_kind.wait(), 10)
        self.change_kind.clear()
        return self.events[-1]


@pytest.fixture(params=LOOPS)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as made:
        yield made


@contextmanager
def two_ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


async def some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", KINDS)
def test_curl_is_told_what_it_waits_for_as_often_as_it_waits(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told = Told()
        with two_ends() as (ours, theirs), closing(KINDS[kind](asyncio.get_running_loop(), told.ready)) as sockets:
            fd = ours.fileno()
            for _ in range(3):
                sockets.watch(OUT, fd)
                assert await told.next() == (fd, pycurl.CSELECT_OUT)
                sockets.watch(IN, fd)
                theirs.send(b"x")
                assert await told.next() == (fd, pycurl.CSELECT_IN)
                sockets.watch(NOTHING, fd)
            sockets.watch(BOTH, fd)
            assert (await told.next())[1] & pycurl.CSELECT_OUT

    runner.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_a_hang_up_is_told_as_what_curl_waits_for(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told = Told()
        with two_ends() as (ours, theirs), closing(KINDS[kind](asyncio.get_running_loop(), told.ready)) as sockets:
            sockets.watch(IN, ours.fileno())
            theirs.close()
            assert await told.next() == (ours.fileno(), pycurl.CSELECT_IN)

    runner.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_waits_for_is_not_told_until_somebody_does(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told = Told()
        with two_ends() as (ours, theirs), closing(KINDS[kind](asyncio.get_running_loop(), told.ready)) as sockets:
            sockets.watch(IN, ours.fileno())
            sockets.watch(NOTHING, ours.fileno())
            theirs.send(b"x")
            await some_turns()
            assert told.events == []
            sockets.watch(IN, ours.fileno())
            assert await told.next() == (ours.fileno(), pycurl.CSELECT_IN)

    runner.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_a_closed_socket_works_for_the_next_one(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told = Told()
        with ExitStack() as stack, closing(KINDS[kind](asyncio.get_running_loop(), told.ready)) as sockets:
            first, _ = stack.enter_context(two_ends())
            second, theirs = stack.enter_context(two_ends())
            number = first.fileno()
            sockets.watch(IN, number)
            sockets.watch(NOTHING, number)
            os.dup2(second.fileno(), number)  # closes the first
            sockets.watch(IN, number)
            theirs.send(b"x")
            assert await told.next() == (number, pycurl.CSELECT_IN)

    runner.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_a_closed_socket_is_free_for_the_loop(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told, loop, read = Told(), asyncio.get_running_loop(), asyncio.Event()
        with ExitStack() as stack, closing(KINDS[kind](loop, told.ready)) as sockets:
            first, _ = stack.enter_context(two_ends())
            second, theirs = stack.enter_context(two_ends())
            number = first.fileno()
            sockets.watch(IN, number)
            sockets.watch(NOTHING, number)
            os.dup2(second.fileno(), number)
            loop.add_reader(number, read.set)
            theirs.send(b"x")
            await asyncio.wait_for(read.wait(), 10)
            loop.remove_reader(number)
            assert told.events == []

    runner.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_after_close_nothing_is_told(kind: str, runner: asyncio.Runner) -> None:
    async def story() -> None:
        told = Told()
        with two_ends() as (ours, theirs):
            sockets = KINDS[kind](asyncio.get_running_loop(), told.ready)
            sockets.watch(IN, ours.fileno())
            sockets.close()
            theirs.send(b"x")
            await some_turns()
        assert told.events == []

    runner.run(story())


@needs_epoll
@pytest.mark.parametrize("still_open_in_a_child", [False, True])
def test_a_connection_that_nobody_uses_wakes_the_loop_once(still_open_in_a_child: bool, runner: asyncio.Runner) -> None:
    woken = 0

    class Counted(EpollSockets):
        def _dispatch(self) -> None:
            nonlocal woken
            woken += 1
            super()._dispatch()

    async def story() -> None:
        told = Told()
        with ExitStack() as stack, closing(Counted(asyncio.get_running_loop(), told.ready)) as sockets:
            idle, away = stack.enter_context(two_ends())
            busy, theirs = stack.enter_context(two_ends())
            sockets.watch(IN, idle.fileno())
            sockets.watch(NOTHING, idle.fileno())
            sockets.watch(IN, busy.fileno())
            if still_open_in_a_child:
                stack.enter_context(idle.dup())
                idle.close()
            away.close()
            await some_turns()
            assert woken == 1
            theirs.send(b"x")
            assert await told.next() == (busy.fileno(), pycurl.CSELECT_IN)

    runner.run(story())


def test_the_cheaper_way_is_taken_where_there_is_one() -> None:
    async def story() -> str:
        with closing(sockets_of_curl(asyncio.get_running_loop(), Told().ready)) as sockets:
            return type(sockets).__name__

    assert asyncio.run(story()) == ("EpollSockets" if "epoll" in KINDS else "LoopSockets")


def one_after_the_other(urls: list[str]) -> Callable[[CurlFetcher], Awaitable[list[Response]]]:
    async def ask(fetcher: CurlFetcher) -> list[Response]:
        return [await fetcher.fetch(Request(url)) for url in urls]

    return ask


def test_connections_that_curl_drops_for_others_leave_their_numbers_fit_for_use() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(web({"/": answer(b"x" * size)})) for size in range(1, 8)]
        urls = [f"{server.url}/" for server in servers] * 3
        ask = one_after_the_other(urls)  # of seven connections, one handle keeps four
        responses = with_fetcher(ask, [server.address for server in servers], connections=1)
        assert all(server.connections > 1 for server in servers)
    assert [len(response.body) for response in responses] == [*range(1, 8)] * 3


def test_connections_that_the_server_ends_leave_their_numbers_fit_for_use() -> None:
    def once(exchange: Exchange) -> None:
        exchange.send(answer(b"once"))  # and the server closes, without having said so

    answers: dict[str, Answer] = {"/once": once, "/": answer(b"more")}
    with web(answers) as server:
        urls = [f"{server.url}{path}" for path in ("/once", "/", "/", "/once", "/once", "/")]
        responses = with_fetcher(one_after_the_other(urls), [server.address], connections=1)
    assert [response.body for response in responses] == [b"once", b"more", b"more", b"once", b"once", b"more"]


@needs_epoll
@needs(Path("/proc/self/fdinfo").exists(), "looks into epolls by /proc")
def test_no_epoll_holds_a_socket_that_curl_closed() -> None:
    async def ask_and_look(fetcher: CurlFetcher) -> list[tuple[int, int]]:
        await one_after_the_other([f"{server.url}/" for server in servers] * 2)(fetcher)
        return list(held_by_epolls())

    with ExitStack() as stack:
        servers = [stack.enter_context(web({"/": answer(b"x")})) for _ in range(7)]
        held = with_fetcher(ask_and_look, [server.address for server in servers], connections=1)
    assert len(held) >= 4  # the connections that one handle keeps
    assert [inode for inode, of_its_number in held if inode != of_its_number] == []


def held_by_epolls() -> Iterator[tuple[int, int]]:
    """Of each descriptor in an epoll of this process: the inode that it was, and the one of its number now."""
    for info in list(Path("/proc/self/fdinfo").iterdir()):
        for entry in re.finditer(r"^tfd: *([0-9]+) .* ino:([0-9a-f]+)", text_of(info), re.MULTILINE):
            yield int(entry[2], 16), inode_of(int(entry[1]))


def text_of(info: Path) -> str:
    try:
        return info.read_text()
    except FileNotFoundError:
        return ""


def inode_of(fd: int) -> int:
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return -1
