"""What every request passes first: access, size, browser headers, patience.

uvicorn ends connections that are idle between two requests. One that never asks, or sends half a head, would stay
for ever, and a thousand of these keep everybody else out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from levada.accounts.records import NOBODY, Principal, Right
from levada.core.errors import LevadaError
from levada.serve.access import LOGIN_PATH, Access, AccessRefusal, Decision
from levada.serve.login import Login
from levada.serve.responses import refusal_answer

log = logging.getLogger(__name__)
MOST_BODY = 1 << 20
CUT = "levada.cut"  # in the scope of a request whose body was not read to its end: why
ASKER = "levada.asker"  # in the scope of every request: who sends it
OBJECT = "levada.object"  # in the scope of one that was understood: what it is about, for the audit log
_BODY_SECONDS = 15.0  # for a whole body, however many pieces it comes in
_LOGIN_SECONDS = 5.0  # for the form of those who are not known yet
_LOGIN_BODY = 8 << 10
_LOGINS_AT_ONCE = 100
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_TOO_MANY_LOGINS = AccessRefusal(503, "busy", "too many logins are being sent: try again", retry_after=5)
_TRIALS = ("/page/try", "/rules/try")  # change nothing, and may be asked for each letter that is typed
_RECORDED_BY_THEMSELVES = ("/login", "/logout", "/api/v1/users", "/api/v1/keys")
_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers": "authorization, content-type",
    "access-control-max-age": "600",
}
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

    def __init__(self, app: ASGIApp, access: Access, login: Login | None = None) -> None:
        self._app = app
        self._access = access
        self._login = login or Login(access)
        self._logging_in = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = _headers_of(scope)
        client = str(scope["client"][0]) if scope.get("client") else ""
        path = self._access.place_of(scope["path"])[1]
        decision = self._decide(scope, headers, client)
        scope[ASKER] = decision.asker
        guarded = _with_headers(send, self._headers(path, decision))
        if decision.preflight:
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, guarded)
            return
        refused = decision.refused
        if refused is None:
            await self._answer(scope, receive, guarded, path, decision.asker, client)
            return
        is_public = decision.asker.rights == {Right.SEARCH}  # anybody can send such a key, and fill the log
        if decision.asker.rights and refused.status == 403 and not is_public:
            await self._record(scope, path, decision.asker, client, f"refused: {refused.code}")
        wants_page = "text/html" in headers.get("accept", "") and not path.startswith("/api/")
        answer = self._login.page(refused, scope["path"]) if refused.status == 401 and wants_page else None
        await (answer or refusal_answer(refused))(scope, receive, guarded)

    def _decide(self, scope: Scope, headers: Mapping[str, str], client: str) -> Decision:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return Decision(NOBODY, _too_large(MOST_BODY))
        query = scope["query_string"].decode("latin-1")
        return self._access.decide(scope["method"], scope["path"], headers, client, query)

    @staticmethod
    def _headers(path: str, decision: Decision) -> list[tuple[bytes, bytes]]:
        """The headers for browsers; an origin that a key names may read the answer."""
        headers = _PROGRAMS if path.startswith(("/api/", "/embed/")) else _BROWSERS
        if not decision.origin:
            return headers
        allowed = [(b"access-control-allow-origin", decision.origin.encode("latin-1")), (b"vary", b"origin")]
        return [*headers, *allowed, (b"access-control-expose-headers", b"retry-after")]

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, path: str, asker: Principal, client: str
    ) -> None:
        changes_nothing = scope["method"] in ("GET", "HEAD", "OPTIONS") or path.endswith(_TRIALS)
        if path == LOGIN_PATH and not changes_nothing:
            await self._log_in(scope, receive, send)
            return
        if changes_nothing or path.startswith(_RECORDED_BY_THEMSELVES):
            await self._app(scope, _Bounded(receive, scope), send)
            return
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, _Bounded(receive, scope), watched)
        await self._record(scope, path, asker, client, "done" if status < 400 else f"failed: {status}")

    async def _log_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Anybody may send this form: those who send it slowly may not keep everybody else out."""
        if self._logging_in >= _LOGINS_AT_ONCE:
            await refusal_answer(_TOO_MANY_LOGINS)(scope, receive, send)
            return
        self._logging_in += 1
        try:
            await self._app(scope, _Bounded(receive, scope, _LOGIN_BODY, _LOGIN_SECONDS), send)
        finally:
            self._logging_in -= 1

    async def _record(self, scope: Scope, path: str, asker: Principal, client: str, outcome: str) -> None:
        """Write into the audit log. What was done is not undone if the log cannot be written."""
        accounts = self._access.accounts
        if accounts is None or not accounts.exist:
            return
        collection = self._access.place_of(scope["path"])[0] if len(self._access.collections) > 1 else ""
        action = f"{scope['method']} {path.removeprefix('/api/v1')}"[:100]
        about = " ".join(part for part in (collection, scope.get(OBJECT, "")) if part)
        try:
            await asyncio.to_thread(self._access.record, asker, client, action, about, outcome)
        except LevadaError as error:
            log.error("the audit log cannot be written: %s", error)


def _too_large(most: int) -> AccessRefusal:
    return AccessRefusal(413, "too-large", f"a request to this address holds at most {most:,} bytes")


class _Bounded:
    """A body that is too long or too slow ends the request, and the scope then says why."""

    def __init__(self, receive: Receive, scope: Scope, most: int = MOST_BODY, seconds: float = _BODY_SECONDS) -> None:
        self._receive = receive
        self._scope = scope
        self._most = most
        self._seconds = seconds
        self._ends: float | None = None
        self._seen = 0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # waits for the end of the connection: no limit there
        now = asyncio.get_running_loop().time()
        if self._ends is None:
            self._ends = now + self._seconds
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._ends - now))
        except TimeoutError:
            return self._cut(AccessRefusal(408, "too-slow", f"a request has {self._seconds:g} seconds for its body"))
        self._seen += len(message.get("body", b""))
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return self._cut(_too_large(self._most)) if self._seen > self._most else message

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
