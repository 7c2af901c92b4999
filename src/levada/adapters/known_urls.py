"""Which URLs are surely stored already? A bounded memory that saves a lookup for each repeated link."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["KnownUrls"]


class KnownUrls:
    """At most `limit` URLs. A "no" means only "perhaps not"; tell it of URLs after their commit, never before.

    Two generations instead of an order of use: when the younger is full it becomes the older, and what nobody
    named since is forgotten with the next change.
    """

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __contains__(self, url: str) -> bool:
        if url in self._young:
            return True
        if url in self._old:
            self._keep(url)
            return True
        return False

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def update(self, urls: Iterable[str]) -> None:
        for url in urls:
            self._keep(url)

    def _keep(self, url: str) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
        if self._half:
            self._young.add(url)
