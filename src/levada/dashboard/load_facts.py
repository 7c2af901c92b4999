"""The loads: how far each is, who works on it, and what is published."""

from __future__ import annotations

import msgspec

from levada.assemble.known_loads import KnownLoad, LoadInstance, LoadTasks, PublishedMap
from levada.dashboard.operations import Nothing, Operation
from levada.dashboard.view import View
from levada.telling.duration import iso

__all__ = ["LOADS"]


class PublishedFacts(msgspec.Struct, frozen=True):
    generation: int
    layers: int  # generations that make up the map
    keys: int  # of the newest of them
    at: str


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str  # running, published, cancelled, failed, or unknown
    trouble: str  # "" if there is none
    source: str
    table: str
    target: str
    generation: int | None
    rows: int
    rows_per_second: float
    share: float | None
    seconds_left: float | None
    started_at: str | None
    tasks: LoadTasks
    instances: tuple[LoadInstance, ...]
    published: PublishedFacts | None


class LoadsAnswer(msgspec.Struct, frozen=True):
    loads: list[LoadFacts]
    folders: list[str]  # where loads are looked for


def _loads(view: View, _ask: Nothing) -> LoadsAnswer:
    return LoadsAnswer([_facts(each) for each in view.loads.look()], [str(folder) for folder in view.loads.folders])


def _facts(known: KnownLoad) -> LoadFacts:
    fields = {name: getattr(known, name) for name in LoadFacts.__struct_fields__}
    return LoadFacts(**fields | {"started_at": iso(known.started_at), "published": _published(known.published)})


def _published(known: PublishedMap | None) -> PublishedFacts | None:
    if known is None:
        return None
    return PublishedFacts(known.generation, known.layers, known.keys, str(iso(known.at)))


LOADS = [
    Operation(
        method="GET",
        path="/loads",
        summary="The loads into maps: tasks, instances, and what is published",
        handle=_loads,
        answer=LoadsAnswer,
        slow=True,
    )
]
