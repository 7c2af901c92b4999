"""The demo's warm map: how many lookups of a page per second, beside the store's?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from random import Random

import msgspec

from levada.assemble.folder import DataFolder
from levada.assemble.maps import Map
from levada.assemble.reading import open_collection
from levada.assemble.warm_pages import WarmPages
from levada.assemble.warming import CARDS, maps_of, warm, warm_request
from levada.clock import SystemClock
from levada.errors import MissingExtra

__all__ = ["WarmStory", "told_warm", "warm_story"]

_LOOKUPS = 5_000
_MOST_PAGES = 5_000


class WarmStory(msgspec.Struct, frozen=True):
    pages: int
    pages_per_second: float  # into the map
    map_lookups: float  # per second, by whoever opens the map
    checked_lookups: float  # as the server looks up: the card is compared with the store
    store_lookups: float


def warm_story(folder: DataFolder, seed: int) -> WarmStory | None:
    """None where nothing is stored, or maps in files are not installed."""
    try:
        warmed = warm(folder, warm_request(folder), lambda standing: None)
    except MissingExtra:
        return None
    with (
        open_collection(folder) as collection,
        closing(WarmPages(folder, SystemClock())) as pages,
        Map.open(str(maps_of(folder)), CARDS) as plain,
    ):
        store = collection.store
        known = [page.url for page in islice(store.sample(1), _MOST_PAGES)]
        if not known:
            return None
        asked = Random(seed).choices(known, k=_LOOKUPS)  # noqa: S311
        return WarmStory(
            warmed.pages,
            warmed.pages_per_second,
            _rate(asked, plain.get),
            _rate(asked, pages.card),
            _rate(asked, lambda url: (store.page(url), store.versions(url))),
        )


def told_warm(story: WarmStory) -> str:
    return (
        f"Warm: {story.pages:,} pages put into a map: {story.checked_lookups:,.0f} lookups/s "
        f"(the store {story.store_lookups:,.0f})."
    )


def _rate(asked: Sequence[str], look: Callable[[str], object]) -> float:
    clock = SystemClock()
    began = clock.monotonic()
    for url in asked:
        look(url)
    return len(asked) / max(1e-6, clock.monotonic() - began)
