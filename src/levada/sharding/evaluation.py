"""Figures of a placement for given queries and documents, and the balancing of ranges.

Figures: shards per query, how evenly queries, documents and inserts are spread, what updates would move, which
chunks cannot be split, and the capacity: queries over the touches of the busiest shard, so that one node is 1.

Ranges are cut between the values of the key's first field, so that a query that names one finds it whole. Only a
value that is too hot for one shard is cut inside, by what follows it in the key. Pieces go to shards by weight, the
heaviest first, each where it leaves the fuller side lowest (Graham's longest processing time first, on two sides).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import Any

import msgspec

from levada.sharding.placement import Placement, Ranges, ShardKey
from levada.sharding.sample import Sample
from levada.sharding.values import encoded
from levada.sharding.workload import Workload

_PIECES_PER_SHARD = 32
_FULLEST_PIECE = 0.8  # of a shard


class RangePiece(msgspec.Struct, frozen=True):
    """A range of keys that goes to one shard as a whole."""

    low: bytes
    documents: int
    first: bytes = b""  # prefix of the keys of a value that was cut


def pieces_of(
    starts: Sequence[bytes], keys: Sequence[bytes], named: Mapping[bytes, int], shards: int
) -> list[RangePiece]:
    """Pieces of the key range. `starts[i]` is the first field of `keys[i]`, `named` how often queries name each.

    Values of little weight share a piece with their neighbours.
    """
    weigh = _weight(len(keys), sum(named.values()), shards)
    found: list[RangePiece] = []
    gathered: RangePiece | None = None
    queries = 0
    for start, group in groupby(sorted(zip(starts, keys, strict=True)), key=lambda pair: pair[0]):
        own = [key for _, key in group]
        weight = weigh(len(own), named.get(start, 0))
        if weight >= 1 / _PIECES_PER_SHARD:
            found += [*([gathered] if gathered else []), *_cut(start, own, weight)]
            gathered, queries = None, 0
            continue
        before = gathered or RangePiece(start, 0)
        gathered, queries = RangePiece(before.low, before.documents + len(own)), queries + named.get(start, 0)
        if weigh(gathered.documents, queries) >= 1 / _PIECES_PER_SHARD:
            found.append(gathered)
            gathered, queries = None, 0
    return [*found, gathered] if gathered else found


def _weight(documents: int, queries: int, shards: int) -> Callable[[int, int], float]:
    """The weight of a piece in even shares of a shard: that of its documents or its queries, whichever is greater."""
    of_document, of_query = shards / max(documents, 1), shards / max(queries, 1)
    return lambda documents, queries: max(documents * of_document, queries * of_query)


def _cut(start: bytes, keys: Sequence[bytes], weight: float) -> Iterator[RangePiece]:
    count = ceil(weight / _FULLEST_PIECE) if weight > 1.0 else 1
    places = sorted({number * len(keys) // count for number in range(count)})
    lows = [keys[place] for place in places]
    kept = [number for number, low in enumerate(lows) if not number or low > lows[number - 1]]
    if len(kept) == 1:
        yield RangePiece(start, len(keys))
        return
    ends = [*(places[number] for number in kept[1:]), len(keys)]
    for number, end in zip(kept, ends, strict=True):
        yield RangePiece(lows[number] if number else start, end - places[number], start)


def assigned(pieces: Sequence[RangePiece], loads: Sequence[int], shards: int) -> tuple[Ranges, list[int]]:
    """The ranges, neighbours of one owner joined, and the owner of each piece. `loads`: touches of each piece."""
    owners = _owners(pieces, loads, shards)
    bounds: list[bytes] = []
    kept: list[int] = []
    for piece, owner in zip(pieces, owners, strict=True):
        if kept and owner == kept[-1]:
            continue
        bounds += [piece.low] if kept else []
        kept.append(owner)
    return Ranges(tuple(bounds), tuple(kept or [0])), owners


def _owners(pieces: Sequence[RangePiece], loads: Sequence[int], shards: int) -> list[int]:
    weigh = _weight(sum(piece.documents for piece in pieces), sum(loads), shards)
    documents, touches = [0] * shards, [0] * shards
    owners = [0] * len(pieces)
    heaviest = sorted(range(len(pieces)), key=lambda place: -weigh(pieces[place].documents, loads[place]))
    for place in heaviest:
        more, touched = pieces[place].documents, loads[place]
        after = [weigh(documents[shard] + more, touches[shard] + touched) for shard in range(shards)]
        owner = after.index(min(after))
        documents[owner] += more
        touches[owner] += touched
        owners[place] = owner
    return owners


def shared_by(pieces: Sequence[RangePiece], owners: Sequence[int]) -> dict[bytes, tuple[int, ...]]:
    """The shards that share a value that was cut, by the prefix of its keys."""
    shared: dict[bytes, set[int]] = {}
    for piece, owner in zip(pieces, owners, strict=True):
        if piece.first:
            shared.setdefault(piece.first, set()).add(owner)
    return {first: tuple(sorted(shards)) for first, shards in shared.items() if len(shards) > 1}


CHUNKS_PER_SHARD = 16  # more than a sixteenth of a shard under one key can be neither split nor evened out
_NEWEST = 10  # the last tenth of the sample stands for the inserts
_MOVED_TRIALS = 500


class PlacementFigures(msgspec.Struct, frozen=True):
    """Figures of a placement. Shares are 0 to 1; `max_mean` is the busiest or fullest shard over the mean."""

    shards_per_query: float
    single_shard: float
    load_max_mean: float
    storage_max_mean: float
    insert_max_mean: float
    moved: float  # share of the updates that would send their document to another shard
    unsplittable: int
    capacity: float
    loads: tuple[float, ...]  # each shard's share of the touches
    storage: tuple[float, ...]  # each shard's share of the documents


class Evaluator:
    """Computes figures; keeps what placements of the same key share."""

    def __init__(self, workload: Workload, sample: Sample) -> None:
        self.workload = workload
        self.sample = sample
        self._keys: dict[ShardKey, list[bytes]] = {}

    def keys(self, key: ShardKey) -> list[bytes]:
        """The key of every document."""
        if key not in self._keys:
            columns = [self.sample.columns[part.field] for part in key.parts]
            ends = [
                [key.encode_part(part, value) for value in column.values] if part.hashed else column.encodings
                for part, column in zip(key.parts, columns, strict=True)
            ]
            pieces = (map(end.__getitem__, column.codes) for end, column in zip(ends, columns, strict=True))
            self._keys[key] = [b"".join(each) for each in zip(*pieces, strict=True)]
        return self._keys[key]

    def figures(self, placement: Placement) -> PlacementFigures:
        keys = self.keys(placement.key)
        homes = list(map(placement.ranges.shard_of, keys))
        loads, widths = self.workload.touches(placement, self._locator(placement, homes))
        queries = max(self.workload.queries, 1)
        storage = _tally(homes, placement.shards)
        largest = max(1.0, len(keys) / (placement.shards * CHUNKS_PER_SHARD))
        newest = homes[-max(1, len(homes) // _NEWEST) :]
        return PlacementFigures(
            shards_per_query=sum(loads) / queries,
            single_shard=(widths[0] + widths[1]) / queries,
            load_max_mean=max_by_mean(loads),
            storage_max_mean=max_by_mean(storage),
            insert_max_mean=max_by_mean(_tally(newest, placement.shards)),
            moved=self._moved(placement),
            unsplittable=sum(count > largest for count in Counter(keys).values()),
            capacity=self.workload.queries / max(loads) if max(loads) else float(placement.shards),
            loads=_shares(loads),
            storage=_shares(storage),
        )

    def _locator(self, placement: Placement, homes: Sequence[int]) -> Callable[[Any], int | None] | None:
        """The directory for ids of the sample; for any other id a document of the sample stands in."""
        if not placement.directory:
            return None
        column = self.sample.columns[placement.directory]
        known = dict(zip(column.codes, homes, strict=True))

        def locate(value: Any) -> int | None:
            code = column.code_of(value)
            return known[code] if code is not None else homes[_number(value) % len(homes)] if homes else None

        return locate

    def _moved(self, placement: Placement) -> float:
        """A log says which fields an update changes, not to what: another document's values stand for the new
        ones."""
        own = set(placement.key.fields)
        moved = 0.0
        for changes, times in self.workload.changes.items():
            changed = changes & own
            if changed and self.sample.count:
                moved += times * self._chance(placement, changed)
        return moved / self.workload.updates if self.workload.updates else 0.0

    def _chance(self, placement: Placement, changed: frozenset[str]) -> float:
        count = self.sample.count
        trials = min(_MOVED_TRIALS, count)
        step = max(1, count // trials)
        away = 0
        for number in range(trials):
            old = self.sample.document(number * step, placement.key.fields)
            new = {**old, **self.sample.document((number * step * 7 + count // 2) % count, changed)}
            away += placement.place(old) != placement.place(new)
        return away / trials


def max_by_mean(values: Sequence[float]) -> float:
    return max(values) * len(values) / sum(values) if sum(values) else 1.0


def _tally(homes: Sequence[int], shards: int) -> list[int]:
    counts = Counter(homes)
    return [counts[shard] for shard in range(shards)]


def _shares(values: Sequence[float]) -> tuple[float, ...]:
    total = sum(values) or 1.0
    return tuple(value / total for value in values)


def _number(value: Any) -> int:
    return int.from_bytes(encoded(value)[-8:], "big") * 2_654_435_761 >> 16
