"""What can be asked of the API? One table that the routes, the checks of what is asked, and OpenAPI come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada.dashboard.answers import json_answer, refusal_answer, refusal_of
from levada.dashboard.view import View
from levada.dashboard.wrong_asks import what_is_wrong
from levada.errors import LevadaError, UsageError

__all__ = ["API", "Nothing", "Operation", "query_of", "routes_of"]

API = "/api/v1"
Asked = TypeVar("Asked", bound=msgspec.Struct)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing is asked besides the path."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """`handle(view, asked)` answers; `asked` is read from the query, or from the body where there is one."""

    method: str
    path: str
    summary: str
    handle: Callable[[View, Any], Any]
    answer: Any
    asks: type[msgspec.Struct] = Nothing
    in_body: bool = False
    status: int = 200
    errors: tuple[int, ...] = ()  # besides 400, and 503 where the data folder cannot be read
    slow: bool = False  # not on the loop that serves everybody

    @property
    def is_change(self) -> bool:
        return self.method != "GET"


def routes_of(operations: list[Operation], view: View) -> list[Route]:
    return [
        Route(API + each.path, _endpoint(each, view), methods=[each.method], name=each.summary)
        for each in operations
    ]


def _endpoint(operation: Operation, view: View) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            asked = await _asked(operation, request)
            if operation.slow:
                told = await run_in_threadpool(operation.handle, view, asked)
            else:
                told = operation.handle(view, asked)
        except LevadaError as error:
            return refusal_answer(refusal_of(error))
        return json_answer(request, told, operation.status)

    return endpoint


async def _asked(operation: Operation, request: Request) -> msgspec.Struct:
    if not operation.in_body:
        return query_of(request, operation.asks)
    if "application/json" not in request.headers.get("content-type", ""):
        raise UsageError("send a body of JSON, with 'Content-Type: application/json'")
    return _body_of(await request.body(), operation.asks)


def _body_of(body: bytes, asks: type[Asked]) -> Asked:
    text = _text_of(body)
    try:
        return msgspec.json.decode(text, type=asks)
    except msgspec.MsgspecError as error:
        raise UsageError(what_is_wrong(str(error), _sent(text), asks.__struct_encode_fields__)) from None


def _text_of(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the body is no JSON: it is not UTF-8 (byte {error.start})") from None


def _sent(body: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return msgspec.UNSET


def query_of(request: Request, asks: type[Asked]) -> Asked:
    """What the query asks for; `UsageError` says what is wrong with it."""
    sent = _single(request)
    try:
        return msgspec.convert(sent, asks, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(what_is_wrong(str(error), sent, asks.__struct_encode_fields__)) from None


def _single(request: Request) -> dict[str, str]:
    asked: dict[str, str] = {}
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name in asked:
            raise UsageError(f"'{name[:50]}' is given twice")
        asked[name] = value
    return asked
