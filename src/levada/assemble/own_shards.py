"""Where do the collection's own pages lie, what is asked of them, and which key would suit that better?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from secrets import token_bytes

import msgspec

from levada.assemble.reading import Collection
from levada.assemble.stores import plan_of, unreachable
from levada.errors import Refused
from levada.sharding.advice import Advice, advise
from levada.sharding.asked import AllOf, AnyOf, AskedQuery, Condition, Filter, NoneOf
from levada.sharding.asked_lines import read_asked
from levada.sharding.evaluation import Evaluator, Figures
from levada.sharding.log_statistics import LogStatistics
from levada.sharding.pages import page_placement, page_values
from levada.sharding.placement import Placement
from levada.sharding.sample import Sample
from levada.sharding.scoring import Tried
from levada.sharding.workload import Workload

__all__ = ["LEAST_ASKED", "OwnAdvice", "OwnShard", "OwnShards", "own_advice", "own_placement", "own_shards"]

LEAST_ASKED = 20  # questions: fewer say nothing
_MOST_ASKED = 20_000
_MOST_PAGES = 3_000
_FIELDS = ("site", "section", "url")
_AT_LEAST = 4  # shards that a key is advised for, where there is only one so far


class OwnShard(msgspec.Struct, frozen=True):
    number: int
    where: str  # its folder, or its server without user and password
    pages: int
    bytes: int
    trouble: str = ""


class OwnShards(msgspec.Struct, frozen=True):
    key: str
    moving: bool
    shards: tuple[OwnShard, ...]
    ranges: tuple[tuple[float, int], ...]  # share of the hashed keys, and their shard, in order


class OwnAdvice(msgspec.Struct, frozen=True):
    questions: int
    shards: int
    present: Figures
    present_key: str
    advised: Figures
    advised_key: str
    why: tuple[str, ...]


def own_shards(collection: Collection) -> OwnShards:
    file = plan_of(collection.folder)
    now = collection.clock.now()
    if file is None:
        standing = collection.store.standing(now)
        only = OwnShard(0, "one file", standing.stored, standing.bytes)
        return OwnShards("none: one shard", False, (only,), ((1.0, 0),))
    record = file.read()
    file.close()
    trouble = dict(zip(getattr(collection.store, "away_numbers", ()), unreachable(collection.store), strict=False))
    shards = []
    for number, (place, shard) in enumerate(zip(record.shards, collection.store.shards, strict=False)):  # type: ignore[attr-defined]
        where = place.server.rpartition("@")[2] or place.folder
        if number in trouble:
            shards.append(OwnShard(number, where, 0, 0, trouble[number]))
        else:
            standing = shard.standing(now)
            shards.append(OwnShard(number, where, standing.stored, standing.bytes))
    placement = record.plan.following or record.plan.current
    return OwnShards(str(placement.key), record.plan.following is not None, tuple(shards), _ranges(placement))


def _ranges(placement: Placement) -> tuple[tuple[float, int], ...]:
    """By the first eight bytes of the hash; a bound within one hash is a range of no width."""
    cuts = [int.from_bytes(bound[1:9].ljust(8, b"\0"), "big") / 2**64 for bound in placement.ranges.bounds]
    ends = zip([0.0, *cuts], [*cuts, 1.0], placement.ranges.owners, strict=True)
    return tuple((high - low, owner) for low, high, owner in ends)


def own_advice(collection: Collection, log: Path) -> OwnAdvice | None:
    """None where too little was asked, or nothing is stored."""
    present = _present(collection)
    shards = max(present.shards, 2)
    looked = _look(collection, log)
    if looked is None:
        return None
    asked, sample = looked
    advice = advise(asked, LogStatistics.of(asked), sample, shards, immutable=_FIELDS, secret=present.key.secret)
    chosen = _usable(advice)
    figures = Evaluator(Workload(asked, sample), sample).figures(present)
    return OwnAdvice(
        len(asked), shards, figures, str(present.key), chosen.figures, str(chosen.placement.key), advice.why
    )


def own_placement(collection: Collection, log: Path, shards: int | None) -> Placement:
    """Where the pages would lie best, by what was asked; `Refused` where too little was."""
    looked = _look(collection, log)
    if looked is None:
        raise Refused(
            f"too little was asked to advise a key: at least {LEAST_ASKED} questions are needed, and {_AT_LEAST} "
            "pages. 'levada serve --capture' and 'levada search --capture' write down what is asked"
        )
    asked, sample = looked
    present = _present(collection)
    count = shards or max(len(set(present.ranges.owners)), 2)
    secret = present.key.secret or token_bytes(16)
    advice = advise(asked, LogStatistics.of(asked), sample, count, immutable=_FIELDS, secret=secret)
    return _usable(advice).placement


def _present(collection: Collection) -> Placement:
    file = plan_of(collection.folder)
    if file is None:
        return page_placement("url", _AT_LEAST)
    try:
        return file.read().plan.current
    finally:
        file.close()


def _look(collection: Collection, log: Path) -> tuple[list[AskedQuery], Sample] | None:
    """What was asked, and some of the pages, those first that were found first; None if that is too little."""
    asked = list(islice(_asked(log), _MOST_ASKED))
    one_in = 1 << max(0, (collection.store.live_pages() // _MOST_PAGES).bit_length())
    drawn = sorted(collection.store.sample(one_in), key=lambda page: page.found_at)[:_MOST_PAGES]
    if len(asked) < LEAST_ASKED or len(drawn) < _AT_LEAST:
        return None
    return asked, Sample([page_values(page.url) for page in drawn], _FIELDS, "url")


def _usable(advice: Advice) -> Tried:
    """The best that the store can use: outsiders pick the addresses, so what leads is hashed; no directory."""
    usable = (
        each
        for each in advice.tried
        if not each.refused and each.placement.key.parts[0].hashed and not each.placement.directory
    )
    return next(usable)  # the hashed address is always among them


def _asked(log: Path) -> Iterator[AskedQuery]:
    try:
        with log.open("rb") as lines:
            for query in read_asked(lines, collection="levada.pages"):
                yield msgspec.structs.replace(query, filter=_placed(query.filter) if query.filter else None)
    except OSError:
        return


def _placed(asked: Filter) -> Filter:
    """Whoever names an address names its site and section too."""
    if isinstance(asked, AllOf):
        return AllOf(tuple(_placed(each) for each in asked.of))
    if isinstance(asked, AnyOf):
        return AnyOf(tuple(_placed(each) for each in asked.of))
    if isinstance(asked, NoneOf) or asked.field != "url" or asked.operator != "eq" or len(asked.values) != 1:
        return asked
    values = page_values(str(asked.values[0]))
    return AllOf(tuple(Condition(field, "eq", (values[field],)) for field in _FIELDS))
