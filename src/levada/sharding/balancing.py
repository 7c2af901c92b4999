"""Which ranges go to which shard so that queries and documents are both spread evenly?

Ranges are cut between the values of the key's first field, so that a query that names one finds it whole. Only a
value that is too hot for one shard is cut inside, by what follows it in the key. Pieces go to shards by weight,
the heaviest first, each where it leaves the fuller side lowest (Graham's longest processing time first, on two
sides).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil

import msgspec

from levada.sharding.ranges import Ranges

__all__ = ["Piece", "assigned", "pieces_of", "shared_by"]

_PIECES_PER_SHARD = 32
_FULLEST_PIECE = 0.8  # of a shard


class Piece(msgspec.Struct, frozen=True):
    low: bytes
    documents: int
    first: bytes = b""  # of a value that was cut: how its keys begin


def pieces_of(
    starts: Sequence[bytes], keys: Sequence[bytes], named: Mapping[bytes, int], shards: int
) -> list[Piece]:
    """`starts[i]`: how `keys[i]` begins, its first field; `named`: how often queries name each of these.

    Values that hardly weigh anything share a piece with their neighbours.
    """
    weigh = _Scales(len(keys), sum(named.values()), shards)
    found: list[Piece] = []
    gathered: Piece | None = None
    asked = 0
    for start, group in groupby(sorted(zip(starts, keys, strict=True)), key=lambda pair: pair[0]):
        own = [key for _, key in group]
        weight = weigh(len(own), named.get(start, 0))
        if weight >= 1 / _PIECES_PER_SHARD:
            found += [*([gathered] if gathered else []), *_cut(start, own, weight)]
            gathered, asked = None, 0
            continue
        before = gathered or Piece(start, 0)
        gathered, asked = Piece(before.low, before.documents + len(own)), asked + named.get(start, 0)
        if weigh(gathered.documents, asked) >= 1 / _PIECES_PER_SHARD:
            found.append(gathered)
            gathered, asked = None, 0
    return [*found, gathered] if gathered else found


class _Scales:
    """The weight of a piece: its documents or its queries, whichever is more, in even shares of a shard."""

    def __init__(self, documents: int, queries: int, shards: int) -> None:
        self._documents = shards / max(documents, 1)
        self._queries = shards / max(queries, 1)

    def __call__(self, documents: int, queries: int) -> float:
        return max(documents * self._documents, queries * self._queries)


def _cut(start: bytes, keys: Sequence[bytes], weight: float) -> Iterator[Piece]:
    count = ceil(weight / _FULLEST_PIECE) if weight > 1.0 else 1
    places = sorted({number * len(keys) // count for number in range(count)})
    lows = [keys[place] for place in places]
    kept = [number for number, low in enumerate(lows) if not number or low > lows[number - 1]]
    if len(kept) == 1:
        yield Piece(start, len(keys))
        return
    ends = [*(places[number] for number in kept[1:]), len(keys)]
    for number, end in zip(kept, ends, strict=True):
        yield Piece(lows[number] if number else start, end - places[number], start)


def assigned(pieces: Sequence[Piece], loads: Sequence[int], shards: int) -> tuple[Ranges, list[int]]:
    """`loads`: how often each piece is touched. Its ranges, neighbours of one owner as one; and all owners."""
    owners = _owners(pieces, loads, shards)
    bounds: list[bytes] = []
    kept: list[int] = []
    for piece, owner in zip(pieces, owners, strict=True):
        if kept and owner == kept[-1]:
            continue
        bounds += [piece.low] if kept else []
        kept.append(owner)
    return Ranges(tuple(bounds), tuple(kept or [0])), owners


def _owners(pieces: Sequence[Piece], loads: Sequence[int], shards: int) -> list[int]:
    weigh = _Scales(sum(piece.documents for piece in pieces), sum(loads), shards)
    documents, asked = [0] * shards, [0] * shards
    owners = [0] * len(pieces)
    heaviest = sorted(range(len(pieces)), key=lambda place: -weigh(pieces[place].documents, loads[place]))
    for place in heaviest:
        more, touched = pieces[place].documents, loads[place]
        after = [weigh(documents[shard] + more, asked[shard] + touched) for shard in range(shards)]
        owner = after.index(min(after))
        documents[owner] += more
        asked[owner] += touched
        owners[place] = owner
    return owners


def shared_by(pieces: Sequence[Piece], owners: Sequence[int]) -> dict[bytes, tuple[int, ...]]:
    """The shards that share a value which was cut, by how its keys begin."""
    shared: dict[bytes, set[int]] = {}
    for piece, owner in zip(pieces, owners, strict=True):
        if piece.first:
            shared.setdefault(piece.first, set()).add(owner)
    return {first: tuple(sorted(shards)) for first, shards in shared.items() if len(shards) > 1}
