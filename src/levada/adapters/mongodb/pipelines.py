"""What does an aggregation ask of its collection?

Only the stages before the first one that makes something else of the documents say which documents are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["PipelineHead", "read_pipeline"]

_PASSES_ON = frozenset({"$match", "$sort", "$geoNear", "$sample", "$hint", "$_internalInhibitOptimization"})
_MOST_STAGES = 1_000  # the server's own limit
_JOINS = {"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll", "$merge": "into", "$out": "coll"}


class PipelineHead(NamedTuple):
    matches: list[dict[str, Any]]
    sort: dict[str, Any]
    limit: int | None
    joined: tuple[str, ...]


def read_pipeline(pipeline: Any) -> PipelineHead:
    stages = [stage for stage in _stages(pipeline) if stage]
    matches: list[dict[str, Any]] = []
    sort: dict[str, Any] = {}
    limit: int | None = None
    for name, value in stages:
        if name == "$match" and isinstance(value, dict):
            matches.append(value)
        elif name == "$geoNear" and isinstance(value, dict) and isinstance(value.get("query"), dict):
            matches.append(value["query"])
        elif name == "$sort" and isinstance(value, dict):
            sort = value
        elif name == "$limit" and isinstance(value, (int, float)):
            limit = int(value)
        if name not in _PASSES_ON:
            break
    return PipelineHead(matches, sort, limit, tuple(dict.fromkeys(_joined(stages))))


def _stages(pipeline: Any) -> Iterator[tuple[str, Any]]:
    for stage in pipeline[:_MOST_STAGES] if isinstance(pipeline, list) else ():
        if isinstance(stage, dict) and stage:
            yield next(iter(stage.items()))


def _joined(stages: list[tuple[str, Any]]) -> Iterator[str]:
    for name, value in stages:
        place = value.get(_JOINS[name]) if name in _JOINS and isinstance(value, dict) else value
        if name in _JOINS and isinstance(place, dict):
            place = place.get("coll")
        if name in _JOINS and isinstance(place, str):
            yield place
