"""What every request passes first: access, size, browser headers, patience.

uvicorn ends connections that are idle between two requests. One that never asks, or sends half a head, would stay
for ever, and a thousand of these keep everybody else out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from levada.serve.access import Access, AccessRefusal, login_page
from levada.serve.responses import refusal_answer

MOST_BODY = 1 << 20
CUT = "levada.cut"  # in the scope of a request whose body was not read to its end: why
_BODY_SECONDS = 15.0
_TOO_LARGE = AccessRefusal(413, "too-large", f"a request holds at most {MOST_BODY:,} bytes")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_BARRED = {"cross-origin-resource-policy": "same-origin", "x-content-type-options": "nosniff"}
_FOR_PROGRAMS = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'", **_BARRED}
_FOR_BROWSERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    **_BARRED,
}
_PROGRAMS, _BROWSERS = (
    [(name.encode(), value.encode()) for name, value in each.items()] for each in (_FOR_PROGRAMS, _FOR_BROWSERS)
)


class Gateway:
    """Pure ASGI: nothing is buffered that the application does not ask for."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = _headers_of(scope)
        refused = self._refusal(scope, headers)
        guarded = _with_headers(send, _PROGRAMS if scope["path"].startswith("/api/") else _BROWSERS)
        if refused is None:
            await self._app(scope, _Bounded(receive, scope), guarded)
            return
        wants_page = "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api/")
        answer = login_page(refused) if refused.status == 401 and wants_page else refusal_answer(refused)
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> AccessRefusal | None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return _TOO_LARGE
        client = scope.get("client")
        return self._access.refusal(scope["method"], scope["path"], headers, str(client[0]) if client else "")


class _Bounded:
    """A body that is too long or too slow ends the request, and the scope then says why."""

    def __init__(self, receive: Receive, scope: Scope) -> None:
        self._receive = receive
        self._scope = scope
        self._seen = 0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # waits for the end of the connection: no limit there
        try:
            message = await asyncio.wait_for(self._receive(), _BODY_SECONDS)
        except TimeoutError:
            return self._cut(AccessRefusal(408, "too-slow", f"a request has {_BODY_SECONDS:g} seconds for its body"))
        self._seen += len(message.get("body", b""))
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return self._cut(_TOO_LARGE) if self._seen > MOST_BODY else message

    def _cut(self, why: AccessRefusal) -> Message:
        self._scope[CUT] = why
        return {"type": "http.disconnect"}


def _headers_of(scope: Scope) -> dict[str, str]:
    """By name in lower case, as servers give them; of several the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _with_headers(send: Send, extras: Sequence[tuple[bytes, bytes]]) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", ())
            there = dict(given)
            message["headers"] = [*given, *(extra for extra in extras if extra[0] not in there)]
        await send(message)

    return guarded


class PatientProtocol(H11Protocol):
    """Closes a connection on which no whole head of a request has come for a while."""

    head_seconds = 15.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._forget_patience()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_patience()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.head_seconds, self.transport.close)

    def _forget_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
