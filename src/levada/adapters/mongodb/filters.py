"""Which conditions does a filter of MongoDB make, down to its deepest level?

Source: the query operators of MongoDB's manual. A filter is walked deeper than the server itself accepts; what
lies beyond, or beyond 10,000 conditions, is one condition `other:too-deep` or `other:too-many`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bson.regex import Regex

from levada.adapters.mongodb.values import is_end_of_all, scalar
from levada.sharding.asked import AllOf, AnyOf, Condition, Filter, NoneOf, Scalar

__all__ = ["MOST_CONDITIONS", "MOST_VALUES", "FilterWalk", "field_name"]

MOST_CONDITIONS = 10_000
MOST_VALUES = 2_000  # of one `in`; where there are more, none is kept, as some would tell of all
_DEEPEST = 120
_BRANCHES: dict[str, type[AllOf | AnyOf | NoneOf]] = {"$and": AllOf, "$or": AnyOf, "$nor": NoneOf}
_COMPARED = {"$eq": "eq", "$gt": "low", "$gte": "low", "$lt": "high", "$lte": "high"}
_BESIDE = frozenset({"$options", "$maxDistance", "$minDistance", "$comment"})  # say more of another operator
_PLACE = re.compile(r"\.(?:\d+|\$(?:\[[^\]]*\])?)(?=\.|$)")
_PREFIX = re.compile(r"(?:\^|\\A)((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])+)(.?)", re.DOTALL)


def field_name(name: str) -> str:
    """Without places in arrays: `a.0.b`, `a.$.b` and `a.$[x].b` are `a.b`."""
    return _PLACE.sub("", name)


class FilterWalk:
    """One filter at a time; counts conditions so that a stranger's filter cannot grow without end."""

    def __init__(self) -> None:
        self._left = MOST_CONDITIONS

    def read(self, asked: Any) -> Filter | None:
        if not isinstance(asked, Mapping):
            return None
        self._left = MOST_CONDITIONS
        return _all_of(list(self._document(asked, "", 0)))

    def _document(self, asked: Mapping[str, Any], prefix: str, depth: int) -> Iterator[Filter]:
        """Everything that a document asks for; all of it must hold."""
        if depth > _DEEPEST:
            yield Condition(prefix.rstrip("."), "other:too-deep")
            return
        for name, value in asked.items():
            if self._left <= 0:
                yield Condition(prefix.rstrip("."), "other:too-many")
                return
            self._left -= 1
            if name in _BRANCHES:
                yield from self._branch(name, value, prefix, depth)
            elif name.startswith("$"):
                yield from _special(name, value)
            else:
                yield from self._field(field_name(prefix + name), value, depth)

    def _branch(self, name: str, value: Any, prefix: str, depth: int) -> Iterator[Filter]:
        parts = value if isinstance(value, list) else []
        read = [_all_of(list(self._document(part, prefix, depth + 1))) for part in parts if _is_document(part)]
        if name == "$or" and None in read:
            return  # one of its parts asks for nothing, so all of it does not either
        found = tuple(part for part in read if part is not None)
        if found:
            yield found[0] if len(found) == 1 and name != "$nor" else _BRANCHES[name](found)

    def _field(self, field: str, value: Any, depth: int) -> Iterator[Filter]:
        if isinstance(value, Regex):
            yield _pattern(field, value.pattern, value.flags)
        elif _is_document(value) and next(iter(value), "").startswith("$") and "$ref" not in value:
            yield from self._operators(field, value, depth)
        else:
            yield Condition(field, "eq", (scalar(value),))

    def _operators(self, field: str, asked: Mapping[str, Any], depth: int) -> Iterator[Filter]:
        if depth > _DEEPEST:
            yield Condition(field, "other:too-deep")
            return
        yield from _range(field, asked)
        for name, value in asked.items():
            self._left -= 1
            if name == "$not":
                inside = tuple(self._field(field, value, depth + 1))
                yield from (NoneOf(inside),) if inside else ()
            elif name == "$elemMatch" and _is_document(value):
                yield from self._element(field, value, depth)
            elif name == "$all" and isinstance(value, list):
                for each in value[:MOST_VALUES]:
                    yield from self._field(field, each, depth + 1)
            elif name not in _BESIDE and _COMPARED.get(name, "eq") == "eq":
                yield _condition(field, name, value, asked)

    def _element(self, field: str, asked: Mapping[str, Any], depth: int) -> Iterator[Filter]:
        first = next(iter(asked), "")
        if first.startswith("$") and first not in _BRANCHES:
            yield from self._operators(field, asked, depth + 1)
        else:
            yield from self._document(asked, f"{field}.", depth + 1)


def _all_of(found: list[Filter]) -> Filter | None:
    if len(found) > 1:
        return AllOf(tuple(found))
    return found[0] if found else None


def _is_document(value: Any) -> bool:
    return isinstance(value, Mapping)


def _condition(field: str, name: str, value: Any, asked: Mapping[str, Any]) -> Condition:
    """What one operator asks of a field."""
    if name == "$eq":
        return Condition(field, "eq", (scalar(value),))
    if name in ("$in", "$nin") and isinstance(value, list):
        return _one_of(field, name, value)
    if name == "$exists":
        return Condition(field, "exists", (bool(value),))
    if name == "$regex":
        pattern, flags = (value.pattern, value.flags) if isinstance(value, Regex) else (value, 0)
        return _pattern(field, pattern, flags or asked.get("$options"))
    plain = isinstance(value, (dict, list))
    return Condition(field, f"other:{name[1:]}", () if plain else (scalar(value),))


def _one_of(field: str, name: str, value: list[Any]) -> Condition:
    plain = name == "$in" and not any(isinstance(each, Regex) for each in value)
    operator = "in" if plain else f"other:{name[1:]}"
    kept = value if len(value) <= MOST_VALUES else ()
    return Condition(field, operator, tuple(scalar(each) for each in kept), len(value))


def _range(field: str, asked: Mapping[str, Any]) -> Iterator[Condition]:
    """`$gt` and `$lt` of one field are one range."""
    ends: dict[str, Scalar] = {}
    for name, value in asked.items():
        end = _COMPARED.get(name)
        if end in ("low", "high"):
            ends[end] = None if is_end_of_all(value) else scalar(value)
    if ends:
        yield Condition(field, "range", (ends.get("low"), ends.get("high")))


def _pattern(field: str, pattern: Any, flags: Any) -> Condition:
    """A pattern that begins with plain text is a range of the index; all others are not."""
    plain = not flags and isinstance(pattern, str) and _PREFIX.match(pattern)
    if not plain:
        return Condition(field, "regex")
    text = plain[1]
    if plain[2] in tuple("?*{"):  # the last character may be missing
        text = re.sub(r"(?:\\)?.\Z", "", text, flags=re.DOTALL)
    if "|" in str(pattern) or not text:
        return Condition(field, "regex")
    return Condition(field, "prefix", (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL),))


def _special(name: str, value: Any) -> Iterator[Filter]:
    """Operators that name no field."""
    if name == "$text":
        yield Condition("", "text")
    elif name == "$expr":
        from levada.adapters.mongodb.expressions import expression

        yield from expression(value, 0)
    elif name != "$comment":
        yield Condition("", f"other:{name[1:]}")
