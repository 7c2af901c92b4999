"""The egress proxy: who may use it, what it dials, and when it ends."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from levada.browser.egress import KEY_HOST, EgressLimits, EgressProxy, Pass
from levada.fetch.guard import AddressGuard
from tests.fetch.servers import answer, canary, endless, web
from tests.fetch.test_guard import NOT_PUBLIC, SPELLINGS


def through(
    allow: tuple[str, ...],
    work: Callable[[EgressProxy, Pass], Awaitable[Any]],
    limits: EgressLimits = EgressLimits(),  # noqa: B008 - frozen
) -> Any:
    async def run() -> Any:
        proxy = EgressProxy(AddressGuard(allow), limits)
        await proxy.start()
        try:
            issued = proxy.issue()
            issued.open()
            return await work(proxy, issued)
        finally:
            await proxy.close()

    return asyncio.run(run())


async def ask(proxy: EgressProxy, head: str, secret: str = "", after: bytes = b"") -> bytes:
    """What the proxy answers until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    token = b64encode(f"{proxy.user}:{secret}".encode()).decode()
    lines = [head, *([f"Proxy-Authorization: Basic {token}"] if secret else []), "", ""]
    writer.write("\r\n".join(lines).encode() + after)
    try:
        return await asyncio.wait_for(reader.read(-1), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def status(said: bytes) -> int:
    return int(said.split(b" ", 2)[1]) if said else 0


def test_nobody_without_a_pass_uses_it() -> None:
    async def work(proxy: EgressProxy, issued: Pass) -> list[int]:
        heads = [f"GET {site.url}/ HTTP/1.1", f"CONNECT {site.address} HTTP/1.1", f"GET http://{KEY_HOST}/ HTTP/1.1"]
        return [
            status(await ask(proxy, head, secret)) for head in heads for secret in ("", "guess", issued.secret + "x")
        ]

    with web({"/": answer(b"x")}) as site:
        assert set(through((site.address,), work)) == {407}
        assert site.connections == 0


def test_a_pass_is_good_for_what_the_guard_permits_while_its_page_is_there() -> None:
    async def work(proxy: EgressProxy, issued: Pass) -> None:
        assert (await ask(proxy, f"GET {site.url}/ HTTP/1.1", issued.secret)).endswith(b"hello")
        assert status(await ask(proxy, f"GET http://{KEY_HOST}/ HTTP/1.1", issued.secret)) == 200
        issued.close()
        assert status(await ask(proxy, f"GET {site.url}/ HTTP/1.1", issued.secret)) == 403
        proxy.revoke(issued)
        assert status(await ask(proxy, f"GET {site.url}/ HTTP/1.1", issued.secret)) == 407

    with web({"/": answer(b"hello")}) as site:
        through((site.address,), work)
        (exchange,) = site.exchanges
    assert "roxy" not in exchange.head
    assert exchange.header("connection") == "close"


def test_a_second_request_on_the_same_connection_is_not_sent_on() -> None:
    async def work(proxy: EgressProxy, issued: Pass) -> bytes:
        second = b"GET http://elsewhere.test/ HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n"
        return await ask(proxy, f"GET {site.url}/ HTTP/1.1\r\nHost: x", issued.secret, second)

    with web({"/": answer(b"hello")}) as site:
        said = through((site.address,), work)
    assert said.count(b"HTTP/1.1") == 1
    assert b"\r\nConnection: close\r\n" in said


@pytest.mark.parametrize("head", ["GET http://{0}/ HTTP/1.1", "CONNECT {0} HTTP/1.1", "GET ws://{0}/ HTTP/1.1"])
def test_no_spelling_of_a_private_address_is_dialled(head: str) -> None:
    hosts = [*SPELLINGS, *(f"[{ip}]" if ":" in ip else ip for ip in NOT_PUBLIC)]

    async def work(proxy: EgressProxy, issued: Pass) -> list[bytes]:
        texts = [head.format(f"{host}:{port}") for host in hosts]
        return await asyncio.gather(*(ask(proxy, text, issued.secret) for text in texts if text.isascii()))

    with canary() as (port, reached):
        said = through(("127.0.0.1:1",), work)
        assert reached() == 0
    assert not any(each.startswith(b"HTTP/1.1 2") for each in said)


@pytest.mark.parametrize("head", ["GET http://rebinding.test:{0}/ HTTP/1.1", "CONNECT rebinding.test:{0} HTTP/1.1"])
def test_a_name_that_changes_between_check_and_use_is_dialled_as_it_was_checked(
    head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is resolved once: the first answer is public (and nobody is there), every later one is the canary's."""
    asked: list[str] = []

    async def resolve(_loop: object, host: str, port: int, **_: Any) -> list[Any]:
        if host != "rebinding.test":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        asked.append(host)
        ip = "192.88.98.1" if len(asked) % 2 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    async def work(proxy: EgressProxy, issued: Pass) -> list[int]:
        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
        return [status(await ask(proxy, head.format(port), issued.secret)) for _ in range(4)]

    with canary() as (port, reached):
        codes = through((), work, EgressLimits(connect_seconds=0.2))
        assert reached() == 0
    assert codes == [502, 403, 502, 403]
    assert len(asked) == 4


@pytest.mark.parametrize("head", ["GET http://{0}/ HTTP/1.1", "CONNECT {0} HTTP/1.1"])
def test_an_endless_answer_ends_at_the_limit_of_its_page(head: str) -> None:
    most = 300_000

    async def work(proxy: EgressProxy, issued: Pass) -> int:
        said = await ask(proxy, head.format(site.address), issued.secret, b"GET / HTTP/1.1\r\n\r\n")
        assert issued.too_much
        assert status(await ask(proxy, f"GET {site.url}/ HTTP/1.1", issued.secret)) in (0, 200)
        return len(said)

    with web({"/": endless}) as site:
        assert 0 < through((site.address,), work, EgressLimits(max_bytes=most)) <= most + 1_000


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://a.test/\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\nHost: a\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
        b"CONNECT [::1 HTTP/1.1\r\n\r\n",
        b"GET " + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_not_answered_with_anything_from_elsewhere(sent: bytes) -> None:
    async def work(proxy: EgressProxy, issued: Pass) -> bytes:
        head, _, rest = sent.partition(b"\r\n")
        return await ask(proxy, head.decode("latin-1"), issued.secret, rest)

    assert not through((), work).startswith(b"HTTP/1.1 2")
