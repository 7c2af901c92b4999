"""Forgetting in the memory store: the reference for tombstones, and for deleting pages, sites and versions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from levada.core.hashing import tombstone
from levada.core.reasons import Reason
from levada.core.records import ChangeEvent, FoundUrl
from levada.pages.urls import site_of
from levada.store.base import Deleted, Retention
from levada.store.retention import expendable, is_expired
from levada.store.rules import is_start

if TYPE_CHECKING:
    from levada.store.memory import _Page, _Site


class MemoryForgetting:
    """`levada.store.base.Forgetting` over dictionaries."""

    _pages: dict[str, _Page]
    _by_id: dict[int, _Page]
    _sites: dict[str, _Site]
    _leases: dict[int, Any]
    _refused: dict[tuple[str, Reason], tuple[int, str]]
    _change_log: list[ChangeEvent]
    _near_runs: dict[str, bytes]
    _seq: int

    def __init__(self) -> None:
        self._key = ""
        self._tombstones: dict[str, float] = {}
        self._departed: dict[int, int] = {}  # pages that were erased, with their place in the order of changes

    def bury(self, urls: Sequence[str], sites: Sequence[str], at: float, key: str = "") -> str:
        self._key = self._key or key or secrets.token_hex(16)
        for name in (*urls, *sites):
            self._tombstones.setdefault(tombstone(self._key, name), at)
        return self._key

    def tombstones(self) -> tuple[str, list[tuple[str, float]]]:
        return self._key, sorted(self._tombstones.items())

    def adopt_tombstones(self, key: str, tombstones: Sequence[tuple[str, float]]) -> None:
        self._key = self._key or key
        self._tombstones |= dict(tombstones)

    def forgotten(self, urls: Sequence[str]) -> set[str]:
        return {url for url in urls if self._is_forgotten(url, site_of(url))}

    def forgotten_sites(self, sites: Sequence[str]) -> set[str]:
        return {site for site in sites if self._is_forgotten(site, site)}

    def lift(self, found: Sequence[FoundUrl]) -> list[str]:
        starts = [each for each in found if is_start(each)]
        lifted = [each.url for each in starts if self._is_forgotten(each.url, each.site)]
        for name in {name for each in starts for name in (each.url, each.site)} if self._key else ():
            self._tombstones.pop(tombstone(self._key, name), None)
        return lifted

    def erase(self, urls: Sequence[str], *, only_gone: bool = False) -> Deleted:
        erased = Deleted()
        for url in dict.fromkeys(urls):
            page = self._pages.get(url)
            self._near_runs.pop(site_of(url), None)
            if page is None or (only_gone and not page.gone):
                continue
            id = page.record.id
            del self._pages[url], self._by_id[id]
            self._leases.pop(id, None)
            page.site.pages.remove(page)
            page.site.used += 1
            self._change_log = [each for each in self._change_log if each.page_id != id]
            if page.record.version:
                self._seq += 1
                self._departed[id] = self._seq
            erased += Deleted(1, len(page.versions))
        return erased

    def erase_traces(self, after: int, limit: int) -> int | None:
        for page in self._by_id.values():
            record = page.record
            if record.found_on is not None and record.found_on not in self._by_id:
                record = replace(record, found_on=None)
            if record.leads_to is not None and self.forgotten([record.leads_to]):
                record = replace(record, leads_to=None)
            page.record = record
        for key, (n, example) in list(self._refused.items()):
            if self.forgotten([example]):
                self._refused[key] = n, ""
        for name in self.forgotten_sites(list(self._sites)):
            for (site, reason), (n, _) in list(self._refused.items()):
                if site == name:
                    del self._refused[site, reason]
                    before, example = self._refused.get(("", reason), (0, ""))
                    self._refused["", reason] = before + n, example
            del self._sites[name]
        return None

    def thin_out(
        self, after: int, limit: int, now: float, rules: Retention, *, site: str = "", dry_run: bool = False
    ) -> tuple[int | None, Deleted, list[str]]:
        dropped, expired = Deleted(), []
        some = sorted(id for id, page in self._by_id.items() if id > after and page.versions)[:limit]
        for page in (self._by_id[id] for id in some):
            kept = sorted((number, at) for number, (at, _) in page.versions.items())
            if site and page.record.site != site:
                continue
            if page.gone and is_expired(kept[-1][1], now, rules):
                expired.append(page.record.url)
                continue
            old = expendable(kept, now, rules)
            dropped += Deleted(bool(old), len(old))
            for number in () if dry_run else old:
                del page.versions[number]
        return some[-1] if some else None, dropped, expired

    def compact(self) -> None:
        """Do nothing: memory is no file."""

    def _is_forgotten(self, url: str, site: str) -> bool:
        return bool(self._key) and any(tombstone(self._key, name) in self._tombstones for name in (url, site))
