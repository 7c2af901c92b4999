"""Who holds a connection and does not ask is let go; who waits for an answer is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from threading import Thread

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.serve.gateway import PatientProtocol


class Hasty(PatientProtocol):
    head_seconds = 0.3


async def _late(_request: Request) -> Response:
    await asyncio.sleep(2 * Hasty.head_seconds)
    return Response("late")


async def _at_once(_request: Request) -> Response:
    return Response("here")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    app = Starlette(routes=[Route("/late", _late), Route("/", _at_once)])
    server = uvicorn.Server(uvicorn.Config(app, http=Hasty, log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as door:
        running = Thread(target=server.run, kwargs={"sockets": [door]})
        running.start()
        yield door.getsockname()[1]
        server.should_exit = True
        running.join(20)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: "])
def test_a_connection_that_does_not_ask_is_closed(port: int, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(said)
        assert line.recv(1000) == b""


def test_so_is_one_that_asked_before_and_then_sends_half(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while not got.endswith(b"here"):
            got += line.recv(1000)
        line.sendall(b"GET / HTTP/1.1\r\n")
        assert line.recv(1000) == b""


def test_who_waits_for_an_answer_gets_it(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(b"GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = b""
        while piece := line.recv(1000):
            got += piece
        assert got.endswith(b"late")
