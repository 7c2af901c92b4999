"""What is told of a page in one piece? A card, the same from the store and from a map that was filled from it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from levada.records import Outcome, PageRecord

__all__ = ["CardShelf", "PageCard", "Stamp", "Stamps", "card_of"]

_MET = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)


class Stamp(NamedTuple):
    """Another one after every visit, and whenever the next visit is planned anew."""

    visits: int
    next_visit: float | None
    met_at: float


class PageCard(msgspec.Struct, frozen=True, array_like=True):
    site: str
    kind: str
    state: str
    reason: str | None
    title: str
    words: int
    version: int  # 0: nothing is stored
    fetched_at: float | None
    checked_at: float | None  # the last remembered visit that met this version
    next_visit: float | None
    visits: int
    id: int = 0  # by this, and in this shard, its stamp is found
    shard: str = ""
    met_at: float = 0.0
    leads_to: str | None = None

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.visits, self.next_visit, self.met_at)


class CardShelf(Protocol):
    """The pages of one shard that were visited, by address, from `low` to before `high`."""

    def count(self, low: str, high: str) -> int:
        """About how many there are, those never visited too."""
        ...

    def urls(self, low: str, high: str, one_in: int) -> list[str]:
        """About one address in so many, in order."""
        ...

    def cards(self, low: str, high: str, limit: int, since: float | None) -> list[tuple[str, PageCard]]:
        """The first so many; with `since`, of those that may have been visited since then."""
        ...

    def newest(self) -> float:
        """When a page was last met; 0 if never."""
        ...

    def close(self) -> None: ...


class Stamps(Protocol):
    """Is a card of one shard still right?"""

    def stamp(self, page_id: int) -> Stamp | None:
        """None if no visited page of this number lies here."""
        ...

    def mark(self) -> int | None:
        """As long as it is the same, nothing was written in the shard; None where that costs as much as a stamp."""
        ...

    def close(self) -> None: ...


def card_of(
    page: PageRecord,
    title: str | None,
    words: int | None,
    fetched_at: float | None,
    *,
    shard: str = "",
    met_at: float = 0.0,
) -> PageCard:
    """`title`, `words` and `fetched_at` are of its newest version; None if there is none."""
    met = next((visit.at for visit in reversed(page.history) if visit.outcome in _MET), None)
    return PageCard(
        page.site,
        page.kind.value,
        page.state.value,
        page.reason,
        title or "",
        words or 0,
        page.version,
        fetched_at,
        None if fetched_at is None else met,
        page.next_visit,
        page.visits,
        page.id,
        shard,
        met_at,
        page.leads_to,
    )
