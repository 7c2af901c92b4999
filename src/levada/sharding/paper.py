"""Which key does the paper's method build?

Source: a 2018 paper on MongoDB sharding for a classified-ads site. Fields that fewer than 1% of the queries ask
for are ignored; fields with far too few or far too many values for their share are dropped; the others follow each
other by their share, the unique id comes last, and each is padded with zeros after a short prefix. The paper
prints no thresholds for "far too"; those here are ours, and keep and drop what it keeps and drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from levada.sharding.keys import KeyPart, ShardKey

__all__ = ["PRINTED_FORMAT", "AskedField", "Dropped", "PaperKey", "Thresholds", "paper_key"]

# As printed. Category, region and id have one digit more than their highest value, status and city none.
PRINTED_FORMAT = {
    "status": ("s", 2),
    "category_id": ("ct", 5),
    "region_id": ("r", 3),
    "city_id": ("c", 3),
    "_id": ("_id", 9),
}


class AskedField(msgspec.Struct, frozen=True):
    """`share` of the queries that ask for it, 0 to 1; `highest` value, where it is a number."""

    field: str
    distinct: int
    share: float
    highest: int = 0


class Thresholds(msgspec.Struct, frozen=True):
    """`least_share`: of queries. `least_values`: the number of values times the share. `most_values`: the number of
    values by the share."""

    least_share: float = 0.01
    least_values: float = 1.0
    most_values: float = 50_000.0


class Dropped(msgspec.Struct, frozen=True):
    field: str
    reason: str


class PaperKey(msgspec.Struct, frozen=True):
    """The fields of the key in their order, each with its prefix and its digits; and what was dropped."""

    fields: tuple[str, ...]
    formats: tuple[tuple[str, int], ...]
    dropped: tuple[Dropped, ...]

    def text(self, document: Mapping[str, int]) -> str:
        """The key of a document as the paper prints it."""
        pieces = zip(self.fields, self.formats, strict=True)
        return " ".join(f"{prefix}{document[field]:0{digits}d}" for field, (prefix, digits) in pieces)

    @property
    def key(self) -> ShardKey:
        """The same order without the padding."""
        return ShardKey(tuple(KeyPart(field) for field in self.fields))


def paper_key(
    fields: Sequence[AskedField],
    id_field: str,
    thresholds: Thresholds | None = None,
    formats: Mapping[str, tuple[str, int]] | None = None,
) -> PaperKey:
    limits = thresholds or Thresholds()
    kept: list[AskedField] = []
    dropped: list[Dropped] = []
    for each in sorted(fields, key=lambda each: (-each.share, each.field)):
        reason = "" if each.field == id_field else _reason(each, limits)
        if reason:
            dropped.append(Dropped(each.field, reason))
        elif each.field != id_field:
            kept.append(each)
    kept += [each for each in fields if each.field == id_field]
    prefixes = _prefixes([each.field for each in kept], id_field)
    own = {each.field: (prefixes[each.field], len(str(each.highest))) for each in kept}
    shapes = tuple((formats or {}).get(each.field, own[each.field]) for each in kept)
    return PaperKey(tuple(each.field for each in kept), shapes, tuple(dropped))


def _reason(each: AskedField, limits: Thresholds) -> str:
    if each.share < limits.least_share:
        return f"asked for in {each.share:.2%} of the queries, less than {limits.least_share:.0%}"
    told = f"{each.distinct:,} values for {each.share:.0%} of the queries"
    if each.distinct * each.share < limits.least_values:
        return f"far too few values: {told} ({each.distinct * each.share:.2g} < {limits.least_values:g})"
    if each.distinct / each.share > limits.most_values:
        return f"far too many values: {told} ({each.distinct / each.share:,.0f} > {limits.most_values:,.0f})"
    return ""


def _prefixes(fields: Sequence[str], id_field: str) -> dict[str, str]:
    """The shortest beginning of each name that no earlier field has taken."""
    taken: dict[str, str] = {}
    for field in fields:
        sizes = range(1, len(field) + 1)
        free = (field[:size] for size in sizes if field[:size] not in taken.values())
        taken[field] = field if field == id_field else next(free, field)
    return taken
