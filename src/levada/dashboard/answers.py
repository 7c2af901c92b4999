"""How does an answer look, and how an error? JSON either way; an error has a code and a sentence."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.dashboard.access import Refusal
from levada.errors import (
    AddressRefused,
    BadQuery,
    LevadaError,
    MissingExtra,
    NotFound,
    Refused,
    StoreError,
    StoreLocked,
    TooMany,
    UsageError,
)

__all__ = [
    "ApiError",
    "ErrorAnswer",
    "error_answer",
    "json_answer",
    "refusal_answer",
    "refusal_of",
    "tagged_answer",
]

_JSON = "application/json"
_STATUS: tuple[tuple[type[LevadaError], int], ...] = (
    (TooMany, 429),
    (NotFound, 404),
    (AddressRefused, 403),
    (Refused, 404),
    (MissingExtra, 501),
    (BadQuery, 400),
    (UsageError, 400),
    (StoreLocked, 409),
    (StoreError, 503),
    (LevadaError, 500),
)
_WORDS = re.compile("(?<!^)(?=[A-Z])")


class ApiError(msgspec.Struct, frozen=True):
    code: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """What every answer but a good one holds."""

    error: ApiError


def json_answer(request: Request, told: Any, status: int = 200) -> Response:
    body = msgspec.json.encode(told)
    if status != 200 or request.method not in ("GET", "HEAD"):
        return Response(body, status, media_type=_JSON)
    return tagged_answer(request, body, _JSON)


def tagged_answer(request: Request, body: bytes, media_type: str) -> Response:
    """With an entity tag, so that whoever has it already is told so in a few bytes."""
    tag = f'"{blake2b(body, digest_size=9).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)


def refusal_of(error: LevadaError) -> Refusal:
    status = next(number for kind, number in _STATUS if isinstance(error, kind))
    return Refusal(status, _WORDS.sub("-", type(error).__name__).lower(), str(error))


def error_answer(status: int, code: str, message: str) -> Response:
    return Response(
        msgspec.json.encode(ErrorAnswer(ApiError(code, message))),
        status,
        headers={"cache-control": "no-store"},
        media_type=_JSON,
    )


def refusal_answer(refusal: Refusal) -> Response:
    answer = error_answer(refusal.status, refusal.code, refusal.message)
    if refusal.status == 401:
        answer.headers["www-authenticate"] = "Bearer"
    if refusal.retry_after:
        answer.headers["retry-after"] = str(refusal.retry_after)
    return answer
