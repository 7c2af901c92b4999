"""Sample of documents, field by field, and its statistics.

A sample holds, for each field that matters, the values of its documents in the order in which they were inserted:
each distinct value once, and for each document which one it has. Sub-documents are dotted fields. The statistics
say what makes a good shard key: many values, none of them too frequent, and not in the order of inserts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt
from typing import Any

import msgspec

from levada.sharding.values import MISSING, dig, encoded

_MOST_LEVELS = 8


def kind_of(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, list | tuple):
        return "array"
    return "document" if isinstance(value, Mapping) else "bytes" if isinstance(value, bytes) else "text"


class SampleColumn:
    """One field of all documents: the value of document i is `values[codes[i]]`."""

    __slots__ = ("_by_encoding", "_by_value", "codes", "encodings", "values")

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.values: list[Any] = []
        self.encodings: list[bytes] = []
        self._by_value: dict[tuple[type, Any], int] = {}
        self._by_encoding: dict[bytes, int] = {}

    def append(self, value: Any) -> None:
        if isinstance(value, list | dict):
            self.codes.append(self._code(value))
            return
        known = (value.__class__, value)  # 1, 1.0 and True are equal, but not the same
        code = self._by_value.get(known)
        if code is None:
            code = self._by_value[known] = self._code(value)
        self.codes.append(code)

    def _code(self, value: Any) -> int:
        data = encoded(value)
        code = self._by_encoding.setdefault(data, len(self.values))
        if code == len(self.values):
            self.values.append(value)
            self.encodings.append(data)
        return code

    def code_of(self, value: Any) -> int | None:
        """The code of this value, if a document has it."""
        return self._by_encoding.get(encoded(value))

    def every(self, step: int) -> SampleColumn:
        """The values of one document in `step`."""
        fewer = SampleColumn()
        fewer.values, fewer.encodings = self.values, self.encodings
        fewer._by_encoding = self._by_encoding
        fewer.codes = self.codes[::step]
        return fewer

    def counts(self) -> Counter[int]:
        return Counter(self.codes)

    def kinds(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, count in self.counts().items():
            found[kind_of(self.values[code])] += count
        return found


class Sample:
    """Documents in the order of their inserts, with these `fields` and the id."""

    def __init__(self, documents: Iterable[Mapping[str, Any]], fields: Sequence[str], id_field: str = "") -> None:
        names = dict.fromkeys((*fields, *([id_field] if id_field else [])))
        self.columns: dict[str, SampleColumn] = {name: SampleColumn() for name in names}
        self.count = 0
        takers = [(name, column.append) for name, column in self.columns.items()]
        for document in documents:
            self.count += 1
            for name, take in takers:
                take(document[name] if name in document else dig(document, name))
        known = id_field and any(value is not MISSING for value in self.columns[id_field].values)
        self.id_field = id_field if known else ""

    def thinned(self, most: int) -> Sample:
        """At most `most` of the documents, evenly from the whole, in order."""
        step = -(-self.count // most)
        if step <= 1:
            return self
        fewer = Sample((), ())
        for name, column in self.columns.items():
            fewer.columns[name] = column.every(step)
        fewer.count = len(range(0, self.count, step))
        fewer.id_field = self.id_field
        return fewer

    def document(self, number: int, fields: Iterable[str] | None = None) -> dict[str, Any]:
        """The kept fields of one document."""
        columns = ((name, self.columns[name]) for name in (self.columns if fields is None else fields))
        found = {name: column.values[column.codes[number]] for name, column in columns}
        return {name: value for name, value in found.items() if value is not MISSING}


def names_in(document: Mapping[str, Any], before: str = "", level: int = 0) -> Iterable[str]:
    """The dotted names of a document's fields."""
    for name, value in document.items():
        if isinstance(value, Mapping) and value and level < _MOST_LEVELS:
            yield from names_in(value, f"{before}{name}.", level + 1)
        else:
            yield before + name


_FEW_VALUES = 0.05  # values per document: with more, one field determines another by chance
_ENOUGH_PAIRS = 20_000  # of documents, to see how two fields depend on each other


class FieldDependence(msgspec.Struct, frozen=True):
    """How much of the variety of the field `asked` the field `known` determines, 0 to 1."""

    known: str
    asked: str
    share: float


class FieldFacts(msgspec.Struct, frozen=True):
    """Statistics of one field. Shares are of all documents; `distinct` does not count a missing value."""

    field: str
    distinct: int
    estimated: int  # values in all documents, from those that the sample has once and twice
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


def _estimated(column: SampleColumn, counts: Counter[int]) -> int:
    """Chao's lower bound (1984), bias-corrected: many values seen once mean many that were not seen."""
    here = [count for code, count in counts.items() if column.values[code] is not MISSING]
    once, twice = here.count(1), here.count(2)
    return len(here) + once * (once - 1) // (2 * (twice + 1))


def monotonicity(column: SampleColumn) -> float:
    """Spearman's rank correlation between the values (ties at their middle rank) and the order of inserts."""
    total = len(column.codes)
    if total < 2 or len(column.values) < 2:
        return 0.0
    ranks = _ranks(column)
    middle = (total - 1) / 2
    together = sum((place - middle) * (ranks[code] - middle) for place, code in enumerate(column.codes))
    spread = sum((ranks[code] - middle) ** 2 for code in column.codes)
    of_places = total * (total * total - 1) / 12
    return together / sqrt(spread * of_places) if spread else 0.0


def dependence(sample: Sample, known: str, asked: str) -> float:
    """How much of the field `asked` the field `known` determines: all of it at 1, nothing at 0.

    Mutual information as a share of the entropy of `asked`. It is overestimated where values are as many as
    documents.
    """
    step = max(1, sample.count // _ENOUGH_PAIRS)
    one, other = (sample.columns[field].codes[::step] for field in (known, asked))
    entropy = _entropy(other)
    if not entropy:
        return 1.0
    shared = _entropy(one) + entropy - _entropy([a * (1 << 32) + b for a, b in zip(one, other, strict=True)])
    return min(1.0, max(0.0, shared / entropy))


def dependent_fields(sample: Sample, fields: Sequence[str], least: float = 0.9) -> list[FieldDependence]:
    """Pairs of fields of which one determines at least this much of the other, without fields of too many
    values."""
    plain = [field for field in fields if 1 < len(sample.columns[field].values) <= _FEW_VALUES * sample.count]
    pairs = ((known, asked) for known in plain for asked in plain if known != asked)
    found = [FieldDependence(known, asked, dependence(sample, known, asked)) for known, asked in pairs]
    return [each for each in found if each.share >= least]


def _ranks(column: SampleColumn) -> list[float]:
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
