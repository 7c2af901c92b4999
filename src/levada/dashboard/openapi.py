"""What does the API offer, in the words that programs read? OpenAPI 3.1, from the table of operations."""

from __future__ import annotations

from typing import Any

import msgspec

from levada import __version__
from levada.dashboard.answers import ErrorAnswer
from levada.dashboard.operations import API, Operation

__all__ = ["document"]

_REF = "#/components/schemas/{name}"
_ALWAYS = (400, 401, 403, 413, 429, 503)
_WORDS = {
    304: "As the one that you have (If-None-Match)",
    400: "What was asked is not understood; the sentence says where",
    401: "A token is needed",
    403: "Not allowed with this token, from this page, or under this host name",
    404: "There is no such thing",
    405: "This path does not know that method",
    409: "Not now: somebody else is at it",
    413: "The body is too large",
    429: "Too much at once: try again later",
    501: "A package that this needs is not installed",
    503: "The data folder cannot be read or written just now",
}


def document(operations: list[Operation], others: dict[str, Any] | None = None) -> dict[str, Any]:
    """`others` are the paths that do not answer in JSON, written out."""
    types = [type_ for each in operations for type_ in (each.asks, each.answer)]
    schemas, components = msgspec.json.schema_components([*types, ErrorAnswer], ref_template=_REF)
    asked, told, error = schemas[0:-1:2], schemas[1:-1:2], schemas[-1]
    paths: dict[str, Any] = {}
    for each, ask, tell in zip(operations, asked, told, strict=True):
        paths.setdefault(API + each.path, {})[each.method.lower()] = _operation(
            each, _resolved(ask, components), ask, tell, error
        )
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
        "operationId": _name(each),
        "responses": {
            str(each.status): {"description": "Done", "content": {"application/json": {"schema": tell}}},
            **({"304": {"description": _WORDS[304]}} if not each.is_change else {}),
            **{str(status): _failure(status, error) for status in sorted({*_ALWAYS, *each.errors})},
        },
    }
    if each.in_body:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": ask}}}
    elif fields.get("properties"):
        told["parameters"] = [_parameter(name, schema, fields) for name, schema in fields["properties"].items()]
    return told


def _name(each: Operation) -> str:
    return "_".join([each.method.lower(), *each.path.strip("/").replace(".", "/").split("/")])


def _failure(status: int, error: Any) -> dict[str, Any]:
    return {"description": _WORDS[status], "content": {"application/json": {"schema": error}}}


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


def _resolved(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = components.get(name, schema)
    return found
