"""Candidate shard keys, and the score of each.

By kind: `hashed-id` is what an expert takes when nothing is known; `paper` is the source's; `compound`, `hashed` (a
hashed first field, plain ones after it), `zones` (the same, with ranges and hot values placed by weight) and any of
these with a `directory` of ids are Levada's. No field that writes change is in a key of Levada's: its documents
would have to move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from levada.sharding.evaluation import Evaluator, PlacementFigures, assigned, pieces_of, shared_by
from levada.sharding.paper import PaperKey, QueriedField, paper_key
from levada.sharding.placement import KeyPart, Placement, Ranges, ShardKey, Zone, quantile_ranges
from levada.sharding.sample import FieldDependence, FieldFacts
from levada.sharding.values import MISSING
from levada.sharding.workload import LogStatistics

WAYS = 3  # in which `ours` tries each leading field: hashed, compound, zones
_MOST_LEADING = 4
_MOST_AFTER = 2
_LEAST_LEADING = 0.05  # of the queries must name a value of the first field
_LEAST_AFTER = 0.01
_DECIDES = 0.99


Candidate: TypeAlias = tuple[str, Placement]
"""A placement to try, after its kind."""


class Fields(msgspec.Struct, frozen=True):
    """Facts about the fields. `mutable` fields stay out of keys; `secret` keys the hashes."""

    log: LogStatistics
    facts: dict[str, FieldFacts]
    id_field: str
    mutable: frozenset[str]
    dependences: tuple[FieldDependence, ...] = ()
    secret: bytes = b""

    def leading(self) -> list[str]:
        """Fields that may come first: often named by value, and never changed."""
        named = {field: use.by_value / max(self.log.queries, 1) for field, use in self.log.fields.items()}
        return [field for field in self._usable() if named[field] >= _LEAST_LEADING][:_MOST_LEADING]

    def after(self, first: str) -> list[str]:
        """Fields that may follow. A field that the first one determines would split nothing."""
        determined = {each.asked for each in self.dependences if each.known == first and each.share >= _DECIDES}
        others = [field for field in self._usable() if field != first and field not in determined]
        return [field for field in others if self.log.share(field) >= _LEAST_AFTER][:_MOST_AFTER]

    def _usable(self) -> Iterator[str]:
        for field in self.log.by_share():
            facts = self.facts.get(field)
            if field == self.id_field or field in self.mutable or facts is None:
                continue
            if facts.distinct >= 2 and not facts.array:
                yield field


def papers(fields: Fields, evaluator: Evaluator, shards: int) -> tuple[Placement | None, PaperKey]:
    """The paper's key for this query log and sample, and what its method dropped."""
    queried = [
        QueriedField(field, facts.estimated, fields.log.share(field))
        for field, facts in fields.facts.items()
        if not facts.array and (field in fields.log.fields or field == fields.id_field)
    ]
    found = paper_key(queried, fields.id_field)
    if not found.fields:
        return None, found
    ranges = quantile_ranges(evaluator.keys(found.key), shards)
    return Placement(found.key, ranges, shards), found


def ours(fields: Fields, first_fields: Sequence[str], evaluator: Evaluator, shards: int) -> Iterator[Candidate]:
    """Keys with each of these fields first, once in every way."""
    end = [fields.id_field] if fields.id_field else []
    for first in first_fields:
        after = [KeyPart(field) for field in (*fields.after(first), *end)]
        hashed, plain = (ShardKey((KeyPart(first, way), *after), fields.secret) for way in (True, False))
        for kind, key in (("hashed", hashed), ("compound", plain)):
            yield kind, Placement(key, quantile_ranges(evaluator.keys(key), shards), shards)
        yield "zones", _zoned(hashed, evaluator, shards)


def _zoned(key: ShardKey, evaluator: Evaluator, shards: int) -> Placement:
    column = evaluator.sample.columns[key.parts[0].field]
    starts = [key.encode_part(key.parts[0], value) for value in column.values]
    named = {starts[code]: times for code, times in evaluator.workload.named(key.parts[0].field).items()}
    pieces = pieces_of([starts[code] for code in column.codes], evaluator.keys(key), named, shards)
    if not pieces:
        return Placement(key, Ranges((), (0,)), shards)
    each = Ranges(tuple(piece.low for piece in pieces[1:]), tuple(range(len(pieces))))
    loads, widths = evaluator.workload.touches(Placement(key, each, len(pieces)))
    # A query that touches every piece touches every shard once under any assignment: it weighs nothing here.
    ranges, owners = assigned(pieces, [load - widths[-1] for load in loads], shards)
    value_of = dict(zip(starts, column.values, strict=True))
    shared = ((value_of[first], homes) for first, homes in shared_by(pieces, owners).items())
    zones = tuple(Zone(None if value is MISSING else value, homes) for value, homes in shared)  # queried as null
    return Placement(key, ranges, shards, zones=zones)


_WORDS = {"zones": " in zones", "compound": " in ranges", "hashed": " in ranges", "paper": " (paper)"}
_UNEVEN = 1.25  # times the mean: inserts and documents below it do no harm
_UNSPLITTABLE = 0.1  # loss for each chunk that cannot be split
_WORTH_IT = 1.005  # what zones, and what a directory, must gain over the simpler key


class Tried(msgspec.Struct, frozen=True):
    """A candidate with its figures and score."""

    kind: str
    name: str
    key: str
    placement: Placement
    figures: PlacementFigures
    score: float
    refused: str = ""  # why it is not advised, whatever its figures


def score(figures: PlacementFigures) -> float:
    """The capacity, reduced where inserts or documents pile up, updates move documents, or chunks are too large."""
    piling = max(1.0, figures.insert_max_mean / _UNEVEN) * max(1.0, figures.storage_max_mean / _UNEVEN)
    return figures.capacity / piling / (1.0 + figures.moved) / (1.0 + _UNSPLITTABLE * figures.unsplittable)


def try_out(candidate: Candidate, evaluator: Evaluator, fields: Fields) -> Tried:
    kind, placement = candidate
    figures, key = evaluator.figures(placement), str(placement.key)
    directory = f" + directory of {placement.directory}" if placement.directory else ""
    moving = [field for field in placement.key.fields if field in fields.mutable]
    refused = f"{', '.join(moving)}: writes change it, and documents would move" if moving else ""
    return Tried(kind, f"{key}{_WORDS.get(kind, '')}{directory}", key, placement, figures, score(figures), refused)


def ranked(tried: Sequence[Tried]) -> list[Tried]:
    """By score, with a handicap for what is harder to run; refused ones last."""

    def merit(each: Tried) -> tuple[bool, float]:
        steps = (each.kind == "zones") + bool(each.placement.directory)
        return bool(each.refused), -each.score / _WORTH_IT**steps

    return sorted(tried, key=merit)
