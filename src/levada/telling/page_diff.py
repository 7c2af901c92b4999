"""What is different between two versions of a page, in facts?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from levada.assemble.reading import Collection
from levada.errors import NotFound
from levada.records import Document, PageRecord, VersionInfo
from levada.telling.duration import iso
from levada.telling.line_changes import Hunk, changes_between
from levada.telling.words import paragraphs

__all__ = ["change_facts", "hunks_between", "lines_changed", "version_facts"]


def hunks_between(
    collection: Collection, page: PageRecord, pair: tuple[VersionInfo, VersionInfo], context: int
) -> list[Hunk]:
    """The differences between two stored versions; `NotFound` if one is no longer kept."""
    before, after = (_document(collection, page, each) for each in pair)
    return changes_between(_lines(before), _lines(after), context)


def _document(collection: Collection, page: PageRecord, version: VersionInfo) -> Document:
    document = collection.store.document(page.url, version.version)
    if document is None:  # a crawl beside us has just replaced the oldest
        raise NotFound(f"version {version.version} of {page.url} is no longer kept: try again")
    return document


def _lines(document: Document) -> list[str]:
    return paragraphs(document.text) if document.text else []


def change_facts(page: PageRecord, pair: tuple[VersionInfo, VersionInfo], hunks: Sequence[Hunk]) -> dict[str, Any]:
    before, after = pair
    removed, added = lines_changed(hunks)
    return {
        "url": page.url,
        "title": after.title,
        "from": version_facts(before),
        "to": version_facts(after),
        "similarity": after.similarity,
        "removed": removed,
        "added": added,
        "hunks": hunks,
    }


def lines_changed(hunks: Sequence[Hunk]) -> tuple[int, int]:
    """How many lines went, and how many came."""
    signs = [each.sign for hunk in hunks for each in hunk.lines]
    return signs.count("-"), signs.count("+")


def version_facts(version: VersionInfo) -> dict[str, Any]:
    return {
        "version": version.version,
        "fetched_at": iso(version.fetched_at),
        "title": version.title,
        "words": version.words,
        "similarity": version.similarity,
    }
