"""Splitting a table into tasks: which spans, and how many.

A task is a part of a table that one `WHERE` selects: a range of keys, of blocks, of row numbers, or all keys with
one remainder (the article's `MOD(id, m) = r`) or one remainder of a hash. The parts of a whole are always disjoint
and cover it. A part that turns out too big while running is split into parts of the same kind. Memory does not grow
with the number of parts.

The article uses `m` tasks `MOD(id, m) = r`, with `m` about the largest possible number of instances; under COPY
each of them scans the whole table. We use ranges of keys at the quantiles of a sample, so that each task reads
about as many rows and an index can find them; blocks where every row stands for itself and no index helps;
remainders on request, or where the keys have no reliable order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from math import ceil
from random import Random
from zlib import crc32

import msgspec

Key = int | str


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """A place between keys: before or after `key`. No key lies on a cut."""

    key: Key
    after: bool = False

    def is_below(self, key: Key) -> bool:
        return self.key < key or (not self.after and self.key == key)  # type: ignore[operator]


class KeyRange(msgspec.Struct, frozen=True, tag="keys"):
    """The keys between two cuts; None is an open end. NULL is in no range."""

    low: Cut | None = None
    high: Cut | None = None


class BlockRange(msgspec.Struct, frozen=True, tag="blocks"):
    """The rows in blocks `first` to `end` of the table's file; None: to its last."""

    first: int = 0
    end: int | None = None


class RowRange(msgspec.Struct, frozen=True, tag="rows"):
    """The rows numbered `first` to `end` (excluded) of a file, or of a table that numbers its rows."""

    first: int = 0
    end: int | None = None


class Modulus(msgspec.Struct, frozen=True, tag="modulus"):
    """The integer keys with this remainder, which is never negative, whatever the sign of the key."""

    divisor: int
    remainder: int


class HashShare(msgspec.Struct, frozen=True, tag="hash"):
    """The keys whose hash, by the source's own function, has this remainder."""

    divisor: int
    remainder: int


class NullKeys(msgspec.Struct, frozen=True, tag="nulls"):
    """The rows without a key: they are counted, not loaded."""


Span = KeyRange | BlockRange | RowRange | Modulus | HashShare | NullKeys


def hash_of(key: object) -> int:
    """The hash of a key, the same in every process, unlike Python's own: many read the tasks of one load."""
    return crc32(str(key).encode("utf-8", "surrogatepass"))


def holds(span: Span, key: Key | None, place: int = 0) -> bool:
    """Whether a row belongs to the span: by its key, its block or number (`place`), or the hash of its key."""
    if isinstance(span, NullKeys) or key is None:
        return isinstance(span, NullKeys) and key is None
    if isinstance(span, KeyRange):
        return (span.low is None or span.low.is_below(key)) and (span.high is None or not span.high.is_below(key))
    if isinstance(span, BlockRange | RowRange):
        return span.first <= place and (span.end is None or place < span.end)
    number = hash_of(key) if isinstance(span, HashShare) else int(key)
    return number % span.divisor == span.remainder


def parts_of(span: Span, ordered: Sequence[Key], parts: int = 2) -> list[Span]:
    """About `parts` spans that together hold exactly what this one holds; [span] if it cannot be divided.

    `ordered` are keys of the span in the source's own order, which need not be Python's. A range is cut at its
    quantiles; a key that fills a whole part gets one of its own, so that nothing else waits for it.
    """
    if isinstance(span, KeyRange):
        edges = [span.low, *_new_cuts(span, ordered, parts), span.high]
        return [KeyRange(low, high) for low, high in pairwise(edges)]
    if isinstance(span, Modulus | HashShare):
        if len(set(ordered)) < 2:
            return [span]
        kind, twice = type(span), span.divisor * 2
        return [kind(twice, span.remainder), kind(twice, span.remainder + span.divisor)]
    if isinstance(span, BlockRange | RowRange) and span.end is not None and span.end - span.first > 1:
        middle = (span.first + span.end) // 2
        return [type(span)(span.first, middle), type(span)(middle, span.end)]
    return [span]


def _new_cuts(span: KeyRange, ordered: Sequence[Key], parts: int) -> list[Cut]:
    """Cuts that leave about as many of these keys in each part. A key that fills a part is cut out alone."""
    cuts: list[Cut] = []
    share = len(ordered) / parts
    start = 0
    for place in sorted({int(share * part) for part in range(1, parts)} if ordered else ()):
        if place < start:
            continue  # the key of the previous cut reaches this far
        first, start = _run(ordered, place)
        heavy = start - first >= max(2.0, share)
        cuts += [Cut(ordered[place]), Cut(ordered[place], after=True)] if heavy else [Cut(ordered[place])]
    return [cut for cut in cuts if cut not in (span.low, span.high)]


def _run(ordered: Sequence[Key], place: int) -> tuple[int, int]:
    """The first and last position of the same key."""
    first = end = place
    while first and ordered[first - 1] == ordered[place]:
        first -= 1
    while end < len(ordered) and ordered[end] == ordered[place]:
        end += 1
    return first, end


def thinned(ordered: Iterable[Key], size: int) -> list[Key]:
    """Every n-th of keys that come in order: between `size` and twice as many, or all if there are fewer."""
    kept: list[Key] = []
    every = 1
    for place, key in enumerate(ordered):
        if place % every == 0:
            kept.append(key)
            if len(kept) > 2 * size:
                kept, every = kept[::2], every * 2
    return kept


def drawn(keys: Iterable[Key], size: int, chance: Random) -> list[Key]:
    """A sample of `size` keys that come in any order, each equally likely; all if there are fewer. (Waterman's
    reservoir: the n-th key takes a place with the probability size / n.)"""
    kept: list[Key] = []
    for place, key in enumerate(keys):
        if place < size:
            kept.append(key)
        elif (taken := int(chance.random() * (place + 1))) < size:
            kept[taken] = key
    return kept


MOST_TASKS = 10_000
_FEW = 2  # so that a second instance has something to do
_SCANS = 16  # tasks at most, if each of them reads the whole table


class SplitMethod(StrEnum):
    """The ways to split; `auto` picks one."""

    AUTO = "auto"
    RANGES = "ranges"
    BLOCKS = "blocks"
    MOD = "mod"
    HASH = "hash"


class TableFacts(msgspec.Struct, frozen=True):
    """What a source knows of its table before reading it."""

    rows: int  # an estimate
    key_kind: str  # "int" or "text"
    value_kind: str = "any"  # "int" or "any"
    indexed: bool = False  # whether a range of keys is found without reading the rest
    ordered: bool = True  # whether keys have a total order that the source and its ranges agree on
    blocks: int | None = None  # of the file of a plain table
    numbered: bool = False  # whether blocks are row numbers
    unique: bool = False  # whether unique keys are known, or checked before the load
    key_nullable: bool = True
    newest: str | None = None  # of the watermark's column


def chosen_way(facts: TableFacts, collect: bool) -> SplitMethod:
    """The way to split. Rows of one key may lie in any block, so unless keys are unique only the key can decide."""
    if facts.blocks is not None and facts.unique and not collect and not (facts.indexed and facts.ordered):
        return SplitMethod.BLOCKS
    if facts.ordered:
        return SplitMethod.RANGES
    return SplitMethod.MOD if facts.key_kind == "int" else SplitMethod.HASH


def split(facts: TableFacts, ordered: Sequence[Key], how: SplitMethod, *, collect: bool, task_rows: int) -> list[Span]:
    """The tasks; together they hold every row once."""
    way = chosen_way(facts, collect) if how is SplitMethod.AUTO else how
    parts = min(MOST_TASKS, max(_FEW, ceil(facts.rows / task_rows)))
    if way is SplitMethod.RANGES and not facts.indexed:
        parts = min(parts, _SCANS)
    nulls: list[Span] = [NullKeys()] if facts.key_nullable else []
    if way is SplitMethod.RANGES:
        return parts_of(KeyRange(), ordered, parts) + nulls
    if way is SplitMethod.BLOCKS:
        return _blocks(facts, parts) + nulls
    kind = Modulus if way is SplitMethod.MOD else HashShare
    parts = min(parts, _SCANS)
    return [*(kind(parts, remainder) for remainder in range(parts)), *nulls]


def _blocks(facts: TableFacts, parts: int) -> list[Span]:
    """Block ranges. The last one has no end: a table grows behind its last block."""
    blocks = facts.blocks or 0
    step = max(1, ceil(blocks / parts))
    kind = RowRange if facts.numbered else BlockRange
    starts = list(range(0, max(1, blocks), step))
    ends: list[int | None] = [*starts[1:], None]
    return [kind(first, end) for first, end in zip(starts, ends, strict=True)]
