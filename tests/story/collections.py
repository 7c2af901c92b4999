"""Checks that a collection is whole, as every crash test does at its end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from levada.collection.search import open_search
from levada.core.folder import DataFolder
from levada.core.search_records import Query
from levada.demo.world import DemoWorld
from tests.invariants import check_invariants

__all__ = ["check_whole"]


def check_whole(data: Path, world: DemoWorld) -> None:
    """Every page of the web once, in one version; the index knows the same pages and no others."""
    with open_search(DataFolder(data)) as (collection, index):
        check_invariants(collection.store)
        stored = Counter(document.url for document in collection.store.scan())
        assert max(stored.values()) == 1, "stored twice"
        kept = {page.number for url in stored if (page := world.find(url)) is not None}
        lost = [page.path for page in world.pages if page.number not in kept]
        assert not lost, f"{len(lost)} pages lost, such as {lost[:3]}"
        assert len(stored) == len(world.pages), "pages that the web does not have"
        doubled = [url for url in stored if len(collection.store.versions(url)) != 1]
        assert not doubled, f"{doubled[:3]} have more than one version"
        found: set[str] = set()
        for site in _sites(stored):
            offset = 0
            while hits := index.search(Query(f"site:{site}", limit=200, offset=offset)).hits:
                found.update(hit.url for hit in hits)
                offset += 200
        assert found == set(stored), "index and documents disagree"


def _sites(urls: Counter[str]) -> set[str]:
    return {url.split("/")[2].split(":")[0] for url in urls}
