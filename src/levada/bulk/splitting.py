"""Into how many tasks is a table split, and how?

The article: `m` tasks `MOD(id, m) = r`, `m` about the largest number of instances there can be. Under COPY each of
them scans the whole table. Ours: ranges of keys at the quantiles of a sample, so that each task reads about as many
rows and an index can find them; blocks where every row stands for itself and no index helps; remainders on request
or where the keys have no order that can be relied on. A task that still turns out too big is split while running.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil

import msgspec

from levada.bulk.spans import BlockRange, HashShare, Key, KeyRange, Modulus, NullKeys, RowRange, Span, parts_of

__all__ = ["MOST_TASKS", "How", "TableFacts", "chosen_way", "split"]

MOST_TASKS = 10_000
_FEW = 2  # so that a second instance has something to do
_SCANS = 16  # tasks at most, where each of them reads the whole table


class How(StrEnum):
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
    indexed: bool = False  # a range of keys is found without reading the rest
    ordered: bool = True  # keys have a total order that the source and its ranges agree on
    blocks: int | None = None  # of the file of a plain table
    numbered: bool = False  # blocks are row numbers
    unique: bool = False  # that no key has two rows is known, or checked before the load
    key_nullable: bool = True
    newest: str | None = None  # of the watermark's column


def chosen_way(facts: TableFacts, collect: bool) -> How:
    """Rows of one key may lie in any block: unless there is but one, only the key may decide."""
    if facts.blocks is not None and facts.unique and not collect and not (facts.indexed and facts.ordered):
        return How.BLOCKS
    if facts.ordered:
        return How.RANGES
    return How.MOD if facts.key_kind == "int" else How.HASH


def split(facts: TableFacts, ordered: Sequence[Key], how: How, *, collect: bool, task_rows: int) -> list[Span]:
    """The tasks; together they hold every row once."""
    way = chosen_way(facts, collect) if how is How.AUTO else how
    parts = min(MOST_TASKS, max(_FEW, ceil(facts.rows / task_rows)))
    if way is How.RANGES and not facts.indexed:
        parts = min(parts, _SCANS)
    nulls: list[Span] = [NullKeys()] if facts.key_nullable else []
    return _spans(facts, ordered, way, parts) + nulls


def _spans(facts: TableFacts, ordered: Sequence[Key], way: How, parts: int) -> list[Span]:
    if way is How.RANGES:
        return parts_of(KeyRange(), ordered, parts)
    if way is How.BLOCKS:
        return _blocks(facts, parts)
    kind = Modulus if way is How.MOD else HashShare
    parts = min(parts, _SCANS)
    return [kind(parts, remainder) for remainder in range(parts)]


def _blocks(facts: TableFacts, parts: int) -> list[Span]:
    """The last one has no end: a table grows behind its last block."""
    blocks = facts.blocks or 0
    step = max(1, ceil(blocks / parts))
    kind = RowRange if facts.numbered else BlockRange
    starts = list(range(0, max(1, blocks), step))
    ends: list[int | None] = [*starts[1:], None]
    return [kind(first, end) for first, end in zip(starts, ends, strict=True)]
