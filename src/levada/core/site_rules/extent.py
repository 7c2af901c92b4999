"""Extent of a site's crawl: which of its addresses a rule takes in."""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.site_rules.paths import Fits, encoded_path, fits
from levada.core.site_rules.section import SiteSettings


class Extent:
    """The keys `include`, `exclude`, `folders` and `depth` of one rule.

    >>> extent = Extent(SiteSettings(match="example.org", include=("/docs/*",), exclude=("*.pdf",)))
    >>> [extent.keeps_out(path) for path in ("/docs/a/b", "/docs/a.pdf", "/news")]
    ['', 'exclude', 'include']
    """

    def __init__(self, keys: SiteSettings) -> None:
        self.depth = keys.depth
        self._include = _any_of(keys.include) if keys.include else None
        self._exclude = _any_of(keys.exclude) if keys.exclude else None
        self._folders = tuple(map(encoded_path, keys.folders)) if keys.folders else None

    def keeps_out(self, path: str, *, named: bool = False) -> str:
        """The key that keeps this path out, with its query; "" if none does. One that the user named needs no match."""
        if self._exclude is not None and self._exclude(path):
            return "exclude"
        if named:
            return ""
        if self._folders is not None and not path.startswith(self._folders):
            return "folders"
        if self._include is not None and not self._include(path):
            return "include"
        return ""


def extent_of(keys: SiteSettings) -> Extent | None:
    """The extent of a rule; None if it limits nothing."""
    limits = keys.include or keys.exclude or keys.folders or keys.depth is not None
    return Extent(keys) if limits else None


def path_of(url: str) -> str:
    """The path and the query of a canonical URL."""
    _, _, rest = url.partition("://")
    _, slash, path = rest.partition("/")
    return slash + path


def folder_of(url: str) -> str:
    """The path of the folder that a canonical URL is in.

    >>> folder_of("https://example.org/docs/intro?page=2"), folder_of("https://example.org/docs/")
    ('/docs/', '/docs/')
    """
    path = path_of(url).partition("?")[0]
    return path[: path.rfind("/") + 1] or "/"


def _any_of(patterns: Sequence[str]) -> Fits:
    tests = tuple(map(fits, patterns))
    return lambda path: any(test(path) for test in tests)
