"""Comparison of source and map."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from levada.bulk.entries import MASK, decoded_key, decoded_values, rows_digest
from levada.bulk.instance import read_span
from levada.bulk.protocols import MapReader, TableSource
from levada.bulk.splitting import SplitMethod
from levada.bulk.start import spans_of
from levada.bulk.tasks import Manifest

_MANY = 2_000


class Content(NamedTuple):
    """Number of keys and rows, and the digest of the rows."""

    keys: int
    rows: int
    digest: int


def content_of_map(reader: MapReader, manifest: Manifest) -> Content:
    """What a reader of this map sees: for each key, its newest layer."""
    packed = (manifest.key_kind, manifest.value_kind) == ("int", "int") and find_spec("numpy") is not None
    keys = rows = digest = 0
    for place, layer in enumerate(manifest.layers):
        entries = iter(reader.entries(manifest.plan.name, layer))
        while pairs := list(islice(entries, _MANY)):
            named, values = list[Any](), list[Any]()
            for (key, value), hidden in zip(pairs, _hidden(reader, manifest, place, pairs), strict=True):
                if not hidden:
                    found = decoded_values(value, manifest.value_kind)
                    named += [decoded_key(key, manifest.key_kind)] * len(found)
                    values += found
                    keys += 1
            rows, digest = rows + len(values), digest + _digest(named, values, packed)
    return Content(keys, rows, digest & MASK)


def content_of_table(source: TableSource, *, collect: bool, task_rows: int, most_rows: int) -> Content:
    """The table's content now."""
    source.share((), None)
    waiting = spans_of(source, source.facts(), SplitMethod.AUTO, collect=collect, task_rows=task_rows)
    keys = rows = digest = 0
    while waiting:
        found = read_span(source, waiting.pop(), most_rows)
        if isinstance(found, list):
            waiting += found
        elif not isinstance(found, int) and len(found):
            keys += len(found.entries(True)) if collect else len(found)
            rows, digest = rows + len(found), digest + found.digest()
    return Content(keys, rows, digest & MASK)


def _digest(keys: Sequence[Any], values: Sequence[Any], packed: bool) -> int:
    if not packed:
        return rows_digest(zip(keys, values, strict=True))
    import numpy

    from levada.bulk.sources.packed import PackedRows

    return PackedRows(numpy.array(keys, numpy.int64), numpy.array(values, numpy.int64)).digest()


def _hidden(reader: MapReader, manifest: Manifest, place: int, pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """For each of these keys of layer `place`, whether a newer layer has it as well."""
    if not place:
        return [False] * len(pairs)
    above, _ = reader.get(replace(manifest, layers=manifest.layers[:place]), [key for key, _ in pairs])
    return [value is not None for value in above]
