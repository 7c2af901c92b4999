"""What was on a page, now and before? The `Documents` port in memory."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from levada.adapters.keeping import (
    TIDIED_EVERY,
    amends,
    happened,
    is_removed,
    plain_text,
    unpacked,
    version_after,
)
from levada.adapters.memory.held import Held, HeldPage
from levada.records import Change, Document, Happening, NewVersion, PageState, Settled, VersionInfo

__all__ = ["MemoryDocuments", "keep_content"]


class MemoryDocuments:
    def __init__(self, held: Held) -> None:
        self._held = held

    def document(self, url: str, version: int | None = None) -> Document | None:
        page = self._held.pages.get(url)
        if page is None or (version or page.record.version) not in page.versions:
            return None
        return _document(page, version or page.record.version)

    def versions(self, url: str) -> list[VersionInfo]:
        page = self._held.pages.get(url)
        kept = sorted(page.versions.items(), reverse=True) if page else []
        return [VersionInfo(n, at, each.title, each.words, each.similarity) for n, (at, each) in kept]

    def changes(self, after: int, limit: int) -> list[Change]:
        pages = self._held.by_id.values()
        changed = sorted((page for page in pages if page.seq > after), key=lambda page: page.seq)
        return [_change(page) for page in changed[: max(0, limit)]]

    def happenings(self, after: int, limit: int) -> list[Happening]:
        later = [each for each in self._held.happenings if each.seq > after]
        return [self._titled(each) for each in later[: max(0, limit)]]

    def _titled(self, each: Happening) -> Happening:
        kept = self._held.by_id[each.page_id].versions.get(each.version)
        return replace(each, title=kept[1].title if kept else "")

    def scan(self) -> Iterator[Document]:
        for _, page in sorted(self._held.by_id.items()):
            if page.is_stored:
                yield _document(page, page.record.version)


def keep_content(held: Held, page: HeldPage, settled: Settled) -> None:
    """Store the version that a visit brought; a page that is gone leaves search, one that is back returns."""
    was_gone = page.gone
    what = happened(settled, was_gone)
    if settled.version is not None:
        number = version_after(settled)
        stored_at, version = settled.visit.at, _storable(settled.version)
        if amends(settled):
            stored_at, before = page.versions[number]
            version = replace(version, similarity=before.similarity)
        page.record = replace(page.record, version=number, sketch=version.sketch)
        page.versions[number] = (stored_at, version)
        page.versions.pop(number - held.limits.keep_versions, None)
    if page.record.version == 0:
        return
    if is_removed(settled.state):
        page.gone = True
    elif settled.version is not None or settled.state is PageState.LIVE:
        page.gone = False
    if settled.version is not None or page.gone != was_gone:
        held.seq += 1
        page.seq = held.seq
    if what is not None:
        similarity = settled.version.similarity if settled.version else 1.0
        record = page.record
        held.happenings.append(
            Happening(
                held.seq, settled.visit.at, what, record.id, record.url, record.site, record.version, similarity
            )
        )
        if held.seq % TIDIED_EVERY == 0:
            kept = held.seq - held.limits.keep_happenings
            held.happenings = [each for each in held.happenings if each.seq > kept]


def _storable(version: NewVersion) -> NewVersion:
    headers = tuple((plain_text(name), plain_text(value)) for name, value in version.headers)
    return replace(version, title=plain_text(version.title), headers=headers)


def _change(page: HeldPage) -> Change:
    record = page.record
    document = None if page.gone else replace(_document(page, record.version), body=b"")
    shown = document if document is not None and document.searchable else None
    return Change(page.seq, record.id, record.url, record.site, shown)


def _document(page: HeldPage, number: int) -> Document:
    fetched_at, version = page.versions[number]
    current = number == page.record.version
    text, body = unpacked(version.content_zstd)
    return Document(
        page_id=page.record.id,
        url=page.record.url,
        site=page.record.site,
        version=number,
        title=version.title,
        language=version.language,
        charset=version.charset,
        text=text,
        body=body,
        status=version.status,
        headers=version.headers,
        fetched_at=fetched_at,
        checked_at=page.met_at if current else fetched_at,
        words=version.words,
        similarity=version.similarity,
        searchable=version.searchable,
        gone=page.gone,
    )
