"""How many values has a field, how even are they, do they grow with time, and what do they tell of each other?

What a shard key must satisfy: many values, none of them too frequent, and no order of inserts in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import msgspec

from levada.sharding.sample import Column, Sample
from levada.sharding.values import MISSING

__all__ = ["FieldFacts", "Told", "decided", "facts_of", "monotonicity", "told_by"]

_FEW_VALUES = 0.05  # by documents: with more, one field tells another by chance
_ENOUGH_PAIRS = 20_000  # of documents, to see how two fields hang together


class Told(msgspec.Struct, frozen=True):
    """How much of the variety of `asked` the field `known` tells, 0 to 1."""

    known: str
    asked: str
    share: float


class FieldFacts(msgspec.Struct, frozen=True):
    """Of one field in the sample; shares are of all documents, and `distinct` counts values that are there."""

    field: str
    distinct: int
    estimated: int  # values that all documents would have, by what the sample has once and twice
    top_share: float  # of the most frequent value
    top_value: Any
    monotonicity: float  # rank correlation with the order of inserts, -1 to 1
    missing: float
    kinds: dict[str, int]

    @property
    def mixed(self) -> bool:
        return len([kind for kind in self.kinds if kind not in ("missing", "null")]) > 1

    @property
    def array(self) -> bool:
        return "array" in self.kinds


def facts_of(sample: Sample, field: str) -> FieldFacts:
    column = sample.columns[field]
    counts = column.counts()
    kinds = column.kinds()
    code, most = counts.most_common(1)[0] if counts else (0, 0)
    return FieldFacts(
        field=field,
        distinct=sum(column.values[code] is not MISSING for code in counts),
        estimated=_estimated(column, counts),
        top_share=most / sample.count if sample.count else 0.0,
        top_value=_shown(column.values[code]) if counts else None,
        monotonicity=monotonicity(column),
        missing=kinds["missing"] / sample.count if sample.count else 0.0,
        kinds=dict(sorted(kinds.items())),
    )


def _estimated(column: Column, counts: Counter[int]) -> int:
    """Chao's lower bound (1984), bias-corrected: many values met once mean many that were not met at all."""
    here = [count for code, count in counts.items() if column.values[code] is not MISSING]
    once, twice = here.count(1), here.count(2)
    return len(here) + once * (once - 1) // (2 * (twice + 1))


def monotonicity(column: Column) -> float:
    """Spearman's rank correlation between the values, equal ones at their middle, and the order of inserts."""
    total = len(column.codes)
    if total < 2 or len(column.values) < 2:
        return 0.0
    ranks = _ranks(column)
    middle = (total - 1) / 2
    together = sum((place - middle) * (ranks[code] - middle) for place, code in enumerate(column.codes))
    spread = sum((ranks[code] - middle) ** 2 for code in column.codes)
    of_places = total * (total * total - 1) / 12
    return together / sqrt(spread * of_places) if spread else 0.0


def told_by(sample: Sample, known: str, asked: str) -> float:
    """How much of a field's variety another one tells: 1 if it decides it, 0 if it tells nothing.

    Mutual information as a share of the asked field's entropy; it looks larger where values are as many as
    documents.
    """
    step = max(1, sample.count // _ENOUGH_PAIRS)
    one, other = (sample.columns[field].codes[::step] for field in (known, asked))
    entropy = _entropy(other)
    if not entropy:
        return 1.0
    shared = _entropy(one) + entropy - _entropy([a * (1 << 32) + b for a, b in zip(one, other, strict=True)])
    return min(1.0, max(0.0, shared / entropy))


def decided(sample: Sample, fields: Sequence[str], least: float = 0.9) -> list[Told]:
    """The pairs of which one tells at least so much of the other; fields with too many values are left out."""
    plain = [field for field in fields if 1 < len(sample.columns[field].values) <= _FEW_VALUES * sample.count]
    pairs = ((known, asked) for known in plain for asked in plain if known != asked)
    found = [Told(known, asked, told_by(sample, known, asked)) for known, asked in pairs]
    return [each for each in found if each.share >= least]


def _ranks(column: Column) -> list[float]:
    counts = column.counts()
    ranks = [0.0] * len(column.values)
    before = 0
    for code in sorted(counts, key=column.encodings.__getitem__):
        ranks[code] = before + (counts[code] - 1) / 2
        before += counts[code]
    return ranks


def _entropy(codes: Sequence[int]) -> float:
    total = len(codes)
    return -sum(count / total * log(count / total) for count in Counter(codes).values())


def _shown(value: Any) -> Any:
    if value is MISSING:
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
