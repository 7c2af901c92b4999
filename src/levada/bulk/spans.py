"""Which rows belong to one task?

A task is a part of a table that can be asked for by one `WHERE`: a range of keys, of blocks, of row numbers, or all
keys with one remainder (the article's `MOD(id, m) = r`) or one remainder of a hash. Whatever the cuts, the parts of
a whole are disjoint and cover it; a part that turns out too big becomes several parts of the same kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from zlib import crc32

import msgspec

__all__ = [
    "BlockRange",
    "Cut",
    "HashShare",
    "Key",
    "KeyRange",
    "Modulus",
    "NullKeys",
    "RowRange",
    "Span",
    "hash_of",
    "holds",
    "parts_of",
]

Key = int | str


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """A place between keys: before `key`, or after it. No key lies on a cut."""

    key: Key
    after: bool = False

    def is_below(self, key: Key) -> bool:
        return self.key < key or (not self.after and self.key == key)  # type: ignore[operator]


class KeyRange(msgspec.Struct, frozen=True, tag="keys"):
    """The keys between two cuts; None is the open end. NULL is in no range."""

    low: Cut | None = None
    high: Cut | None = None


class BlockRange(msgspec.Struct, frozen=True, tag="blocks"):
    """The rows that lie in blocks `first` to `end` of the table's file; None: to its last."""

    first: int = 0
    end: int | None = None


class RowRange(msgspec.Struct, frozen=True, tag="rows"):
    """The rows numbered `first` to `end` (excluded) of a file, or of a table that numbers its rows."""

    first: int = 0
    end: int | None = None


class Modulus(msgspec.Struct, frozen=True, tag="modulus"):
    """The integer keys that leave this remainder: never negative, whatever the sign of the key."""

    divisor: int
    remainder: int


class HashShare(msgspec.Struct, frozen=True, tag="hash"):
    """The keys whose hash, by the source's own function, leaves this remainder."""

    divisor: int
    remainder: int


class NullKeys(msgspec.Struct, frozen=True, tag="nulls"):
    """The rows without a key: they are counted, not taken."""


Span = KeyRange | BlockRange | RowRange | Modulus | HashShare | NullKeys


def hash_of(key: object) -> int:
    """The same in every process, unlike Python's own: the tasks of one load are read by many."""
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
    """About `parts` spans that hold together just what this one holds; [span] if it cannot be divided.

    `ordered` are keys that were met in it, in the source's own order, which need not be Python's. A range is cut at
    its quantiles; a key that fills a whole part gets one of its own, so that nothing else waits for it.
    """
    if isinstance(span, KeyRange):
        edges = [span.low, *_new_cuts(span, ordered, parts), span.high]
        return [KeyRange(low, high) for low, high in pairwise(edges)]
    if isinstance(span, Modulus | HashShare):
        return _finer(span) if len(set(ordered)) > 1 else [span]
    if isinstance(span, BlockRange | RowRange) and span.end is not None and span.end - span.first > 1:
        middle = (span.first + span.end) // 2
        return [type(span)(span.first, middle), type(span)(middle, span.end)]
    return [span]


def _finer(span: Modulus | HashShare) -> list[Span]:
    kind, twice = type(span), span.divisor * 2
    return [kind(twice, span.remainder), kind(twice, span.remainder + span.divisor)]


def _new_cuts(span: KeyRange, ordered: Sequence[Key], parts: int) -> list[Cut]:
    """Those that leave about as many of these keys in each part; a key as heavy as a part stands alone."""
    cuts: list[Cut] = []
    share = len(ordered) / parts
    start = 0
    for place in sorted({int(share * part) for part in range(1, parts)} if ordered else ()):
        if place < start:
            continue  # the key of the cut before reaches as far as here
        first, start = _run(ordered, place)
        heavy = start - first >= max(2.0, share)
        cuts += [Cut(ordered[place]), Cut(ordered[place], after=True)] if heavy else [Cut(ordered[place])]
    return [cut for cut in cuts if cut not in (span.low, span.high)]


def _run(ordered: Sequence[Key], place: int) -> tuple[int, int]:
    """From where to where the same key stands."""
    first = end = place
    while first and ordered[first - 1] == ordered[place]:
        first -= 1
    while end < len(ordered) and ordered[end] == ordered[place]:
        end += 1
    return first, end
