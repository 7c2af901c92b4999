"""Table of API operations, from which routes, checks and OpenAPI are made."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from levada import __version__
from levada.accounts.accounts import KEY_MARK
from levada.accounts.records import LOCAL
from levada.core.errors import LevadaError, UsageError
from levada.serve.access import ASKED_BY, ASKED_FROM, KEY_FIELD
from levada.serve.gateway import ASKER, OBJECT
from levada.serve.responses import ErrorAnswer, json_answer, refusal_answer, refusal_of, what_is_wrong
from levada.serve.view import View

API = "/api/v1"
ASKED_AT: ContextVar[str] = ContextVar("asked_at", default="")
"""The address at which the present request reached the server: where its sender can open the dashboard."""

Asked = TypeVar("Asked", bound=msgspec.Struct)
Told = TypeVar("Told", bound=msgspec.Struct)
Handler = TypeVar("Handler", bound=Callable[..., Any])


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing is asked besides the path."""


def facts_of(kind: type[Told], record: object, **given: Any) -> Told:
    """An answer with what is given, and the other fields as the record has them."""
    return kind(**{name: getattr(record, name) for name in kind.__struct_fields__ if name not in given}, **given)


class Operation(msgspec.Struct, frozen=True):
    """`handle(view, asked)` answers; `asked` is read from the query, or from the body where there is one."""

    method: str
    path: str
    summary: str
    handle: Callable[[View, Any], Any]
    asks: type[msgspec.Struct]
    answer: Any
    status: int = 200
    errors: tuple[int, ...] = ()  # besides 400, and 503 where the data folder cannot be read
    quick: bool = False  # answered on the loop that serves everybody
    is_named: bool = True  # whether the audit log says of what was asked

    @property
    def in_body(self) -> bool:
        return self.method in ("POST", "PUT") and self.asks is not Nothing


class Operations(list[Operation]):
    """The operations of one subject, in the order of their handlers."""

    def add(
        self,
        method: str,
        path: str,
        summary: str,
        *,
        status: int = 200,
        errors: tuple[int, ...] = (),
        quick: bool = False,
        is_named: bool = True,
    ) -> Callable[[Handler], Handler]:
        """Adds the handler below: its annotations tell what is asked, and what it answers."""

        def added(handle: Handler) -> Handler:
            _, asks, answer = get_type_hints(handle, include_extras=True).values()
            self.append(Operation(method, path, summary, handle, asks, answer, status, errors, quick, is_named))
            return handle

        return added


def routes_of(operations: list[Operation], view: View) -> list[Route]:
    return [
        Route(API + each.path, _endpoint(each, view), methods=[each.method], name=each.summary) for each in operations
    ]


def _endpoint(operation: Operation, view: View) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        ASKED_AT.set(str(request.base_url))
        ASKED_BY.set(request.scope.get(ASKER, LOCAL))
        ASKED_FROM.set(request.client.host if request.client else "")
        try:
            asked = await _parameters(operation, request)
            request.scope[OBJECT] = _object_of(asked) if operation.is_named else ""
            if operation.quick and not view.is_on_servers():
                told = operation.handle(view, asked)
            else:
                told = await run_in_threadpool(operation.handle, view, asked)
        except LevadaError as error:
            return refusal_answer(refusal_of(error))
        return json_answer(request, told, operation.status)

    return endpoint


_OBJECTS = ("name", "url", "urls", "site", "id", "part", "per_hour", "role")
_SHOWN_OBJECTS = 3


def _object_of(asked: msgspec.Struct) -> str:
    """What the audit log names of what is asked: fields that hold no secret, addresses without their query."""
    told = []
    for name in _OBJECTS:
        value = getattr(asked, name, None)
        values = value if isinstance(value, list | tuple) else [value]
        shown = [_plain(str(each)) for each in values if each not in (None, "")]
        more = f" and {len(shown) - _SHOWN_OBJECTS} more" if len(shown) > _SHOWN_OBJECTS else ""
        told += [", ".join(shown[:_SHOWN_OBJECTS]) + more] if shown else []
    return " ".join(told)


def _plain(value: str) -> str:
    """An address without what may be a secret in it; anything else as it is."""
    if "://" not in value:
        return value
    scheme, _, rest = value.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"


async def _parameters(operation: Operation, request: Request) -> msgspec.Struct:
    if not operation.in_body:
        return query_of(request, operation.asks)
    if "application/json" not in request.headers.get("content-type", ""):
        raise UsageError("send a body of JSON, with 'Content-Type: application/json'")
    return _body_of(await request.body(), operation.asks)


def _body_of(body: bytes, asks: type[Asked]) -> Asked:
    try:
        text = body.decode()
        return msgspec.json.decode(text, type=asks)
    except UnicodeDecodeError as error:
        raise UsageError(f"the body is no JSON: it is not UTF-8 (byte {error.start})") from None
    except msgspec.MsgspecError as error:
        raise UsageError(what_is_wrong(str(error), _sent(text), asks.__struct_encode_fields__)) from None


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
        if name == KEY_FIELD and value.startswith(KEY_MARK):
            continue  # the gateway has read it
        if name in asked:
            raise UsageError(f"'{name[:50]}' is given twice")
        asked[name] = value
    return asked


_REF = "#/components/schemas/{name}"
_ALWAYS = (400, 401, 403, 413, 429, 503)
_WORDS = {
    304: "As the one that you have (If-None-Match)",
    400: "What was asked is not understood; the sentence says where",
    401: "A token is needed",
    403: "Not allowed with this token, from this page, or under this host name",
    404: "There is no such thing",
    409: "Not now: another process works on it",
    413: "The body is too large",
    429: "Too much at once: try again later",
    501: "It needs a package that is not installed on the server",
    502: "The target of a notification did not take the message; the sentence has its words",
    503: "The data folder cannot be read or written just now",
}


def document(operations: list[Operation], others: dict[str, Any] | None = None) -> dict[str, Any]:
    """`others` are the paths that do not answer in JSON, written out."""
    types = [type_ for each in operations for type_ in (each.asks, each.answer)]
    schemas, components = msgspec.json.schema_components([*types, ErrorAnswer], ref_template=_REF)
    for component in components.values():
        if "description" in component:  # without its example, which is for Python
            component["description"] = component["description"].partition(">>>")[0].rstrip()
    asked, told, error = schemas[0:-1:2], schemas[1:-1:2], schemas[-1]
    paths: dict[str, Any] = {}
    for each, ask, tell in zip(operations, asked, told, strict=True):
        fields = components.get(ask.get("$ref", "").rpartition("/")[2], ask)
        paths.setdefault(API + each.path, {})[each.method.lower()] = _operation(each, fields, ask, tell, error)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Levada",
            "version": __version__,
            "description": "Pages kept fresh and searchable within a budget. Errors have a code and a sentence.",
        },
        "paths": paths | (others or {}),
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(each: Operation, fields: dict[str, Any], ask: Any, tell: Any, error: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": each.summary,
        "operationId": each.method.lower() + each.path.replace("/", "_"),
        "responses": {
            str(each.status): {"description": "Done", "content": {"application/json": {"schema": tell}}},
            **({"304": {"description": _WORDS[304]}} if each.method == "GET" else {}),
            **{
                str(status): {"description": _WORDS[status], "content": {"application/json": {"schema": error}}}
                for status in sorted({*_ALWAYS, *each.errors})
            },
        },
    }
    if each.in_body:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": ask}}}
    elif fields.get("properties"):
        told["parameters"] = [_parameter(name, schema, fields) for name, schema in fields["properties"].items()]
    return told


def _parameter(name: str, schema: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    words = schema.get("description", "")
    return {
        "name": name,
        "in": "query",
        "required": name in fields.get("required", ()),
        "schema": _without_null(schema),
        **({"description": words} if words else {}),
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out is not `null` when it is there."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else schema
