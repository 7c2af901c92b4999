"""Ads and queries with the numbers of values and the shares that the sharding paper prints.

Assumptions, where the paper prints nothing: categories, regions and cities follow Zipf's law; a city lies in one
region; an ad is active when it is inserted, and the older it is, the likelier it has ended; visitors query active
ads, the site's own staff the others; of the queries that name an id one in three wants that ad, the others want
newer ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import Any

import msgspec

from levada.sharding.queries import AllOf, Condition, Filter, QueryEntry

COLLECTION = "board.ads"
ACTIVE = 4
_ENDED = (1, 2, 3, 7, 9, 15)
_FIRST_ID, _LAST_ID = 6_145_245, 21_611_833
_CATEGORIES, _REGIONS, _CITIES, _PROPERTIES = 1010, 25, 677, 122_000
_SHARES = (("category_id", 0.94), ("properties", 0.11), ("is_top", 0.02))
_REGION_SHARE, _CITY_SHARE, _ID_SHARE = 0.64, 0.29, 0.20  # of the queries that name the field
_BY_ID = 1 / 3  # of the queries that name an id: those for that ad
_FOR_ACTIVE = 0.9  # of the queries


class AdsModel(msgspec.Struct, frozen=True):
    """`active`: the share of active ads. `inserts` and `updates`: per query."""

    active: float = 0.35
    documents: int = 100_000
    queries: int = 100_000
    inserts: float = 0.02
    updates: float = 0.01
    seed: int = 1


def _zipf(values: Sequence[int], exponent: float) -> Callable[[Random], int]:
    """Draws one of `values`, the r-th with frequency r^-exponent."""
    sums = list(accumulate((rank + 1.0) ** -exponent for rank in range(len(values))))
    return lambda chance: chance.choices(values, cum_weights=sums)[0]


class _Board:
    """The distributions of an ad's fields."""

    def __init__(self) -> None:
        scatter = Random(2018)  # noqa: S311  the same board for every seed
        self.categories = _zipf(scatter.sample(range(1, 1756), _CATEGORIES), 0.7)
        self.regions = _zipf(scatter.sample(range(1, _REGIONS + 1), _REGIONS), 0.6)
        cities = scatter.sample(range(1, 721), _CITIES)
        self.cities = {region: _zipf(cities[region - 1 :: _REGIONS], 0.8) for region in range(1, _REGIONS + 1)}
        self.properties = _zipf(range(1, _PROPERTIES + 1), 0.5)

    def ad(self, number: int, status: int, chance: Random) -> dict[str, int]:
        region = self.regions(chance)
        return {
            "_id": number,
            "status": status,
            "category_id": self.categories(chance),
            "region_id": region,
            "city_id": self.cities[region](chance),
            "properties": self.properties(chance),
            "is_top": int(chance.random() < 0.03),
        }


def ads(model: AdsModel) -> list[dict[str, int]]:
    """A sample of the ads, in the order of their inserts."""
    board, chance = _Board(), Random(model.seed)  # noqa: S311
    step = (_LAST_ID - _FIRST_ID) / model.documents
    found = []
    for number in range(model.documents):
        newness = (number + 0.5) / model.documents
        status = ACTIVE if chance.random() < _still_active(newness, model.active) else chance.choice(_ENDED)
        found.append(board.ad(_FIRST_ID + int(number * step), status, chance))
    return found


def _still_active(newness: float, share: float) -> float:
    """Almost all of the newest ads are active and almost none of the oldest: a power of newness with this mean."""
    return float(newness ** ((1.0 - share) / share))


def ads_log(model: AdsModel) -> Iterator[QueryEntry]:
    """Queries of the ads, with inserts and changes of status in between."""
    board, chance = _Board(), Random(model.seed + 1_000_003)  # noqa: S311
    for _ in range(model.queries):
        yield QueryEntry(COLLECTION, "find", source="lab", filter=_filter(board, model, chance))
        if chance.random() < model.inserts:
            yield QueryEntry(COLLECTION, "insert", source="lab", inserted=1)
        if chance.random() < model.updates:
            one = AllOf((_is("_id", chance.randrange(_FIRST_ID, _LAST_ID)), _is("status", ACTIVE)))
            yield QueryEntry(COLLECTION, "update", source="lab", filter=one, changes=("status",))


def _filter(board: _Board, model: AdsModel, chance: Random) -> Filter:
    status = ACTIVE if chance.random() < _FOR_ACTIVE else chance.choice(_ENDED)
    ad = board.ad(chance.randrange(_FIRST_ID, _LAST_ID), status, chance)
    more = 1.0 + model.updates  # updates name only id and status, and the printed shares are of all queries
    conditions = [_is("status", ad["status"])]
    for field, share in _SHARES:
        if chance.random() < share * more:
            conditions.append(_is(field, ad[field]))
    if chance.random() < _REGION_SHARE * more:
        conditions.append(_is("region_id", ad["region_id"]))
        if chance.random() < _CITY_SHARE / _REGION_SHARE:
            conditions.append(_is("city_id", ad["city_id"]))
    if chance.random() < _ID_SHARE * more - model.updates:
        wanted = chance.random() < _BY_ID
        conditions.append(_is("_id", ad["_id"]) if wanted else Condition("_id", "range", (ad["_id"], None)))
    return AllOf(tuple(conditions))


def _is(field: str, value: Any) -> Condition:
    return Condition(field, "eq", (value,))
