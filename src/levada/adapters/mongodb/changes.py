"""Which fields does an update change?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from levada.adapters.mongodb.filters import field_name

__all__ = ["EVERYTHING", "changed_fields"]

EVERYTHING = "*"
_MOST = 1_000
_ADDS = ("$set", "$addFields")
_REPLACES = ("$replaceWith", "$replaceRoot", "$project")


def changed_fields(update: Any) -> tuple[str, ...]:
    """Of operators, of a pipeline, or of a whole document (`*`: what it does not name is gone)."""
    if isinstance(update, list):
        found = [name for stage in update[:_MOST] for name in _of_stage(stage)]
    elif isinstance(update, dict):
        found = list(_of_document(update))
    else:
        found = []
    return tuple(dict.fromkeys(found[:_MOST]))


def _of_document(update: dict[str, Any]) -> Iterator[str]:
    if not next(iter(update), "$").startswith("$"):
        yield from (name for name in update if name != "_id")
        yield EVERYTHING
        return
    for operator, fields in update.items():
        if operator == "$setOnInsert" or not isinstance(fields, dict):
            continue  # a document that is there already is not changed by it
        yield from map(field_name, fields)
        if operator == "$rename":
            yield from (field_name(name) for name in fields.values() if isinstance(name, str))


def _of_stage(stage: Any) -> Iterator[str]:
    operator, fields = next(iter(stage.items()), ("", None)) if isinstance(stage, dict) else ("", None)
    if operator in _ADDS and isinstance(fields, dict):
        yield from map(field_name, fields)
    elif operator == "$unset":
        names = [fields] if isinstance(fields, str) else fields
        yield from (field_name(name) for name in names or () if isinstance(name, str))
    elif operator in _REPLACES:
        yield EVERYTHING
