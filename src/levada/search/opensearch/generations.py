"""The indexes of one collection in OpenSearch, by their names and aliases.

`PREFIX-NAME` is an alias for the index that is searched. `PREFIX-NAME-next` is there while another is built to take
its place: then everybody writes to that one, and searches go on in the first. As soon as the new one has come as far
as the old, both aliases are changed in one step, and the old index goes.

Each index is written to by an alias of its own, `INDEX-write`. A request that comes too late, to an index that is gone,
is refused: without that, the server would make an index of its name.

A position is a document of its index, written after what it stands for. Versions never go back, so two processes may
follow the same change log at the same time: each writes what the other would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from levada.core.errors import IndexOutdated, StoreDamaged
from levada.search.opensearch.connection import Connection, too_new
from levada.search.opensearch.mapping import body_of_index, position_id

FORMAT = 1  # raise it with every change of fields or folding: an older index is rebuilt
_MOST_LOGS = 10_000
_GONE = 404


class Generation(msgspec.Struct, frozen=True):
    """One index of the collection."""

    name: str
    format: int
    major: int  # version of the server that made it
    to_rebuild: bool

    @property
    def write(self) -> str:
        """The alias by which it is written to."""
        return f"{self.name}-write"


class Generations:
    """Which index of a collection is searched, and which is written to."""

    def __init__(self, connection: Connection, collection: str) -> None:
        self._connection = connection
        self.base = f"{connection.options.prefix}-{collection}"
        self._next = f"{self.base}-next"

    def current(self) -> tuple[Generation | None, Generation | None]:
        """The index that is searched, and the one that is built to take its place."""
        with self._connection.translated():
            found: Mapping[str, Any] = self._connection.client().indices.get(
                index=f"{self.base}-0*", params={"filter_path": "*.aliases,*.mappings._meta,*.settings.index.uuid"}
            )
        searched = following = None
        for name, facts in found.items():
            meta = facts.get("mappings", {}).get("_meta", {})
            made = Generation(name, meta.get("format", 0), meta.get("major", 0), bool(meta.get("to_rebuild")))
            aliases = facts.get("aliases", {})
            if self._next in aliases:
                following = made
            elif self.base in aliases:
                searched = made
        return searched, following

    def written(self) -> Generation | None:
        """The index to write to; None if there is none yet."""
        searched, following = self.current()
        return following or searched

    def begin(self) -> Generation:
        """An index to write to, made if there is none."""
        return self.written() or self._made(self.base)

    def check(self, made: Generation, *, writing: bool) -> None:
        """Raise an error unless this version of Levada may use the index."""
        where = f"the index {made.name} in OpenSearch at {self._connection.place}"
        if made.format > FORMAT:
            raise too_new(self._connection.place)
        if writing and made.format < FORMAT:
            raise IndexOutdated(f"{where} was written by an older Levada; it can be rebuilt from the documents")
        if writing and made.to_rebuild:
            raise StoreDamaged(f"{where} still holds what was forgotten; it can be rebuilt from the documents")

    def renew(self) -> None:
        """Begin anew. An index that is only outdated is searched until the new one has come as far."""
        searched, following = self.current()
        if searched is not None and (searched.format < FORMAT or searched.to_rebuild):
            if following is not None:
                self._delete(following)
            if searched.to_rebuild:  # then no name may stay either
                with self._connection.translated():
                    self._connection.client().indices.delete(index=f"{self.base}-sites", ignore=_GONE)
            self._made(self._next)
            return
        new = self._made(self.base, instead_of=searched)
        for old in (searched, following):
            if old is not None and old.name != new.name:
                self._delete(old)

    def ask_for_rebuild(self) -> None:
        """Have the next writer build the index anew: words of deleted pages may stay in its files until then."""
        searched, following = self.current()
        client = self._connection.client()
        with self._connection.translated():
            for made in (searched, following):
                if made is not None:
                    meta = {"format": made.format, "major": made.major, "to_rebuild": True}
                    client.indices.put_mapping(index=made.name, body={"_meta": meta})

    def swap_if_even(self, ended: int | None = None) -> None:
        """Let the new index take the place of the old one, if it has come as far in every change log.

        `ended` is a log that has no more changes; it may have lost some since the old index followed it.
        """
        searched, following = self.current()
        if following is None or following.to_rebuild:
            return
        if searched is not None:
            before, now = self._positions(searched), self._positions(following)
            if ended is not None and now.get(ended, 0) < before.get(ended, 0):
                self.put_position(following, ended, before[ended])
                now[ended] = before[ended]
            if any(now.get(log, 0) < position for log, position in before.items()):
                return
        self._point(self.base, following, searched)
        if searched is not None:
            self._delete(searched)

    def position(self, made: Generation, log: int) -> int:
        with self._connection.translated():
            found = self._connection.client().get(
                index=made.name, id=position_id(log), params={"realtime": "true"}, ignore=_GONE
            )
        return int(found["_source"]["position"]) if found.get("found") else 0

    def put_position(self, made: Generation, log: int, position: int) -> None:
        with self._connection.translated():
            self._connection.client().index(
                index=made.write,
                id=position_id(log),
                body={"log": log, "position": position},
                params={"version": str(position), "version_type": "external_gte", "require_alias": "true"},
                ignore=409,
            )

    def delete_all(self) -> None:
        """Remove every index of the collection."""
        with self._connection.translated():
            self._connection.client().indices.delete(index=f"{self.base}-*", params={"ignore_unavailable": "true"})

    def _positions(self, made: Generation) -> dict[int, int]:
        client = self._connection.client()
        body = {"size": _MOST_LOGS, "query": {"exists": {"field": "log"}}, "docvalue_fields": ["log", "position"]}
        with self._connection.translated():
            client.indices.refresh(index=made.name)
            found = client.search(index=made.name, body=body, params={"_source": "false"})["hits"]["hits"]
        return {hit["fields"]["log"][0]: hit["fields"]["position"][0] for hit in found}

    def _made(self, alias: str, instead_of: Generation | None = None) -> Generation:
        """A new, empty index, known by an alias from its first moment."""
        client = self._connection.client()
        with self._connection.translated():
            taken: Mapping[str, Any] = client.indices.get_alias(index=f"{self.base}-0*")
            last = max((int(name.rpartition("-")[2]) for name in taken), default=0)
            made = Generation(f"{self.base}-{last + 1:06d}", FORMAT, self._connection.major, False)
            meta = {"format": made.format, "major": made.major}
            body = body_of_index(self._connection.options, meta)
            known_by = {made.write: {"is_write_index": True}}
            if alias != self.base:
                known_by[alias] = {}
            # Several writers may begin at the same time: the first one's index counts for all.
            answer = client.indices.create(index=made.name, body={**body, "aliases": known_by}, ignore=400)
        error = answer.get("error")
        if error is not None and error["type"] != "resource_already_exists_exception":
            raise self._connection.refusal(400, error["type"], error["reason"])
        if alias == self.base:
            self._point(alias, made, instead_of)
        return made

    def _point(self, alias: str, made: Generation, instead_of: Generation | None) -> None:
        """Let the alias mean another index, in one step."""
        actions: list[dict[str, Any]] = [{"add": {"index": made.name, "alias": alias}}]
        if instead_of is not None:
            actions.append({"remove": {"index": instead_of.name, "alias": alias, "must_exist": False}})
        if alias == self.base:
            actions.append({"remove": {"index": made.name, "alias": self._next, "must_exist": False}})
        with self._connection.translated():
            self._connection.client().indices.update_aliases(body={"actions": actions})

    def _delete(self, made: Generation) -> None:
        with self._connection.translated():
            self._connection.client().indices.delete(index=made.name, ignore=_GONE)
