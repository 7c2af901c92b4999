"""What those who are not known may send: no slow forms, and no headers of a proxy that is not there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from starlette.types import Message, Receive, Scope, Send

from levada.core.errors import UsageError
from levada.serve.access import Access, Tokens
from levada.serve.gateway import CUT, Gateway, _Bounded
from tests.serve.conftest import Open
from tests.serve.served import served

TOKEN = "a-token-of-sixteen-letters"
LOGIN = {
    "type": "http",
    "method": "POST",
    "path": "/login",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1")],
    "client": ("192.0.2.9", 1),
}


def test_a_body_in_many_pieces_has_one_deadline() -> None:
    async def trickle() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read() -> Scope:
        scope: Scope = {}
        bounded = _Bounded(trickle, scope, most=1_000_000, seconds=0.1)
        while (await bounded())["type"] == "http.request":
            pass
        return scope

    assert asyncio.run(read())[CUT].status == 408


def test_a_login_form_is_short() -> None:
    read: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] == "http.request":
            pass
        read.append(scope)

    async def endless() -> Message:
        return {"type": "http.request", "body": b"x" * 1_000, "more_body": True}

    asyncio.run(Gateway(app, _access())(dict(LOGIN), endless, _unheard))
    assert read[0][CUT].status == 413


def test_slow_logins_keep_out_other_logins_and_nobody_else() -> None:
    answered: list[int] = []

    async def run() -> None:
        never = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/login":
                await never.wait()
            answered.append(200)

        async def heard(message: Message) -> None:
            answered.append(message.get("status", 0))

        gateway = Gateway(app, _access())
        slow = [asyncio.ensure_future(gateway(dict(LOGIN), never.wait, _unheard)) for _ in range(100)]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await gateway(dict(LOGIN), never.wait, heard)  # type: ignore[arg-type]
        assert answered[0] == 503
        answered.clear()
        health = {**LOGIN, "method": "GET", "path": "/api/v1/health"}
        await gateway(health, never.wait, _unheard)  # type: ignore[arg-type]
        assert answered == [200]
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    asyncio.run(run())


async def _unheard(message: Message) -> None:
    """Nobody reads the answer."""


def _access() -> Access:
    return Access(Tokens(TOKEN), frozenset(), lambda: 0.0)


def guesses(url: str) -> list[int]:
    """The statuses of wrong tokens, each said to come from another client."""
    found = []
    for number in range(8):
        headers = {"Authorization": f"Bearer wrong-{number}", "X-Forwarded-For": f"198.51.100.{number}"}
        try:
            urlopen(Request(f"{url}/api/v1/sites", headers=headers), timeout=30)
        except HTTPError as refused:
            found.append(refused.code)
    return found


def test_guesses_are_slowed_down_whatever_their_headers_say(data: Path) -> None:
    with served(data, environment={"LEVADA_TOKEN": TOKEN}) as url:
        assert guesses(url) == [401] * 5 + [429] * 3


def test_a_proxy_that_was_named_is_trusted(data: Path) -> None:
    with served(data, "--proxy", "127.0.0.1", environment={"LEVADA_TOKEN": TOKEN}) as url:
        assert guesses(url) == [401] * 8


def test_the_cookie_is_for_tls_where_the_browser_speaks_it(open_server: Open, data: Path) -> None:
    server = open_server(data, Tokens(TOKEN), "192.0.2.7")
    host = str(server.base_url).partition("://")[2]
    for scheme in ("http", "https"):
        headers = {"origin": f"{scheme}://{host}"}
        answer = server.post("/login", data={"token": TOKEN}, headers=headers, follow_redirects=False)
        assert answer.status_code == 303
        assert ("; secure" in answer.headers["set-cookie"].lower()) is (scheme == "https")


@pytest.mark.parametrize("typed", ["nowhere", "1.2.3", "10.0.0.0/99", ""])
def test_a_proxy_must_be_an_address(typed: str) -> None:
    from levada.cli.run.serve import proxy_address

    with pytest.raises(UsageError, match="--proxy must be an address"):
        proxy_address(typed)
