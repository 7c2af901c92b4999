"""What does one comparison of SQL ask of a field?"""

from __future__ import annotations

import re
from typing import Any

from levada.adapters.postgres_queries.values import Known, Parameters, list_of, number_or_text, value_of
from levada.sharding.asked import Condition

__all__ = ["compared", "contained", "like"]

_MOST_VALUES = 2_000
_LOW, _HIGH = (">", ">="), ("<", "<=")
_NAMES = {"<>": "ne", "!=": "ne", "@@": "text"}
_PATTERN = re.compile(r"((?:[^%_\\]|\\.)*)(.*)", re.DOTALL)
_ARRAY_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', re.DOTALL)


def compared(field: str, name: str, value: Known | None, swapped: bool) -> Condition:
    """`field OPERATOR value`, or the other way round."""
    if name == "=":
        return Condition(field, "eq", () if value is None else (value.value,))
    if name in _LOW or name in _HIGH:
        if value is None:
            return Condition(field, "range")
        is_low = (name in _LOW) != swapped
        return Condition(field, "range", (value.value, None) if is_low else (None, value.value))
    if name == "@@":
        return Condition(field, "text")
    if name in ("~", "~*"):
        return Condition(field, "regex")
    kept = () if value is None or name not in _NAMES else (value.value,)
    return Condition(field, f"other:{_NAMES.get(name, name)}", kept)


def contained(field: str, name: str, members: Any, parameters: Parameters) -> Condition:
    """IN (...), = ANY (...), and what is not in there."""
    listed = list(members) if isinstance(members, tuple) else list_of(members, parameters)
    if name != "=":
        return Condition(field, "other:nin" if name == "<>" else f"other:any {name}")
    if isinstance(listed, Known):
        return _of_array_text(field, listed)
    if listed is None:
        return Condition(field, "in")
    values = [value_of(member, parameters) for member in listed[:_MOST_VALUES]]
    known = tuple(value.value for value in values if value is not None)
    return Condition(field, "in", known if len(known) == len(listed) else (), len(listed))


def _of_array_text(field: str, text: Known) -> Condition:
    """An array as a parameter is written: {1,2,"three, or four"}."""
    if not isinstance(text.value, str) or not text.value.startswith("{"):
        return Condition(field, "in")
    found = [
        re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted or not plain else number_or_text(plain)
        for quoted, plain in _ARRAY_TEXT.findall(text.value)
    ]
    return Condition(field, "in", tuple(found) if len(found) <= _MOST_VALUES else (), len(found))


def like(field: str, name: str, pattern: Known | None) -> Condition:
    """A pattern that begins with plain text asks for that beginning."""
    if name != "~~":
        return Condition(field, "other:notlike")
    if pattern is None or not isinstance(pattern.value, str):
        return Condition(field, "regex")
    found = _PATTERN.match(pattern.value)
    beginning, rest = (found[1], found[2]) if found else ("", "%")
    text = re.sub(r"\\(.)", r"\1", beginning, flags=re.DOTALL)
    if not rest:
        return Condition(field, "eq", (text,))
    return Condition(field, "prefix", (text,)) if text else Condition(field, "regex")
