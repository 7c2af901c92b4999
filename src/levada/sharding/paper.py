"""The shard key of the source's paper.

Source: a 2018 paper on MongoDB sharding for a classified-ads site. Fields that fewer than 1% of the queries filter
by are ignored. Fields with far too few or far too many values for their share are dropped. The others follow each
other by their share, the unique id comes last, and each is padded with zeros after a short prefix. The paper prints
no thresholds for "far too"; those here are Levada's, and keep and drop what the paper keeps and drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from levada.sharding.placement import KeyPart, ShardKey

# As printed. Category, region and id have one digit more than their highest value needs, status and city none.
PRINTED_FORMAT = {
    "status": ("s", 2),
    "category_id": ("ct", 5),
    "region_id": ("r", 3),
    "city_id": ("c", 3),
    "_id": ("_id", 9),
}


class QueriedField(msgspec.Struct, frozen=True):
    """A field, the `share` of the queries that filter by it (0 to 1) and its `highest` value, if it is a number."""

    field: str
    distinct: int
    share: float
    highest: int = 0


class Thresholds(msgspec.Struct, frozen=True):
    """`least_share`: of the queries. `least_values`: number of values times share. `most_values`: number of values
    over share."""

    least_share: float = 0.01
    least_values: float = 1.0
    most_values: float = 50_000.0


class Dropped(msgspec.Struct, frozen=True):
    """A field that is not in the key, and why."""

    field: str
    reason: str


class PaperKey(msgspec.Struct, frozen=True):
    """The fields of the key in order, each with its prefix and digits, and the dropped fields."""

    fields: tuple[str, ...]
    formats: tuple[tuple[str, int], ...]
    dropped: tuple[Dropped, ...]

    def text(self, document: Mapping[str, int]) -> str:
        """The key of a document as the paper prints it."""
        pieces = zip(self.fields, self.formats, strict=True)
        return " ".join(f"{prefix}{document[field]:0{digits}d}" for field, (prefix, digits) in pieces)

    @property
    def key(self) -> ShardKey:
        """The same fields without the padding."""
        return ShardKey(tuple(KeyPart(field) for field in self.fields))


def paper_key(
    fields: Sequence[QueriedField],
    id_field: str,
    thresholds: Thresholds | None = None,
    formats: Mapping[str, tuple[str, int]] | None = None,
) -> PaperKey:
    """The key by the paper's method; `formats` replace the prefix and digits of a field."""
    limits = thresholds or Thresholds()
    kept: list[QueriedField] = []
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


def _reason(each: QueriedField, limits: Thresholds) -> str:
    if each.share < limits.least_share:
        return f"in {each.share:.2%} of the queries, less than {limits.least_share:.0%}"
    facts = f"{each.distinct:,} values for {each.share:.0%} of the queries"
    if each.distinct * each.share < limits.least_values:
        return f"far too few values: {facts} ({each.distinct * each.share:.2g} < {limits.least_values:g})"
    if each.distinct / each.share > limits.most_values:
        return f"far too many values: {facts} ({each.distinct / each.share:,.0f} > {limits.most_values:,.0f})"
    return ""


def _prefixes(fields: Sequence[str], id_field: str) -> dict[str, str]:
    """The shortest prefix of each name that no earlier field has."""
    taken: dict[str, str] = {}
    for field in fields:
        sizes = range(1, len(field) + 1)
        free = (field[:size] for size in sizes if field[:size] not in taken.values())
        taken[field] = field if field == id_field else next(free, field)
    return taken
