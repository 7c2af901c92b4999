"""Ads and queries with the numbers of values and the shares that the sharding paper prints.

What it does not print is chosen here, and said: categories, regions and cities are as frequent as Zipf's law has
it; a city lies in one region; an ad is active when it is put in, and the older it is, the likelier it has ended;
visitors ask for active ads, the site's own staff for the others; of the queries that name an id one in three wants
that very ad, the others want newer ones than it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import Any

import msgspec

from levada.sharding.asked import AllOf, AskedQuery, Condition, Filter

__all__ = ["ACTIVE", "COLLECTION", "AdsModel", "ads", "ads_log"]

COLLECTION = "board.ads"
ACTIVE = 4
_ENDED = (1, 2, 3, 7, 9, 15)
_FIRST_ID, _LAST_ID = 6_145_245, 21_611_833
_CATEGORIES, _REGIONS, _CITIES, _PROPERTIES = 1010, 25, 677, 122_000
_ASKED = (("category_id", 0.94), ("properties", 0.11), ("is_top", 0.02))
_ASK_REGION, _ASK_CITY, _ASK_ID = 0.64, 0.29, 0.20
_BY_ID = 1 / 3  # of the queries that name an id: those that want that ad
_FOR_ACTIVE = 0.9  # of the queries


class AdsModel(msgspec.Struct, frozen=True):
    """`active`: the share of the ads that are. `inserts` and `updates`: for each query."""

    active: float = 0.35
    documents: int = 100_000
    queries: int = 100_000
    inserts: float = 0.02
    updates: float = 0.01
    seed: int = 1


class _Zipf:
    """Values 1 to `count` of a scattered order, the r-th as frequent as r^-exponent."""

    def __init__(self, values: Sequence[int], exponent: float) -> None:
        self._values = values
        self._sums = list(accumulate((rank + 1.0) ** -exponent for rank in range(len(values))))

    def draw(self, chance: Random) -> int:
        return self._values[bisect(self._sums, chance.random() * self._sums[-1])]


class _World:
    def __init__(self) -> None:
        scatter = Random(2018)  # noqa: S311  the same board whatever the seed
        self.categories = _Zipf(scatter.sample(range(1, 1756), _CATEGORIES), 0.7)
        self.regions = _Zipf(scatter.sample(range(1, _REGIONS + 1), _REGIONS), 0.6)
        cities = scatter.sample(range(1, 721), _CITIES)
        self.cities = {region: _Zipf(cities[region - 1 :: _REGIONS], 0.8) for region in range(1, _REGIONS + 1)}
        self.properties = _Zipf(range(1, _PROPERTIES + 1), 0.5)

    def ad(self, number: int, status: int, chance: Random) -> dict[str, int]:
        region = self.regions.draw(chance)
        return {
            "_id": number,
            "status": status,
            "category_id": self.categories.draw(chance),
            "region_id": region,
            "city_id": self.cities[region].draw(chance),
            "properties": self.properties.draw(chance),
            "is_top": int(chance.random() < 0.03),
        }


def ads(model: AdsModel) -> list[dict[str, int]]:
    """A sample of the ads, in the order in which they were put in."""
    world, chance = _World(), Random(model.seed)  # noqa: S311
    step = (_LAST_ID - _FIRST_ID) / model.documents
    found = []
    for number in range(model.documents):
        newness = (number + 0.5) / model.documents
        status = ACTIVE if chance.random() < _still_active(newness, model.active) else chance.choice(_ENDED)
        found.append(world.ad(_FIRST_ID + int(number * step), status, chance))
    return found


def _still_active(newness: float, share: float) -> float:
    """The newest ads are all active, the oldest hardly: a power of the newness with this mean."""
    return float(newness ** ((1.0 - share) / share))


def ads_log(model: AdsModel) -> Iterator[AskedQuery]:
    """What is asked of them, with inserts and changes of status in between."""
    world, chance = _World(), Random(model.seed + 1_000_003)  # noqa: S311
    for _ in range(model.queries):
        yield AskedQuery(COLLECTION, "find", source="lab", filter=_filter(world, model, chance))
        if chance.random() < model.inserts:
            yield AskedQuery(COLLECTION, "insert", source="lab", inserted=1)
        if chance.random() < model.updates:
            one = AllOf((_is("_id", chance.randrange(_FIRST_ID, _LAST_ID)), _is("status", ACTIVE)))
            yield AskedQuery(COLLECTION, "update", source="lab", filter=one, changes=("status",))


def _filter(world: _World, model: AdsModel, chance: Random) -> Filter:
    status = ACTIVE if chance.random() < _FOR_ACTIVE else chance.choice(_ENDED)
    ad = world.ad(chance.randrange(_FIRST_ID, _LAST_ID), status, chance)
    more = 1.0 + model.updates  # updates name an id and a status only, and the printed shares are of all queries
    asked = [_is("status", ad["status"])]
    for field, share in _ASKED:
        if chance.random() < share * more:
            asked.append(_is(field, ad[field]))
    if chance.random() < _ASK_REGION * more:
        asked.append(_is("region_id", ad["region_id"]))
        if chance.random() < _ASK_CITY / _ASK_REGION:
            asked.append(_is("city_id", ad["city_id"]))
    if chance.random() < _ASK_ID * more - model.updates:
        wanted = chance.random() < _BY_ID
        asked.append(_is("_id", ad["_id"]) if wanted else Condition("_id", "range", (ad["_id"], None)))
    return AllOf(tuple(asked))


def _is(field: str, value: Any) -> Condition:
    return Condition(field, "eq", (value,))
