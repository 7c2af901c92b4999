"""What is a site of the bundled web made of?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from levada.demo.changes import Rhythm
from levada.demo.figures import Dynamics

__all__ = ["Page", "PageRole", "Site", "Validators"]


class PageRole(StrEnum):
    FRONT = "front"
    SECTION = "section"
    ITEM = "item"


class Validators(StrEnum):
    """What a site sends for conditional requests."""

    BOTH = "both"
    ETAG = "etag"
    MODIFIED = "modified"
    NONE = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    number: int  # in the world
    site: Site
    path: str
    role: PageRole
    language: str
    section: int  # of its site; a front page has -1
    dynamics: Dynamics
    rhythm: Rhythm
    hash: int
    only_in_sitemap: bool = False


@dataclass(slots=True, eq=False)
class Site:
    """One host: the front page, then sections, then items."""

    host: str
    label: str
    category: str
    language: str
    validators: Validators = Validators.BOTH
    honest_lastmod: bool = True
    crawl_delay: float | None = None
    section_names: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    by_path: dict[str, Page] = field(default_factory=dict)

    @property
    def front(self) -> Page:
        return self.pages[0]

    @property
    def sections(self) -> Sequence[Page]:
        return self.pages[1 : 1 + len(self.section_names)]

    @property
    def items(self) -> Sequence[Page]:
        return self.pages[1 + len(self.section_names) :]

    def listed_in(self, section: int) -> list[Page]:
        """The items that a section links to; those only in the sitemap are left out."""
        count = len(self.section_names)
        return [page for page in self.items[section::count] if not page.only_in_sitemap]
