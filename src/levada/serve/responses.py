"""Responses and errors of the API: JSON, with a code and a sentence.

msgspec says it for programmers, always in the same few forms; each has a sentence here. A form that is not known
is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.core.errors import (
    AddressRefused,
    BadQuery,
    LevadaError,
    MissingExtra,
    NotFound,
    NotTold,
    Refused,
    StoreError,
    StoreLocked,
    TooMany,
    UsageError,
)
from levada.serve.access import AccessRefusal

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
    (NotTold, 502),
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


def tagged_answer(request: Request, body: bytes, media_type: str, cached: str = "private, no-cache") -> Response:
    """An answer with an entity tag, so that a client that has it already gets a few bytes."""
    tag = f'"{blake2b(body, digest_size=9).hexdigest()}"'
    headers = {"etag": tag, "cache-control": cached}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)


def refusal_of(error: LevadaError) -> AccessRefusal:
    status = next(number for kind, number in _STATUS if isinstance(error, kind))
    return AccessRefusal(status, _WORDS.sub("-", type(error).__name__).lower(), str(error))


def error_answer(status: int, code: str, message: str) -> Response:
    return Response(
        msgspec.json.encode(ErrorAnswer(ApiError(code, message))),
        status,
        headers={"cache-control": "no-store"},
        media_type=_JSON,
    )


def refusal_answer(refusal: AccessRefusal) -> Response:
    answer = error_answer(refusal.status, refusal.code, refusal.message)
    if refusal.status == 401:
        answer.headers["www-authenticate"] = "Bearer"
    if refusal.retry_after:
        answer.headers["retry-after"] = str(refusal.retry_after)
    return answer


_LONGEST = 300
_SHOWN = 60  # characters of a wrong value
_PLACE = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")
_INSIDE = re.compile(r"\.?([^.\[]+)|\[(\d+)\]")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def what_is_wrong(error: str, asked: Any, known: Sequence[str]) -> str:
    """`error` is what msgspec says of `asked`, as it was sent (`UNSET` if that cannot be told).

    `known` are the names that could have been given.
    """
    found = _PLACE.search(error)
    place = found["place"] if found else ""
    bare = error[: found.start()] if found else error
    for form, sentence in _FORMS.items():
        if match := re.fullmatch(form, bare, re.DOTALL):
            return sentence(match, place, _value_at(asked, place), known)[:_LONGEST]
    return f"{place}: {bare}"[:_LONGEST] if place else bare[:_LONGEST]


def _kind(match: re.Match[str], place: str, value: Any, _known: Sequence[str]) -> str:
    kinds = " or ".join(_KINDS.get(each, each) for each in match["kinds"].split(" | "))
    got = "" if value is msgspec.UNSET else f", not {_shown(value)}"
    return f"{place or 'the body'} must be {kinds}{got}"


def _bound(match: re.Match[str], place: str, value: Any, _known: Sequence[str]) -> str:
    bound = "at least" if match["sign"] == ">=" else "at most"
    return f"{place} must be {bound} {match['number'].removesuffix('.0')}, not {_shown(value).strip(chr(39))}"


def _length(match: re.Match[str], place: str, value: Any, _known: Sequence[str]) -> str:
    number, things = match["number"], "characters" if match["kind"] == "str" else "entries"
    if (match["sign"], number) == (">=", "1"):
        return f"{place} must not be empty"
    bound = "at least" if match["sign"] == ">=" else "at most"
    has = f", not {len(value)}" if isinstance(value, (str, list)) else ""
    return f"{place} must have {bound} {number} {things}{has}"


def _unknown(match: re.Match[str], _place: str, _value: Any, known: Sequence[str]) -> str:
    name = match["name"][:_SHOWN]
    if not known:
        return f"'{name}' is not known here: nothing is asked besides the path"
    if near := get_close_matches(name, known, n=1):
        return f"'{name}' is not known here; did you mean '{near[0]}'?"
    return f"'{name}' is not known here: there is {', '.join(known)}"


_FORMS: dict[str, Callable[[re.Match[str], str, Any, Sequence[str]], str]] = {
    r"Expected `(?P<kinds>[^`]+)`, got `[^`]+`": _kind,
    r"Expected `[^`]+` (?P<sign>>=|<=) (?P<number>\S+)": _bound,
    r"Expected `(?P<kind>[^`]+)` of length (?P<sign>>=|<=) (?P<number>\d+)": _length,
    r"Object contains unknown field `(?P<name>.*)`": _unknown,
    r"Object missing required field `(?P<name>[^`]+)`": lambda match, *_: f"{match['name']} is missing",
    r"Invalid enum value .*": lambda _match, place, value, _known: f"{place} cannot be {_shown(value)}",
    r"JSON is malformed: (?P<why>.*)": lambda match, *_: f"the body is no JSON: {match['why']}",
    r"Input data was truncated": lambda *_: "the body is no JSON: it is empty, or ends too early",
}


def _value_at(asked: Any, place: str) -> Any:
    """What was sent there; `asked` itself where the place leads nowhere."""
    value = asked
    for name, number in _INSIDE.findall(place):
        try:
            value = value[name] if isinstance(value, Mapping) else value[int(number)]
        except (KeyError, IndexError, TypeError, ValueError):
            return asked
    return value


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value[:_SHOWN]}'"
    return msgspec.json.encode(value).decode()[:_SHOWN]
