"""Words for tests of indexes: pages that changed, and what a search finds."""

from __future__ import annotations

from levada.ports import Index
from levada.records import Change, Document
from levada.searching import Query

__all__ = ["change", "removed", "urls"]


def change(
    page: int,
    text: str,
    *,
    seq: int | None = None,
    title: str = "",
    site: str = "a.org",
    language: str = "en",
    at: float = 0.0,
    searchable: bool = True,
    gone: bool = False,
) -> Change:
    url = f"http://{site}/{page}"
    document = Document(
        page_id=page,
        url=url,
        site=site,
        version=1,
        title=title,
        language=language,
        charset="utf-8",
        text=text,
        body=b"",
        status=200,
        headers=(),
        fetched_at=at,
        checked_at=at,
        words=len(text.split()),
        similarity=0.0,
        searchable=searchable,
        gone=gone,
    )
    return Change(seq or page, page, url, site, document)


def removed(page: int, *, seq: int, site: str = "a.org") -> Change:
    return Change(seq, page, f"http://{site}/{page}", site, None)


def urls(index: Index, query: str) -> set[str]:
    return {hit.url for hit in index.search(Query(query, limit=1_000)).hits}
