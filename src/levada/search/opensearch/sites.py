"""The numbers of sites, for postings: an index of their own, as they outlive a rebuild."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from levada.search.opensearch.connection import Connection

_COUNTER = " next"  # no site has a space in its name
_MOST_KEPT = 100_000
_BODY: dict[str, Any] = {
    "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": "-1"},
    "mappings": {"dynamic": False},
}


class SiteNumbers:
    """Gives each site a number from 1, in the order of their first appearance; several processes may ask."""

    def __init__(self, connection: Connection, base: str) -> None:
        self._connection = connection
        self._index = f"{base}-sites"
        self._known: dict[str, int] = {}

    def numbers(self, sites: Collection[str]) -> Mapping[str, int]:
        if len(self._known) > _MOST_KEPT:
            self._known.clear()
        with self._connection.translated():
            self._find(sites)
            if new := [site for site in dict.fromkeys(sites) if site not in self._known]:
                self._give(new)
                self._find(new)  # another process may have been faster for some of them
        return {site: self._known[site] for site in sites}

    def forget(self) -> None:
        self._known.clear()

    def _find(self, sites: Collection[str]) -> None:
        asked = [site for site in dict.fromkeys(sites) if site not in self._known]
        if not asked:
            return
        found = self._connection.client().mget(index=self._index, body={"ids": asked}, ignore=404)
        for entry in found.get("docs", ()):
            if entry.get("found"):
                self._known[entry["_id"]] = int(entry["_source"]["number"])

    def _give(self, new: list[str]) -> None:
        client = self._connection.client()
        first = self._reserved(len(new))
        lines: list[dict[str, Any]] = []
        for number, site in enumerate(new, first):
            lines += [{"create": {"_id": site}}, {"number": number}]
        client.bulk(index=self._index, body=lines)

    def _reserved(self, count: int) -> int:
        """The first of so many numbers that nobody else gets."""
        client = self._connection.client()
        while True:
            found = client.get(index=self._index, id=_COUNTER, ignore=404)
            if "_id" not in found:  # not even the index is there
                client.indices.create(index=self._index, body=_BODY, ignore=400)
            if found.get("found"):
                first = int(found["_source"]["number"])
                seen = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
            else:
                first, seen = 1, {"op_type": "create"}
            written = client.index(
                index=self._index, id=_COUNTER, body={"number": first + count}, params=seen, ignore=409
            )
            if written.get("result") in ("created", "updated"):
                return first
